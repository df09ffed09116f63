"""What arrives while much is under way already is sent together.

Sending costs the client and the server more than what is sent, so under load many that share
one statement are done sooner than each by its own. What comes alone is sent alone, at once.
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
"""How many are under way each by itself before others wait to be grouped."""

_GROUPS: Final = 1
"""How many groups are under way at once."""

_LARGEST: Final = 32
"""How many a group has at most."""


@dataclass(eq=False, slots=True)
class _Waiting(Generic[T, R]):
    """One that waits for a group, or for the answer of its group."""

    kind: Hashable
    key: Hashable
    what: T
    answer: asyncio.Future[R | None]
    group: _Group[T, R] | None = None


@dataclass(eq=False, slots=True)
class _Group(Generic[T, R]):
    """Those that are sent together, and what sends them."""

    members: list[_Waiting[T, R]]
    sending: asyncio.Future[tuple[Sequence[R | None]]]


class Grouping(Generic[T, R]):
    """Sends for the calls of one event loop.

    Those of one key are sent one after the other, in the order they came; only what is sent
    again, alone, may be overtaken. Whoever waits may be cancelled: the others do not notice.

    Args:
        alone: Sends one.
        together: Sends several of one kind and of distinct keys; returns an answer for each,
            `None` for what is to be sent alone after all.
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
            Exception: What `alone` raised, or `together` for all of a group.
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
        """Send a group, if there is one to send, and few enough are under way."""
        if not self._waiting or self._groups >= _GROUPS or self._loop.is_closed():
            return
        members = self._next()
        if members:
            self._groups += 1
            self._busy.update(each.key for each in members)
            # Unlike a task, it says nothing if its event loop is closed as it is.
            sending = asyncio.gather(self._together([each.what for each in members]))
            group = _Group(members, sending)
            for each in members:
                each.group = group
            sending.add_done_callback(lambda _: self._end(group))

    def _next(self) -> list[_Waiting[T, R]]:
        """Take those that may be sent together, in the order they came."""
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
        """Tell the members of a group how it went."""
        self._groups -= 1
        self._busy.difference_update(each.key for each in group.members)
        # First of all, so that the server works while the members do.
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
