"""Groups of concurrent writes, which one statement sends together.

A statement costs the client and the server more than its rows. So under load, writes that share a
statement finish sooner than writes with a statement each. A single write is sent at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

__all__ = ["Grouping"]

T = TypeVar("T")
R = TypeVar("R")

_ALONE: Final = 4
"""The most single writes in progress before others wait for a group."""

_GROUPS: Final = 1
"""The most groups in progress."""

_LARGEST: Final = 32
"""The most writes of a group."""


@dataclass(eq=False, slots=True)
class _Waiting(Generic[T, R]):
    """A write that waits for a group, or for the answer of its group."""

    kind: Hashable
    key: Hashable
    what: T
    answer: asyncio.Future[R | None]
    group: _Group[T, R] | None = None


@dataclass(eq=False, slots=True)
class _Group(Generic[T, R]):
    """The writes that are sent together, and the future that sends them."""

    members: list[_Waiting[T, R]]
    sending: asyncio.Future[tuple[Sequence[R | None]]]


class Grouping(Generic[T, R]):
    """The sender of the writes of one event loop.

    Writes of one key are sent one after another, in the order of their calls. Only a write that
    is sent again, alone, may be overtaken. A cancelled call does not affect the others.

    Args:
        alone: Sends one write.
        together: Sends several writes of one kind and of distinct keys; returns an answer for
            each, `None` for a write to send alone after all.
    """

    def __init__(
        self,
        alone: Callable[[T], Awaitable[R]],
        together: Callable[[Sequence[T]], Coroutine[Any, Any, Sequence[R | None]]],
    ) -> None:
        self._alone = alone
        self._together = together
        self._loop = asyncio.get_running_loop()
        self._singles = 0
        self._groups = 0
        self._busy: set[Hashable] = set()
        self._waiting: deque[_Waiting[T, R]] = deque()

    async def send(self, what: T, *, key: Hashable, kind: Hashable = None) -> R:
        """Return the answer to `what`, sent alone or with others of its kind.

        Raises:
            Exception: The error of `alone`, or of `together` for all writes of the group.
        """
        if self._singles >= _ALONE or self._groups or key in self._busy:
            return await self._with_others(_Waiting(kind, key, what, self._loop.create_future()))
        self._singles += 1
        self._busy.add(key)
        try:
            return await self._alone(what)
        finally:
            self._singles -= 1
            self._busy.discard(key)
            self._go_on()

    async def _with_others(self, waiting: _Waiting[T, R]) -> R:
        self._waiting.append(waiting)
        self._go_on()
        try:
            answer = await waiting.answer
        except asyncio.CancelledError:
            group = waiting.group
            if group is not None and all(each.answer.cancelled() for each in group.members):
                group.sending.cancel()
                await asyncio.wait([group.sending])
            raise
        return await self._alone(waiting.what) if answer is None else answer

    def _go_on(self) -> None:
        """Send the next group, if there is one and few enough are in progress."""
        if not self._waiting or self._groups >= _GROUPS or self._loop.is_closed():
            return
        members = self._next()
        if members:
            self._groups += 1
            self._busy.update(each.key for each in members)
            # Unlike a task, it does not warn if its event loop is closed meanwhile.
            sending = asyncio.gather(self._together([each.what for each in members]))
            group = _Group(members, sending)
            for each in members:
                each.group = group
            sending.add_done_callback(lambda _: self._end(group))

    def _next(self) -> list[_Waiting[T, R]]:
        """Take the writes that may be sent together, in the order of their calls."""
        members: list[_Waiting[T, R]] = []
        keys = set(self._busy)
        left: list[_Waiting[T, R]] = []
        while self._waiting and len(members) < _LARGEST:
            each = self._waiting.popleft()
            if each.answer.cancelled():
                continue
            if each.key in keys or (members and each.kind != members[0].kind):
                left.append(each)
            else:
                members.append(each)
            keys.add(each.key)
        self._waiting.extendleft(reversed(left))
        return members

    def _end(self, group: _Group[T, R]) -> None:
        """Give the members of a group their answers."""
        self._groups -= 1
        self._busy.difference_update(each.key for each in group.members)
        # First, so that the server works while the members continue.
        self._go_on()
        if group.sending.cancelled():
            for each in group.members:
                each.answer.cancel()
        elif error := group.sending.exception():
            for each in group.members:
                if not each.answer.done():
                    each.answer.set_exception(error)
        else:
            (answers,) = group.sending.result()
            for each, answer in zip(group.members, answers, strict=True):
                if not each.answer.done():
                    each.answer.set_result(answer)
