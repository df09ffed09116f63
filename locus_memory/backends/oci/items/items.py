"""The reads and writes of single items.

A put reads the item, if this process does not remember its entity tag, and writes the next version
under the condition that the tag is still the same. If it is not, another writer was first, and the
put starts again. A new item takes one request: the condition is that there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.loops import Locks, ServerClock, pause
from locus_memory.backends.oci.connection.connection import ChangedError, OCIConnection
from locus_memory.backends.oci.items.order import WriteOrder
from locus_memory.backends.oci.items.stored import Content, Stored, new_mark
from locus_memory.errors import BackendError, BackendUnavailableError, VersionConflictError
from locus_memory.store.item import Namespace

__all__ = ["Items", "Operation", "together"]

T = TypeVar("T")
R = TypeVar("R")

_ATTEMPTS: Final = 100
"""How often a write starts again because another writer was first."""

_REMEMBERED: Final = 4096
"""The items whose entity tags a process remembers."""

_AT_ONCE: Final = 64
"""The calls of one verb that wait for threads at the same moment."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A put or a delete, ready to write.

    Attributes:
        namespace: The namespace.
        key: The key.
        if_version: The version that the item must have, or `None`.
        content: The content of a put; `None`: it is a delete.
        mark: The mark of the write.
    """

    namespace: Namespace
    key: str
    if_version: int | None
    content: Content | None
    mark: str = field(default_factory=new_mark)


@dataclass(frozen=True, slots=True)
class _Known:
    """The state of an object: its entity tag and its item; both `None` if there is none."""

    etag: str | None = None
    stored: Stored | None = None


class Items:
    """The items of a bucket.

    Args:
        connection: The bucket.
        clock: Returns seconds since the epoch; `None`: the service's clock.
    """

    def __init__(self, connection: OCIConnection, clock: Callable[[], float] | None) -> None:
        self.connection = connection
        self.names = connection.names
        self._clock = clock
        self._server = ServerClock(connection.date, precision=1.0)
        self._order = WriteOrder()
        self._known: RecentlyUsed[_Known] = RecentlyUsed(_REMEMBERED)
        self._locks = Locks()

    async def now(self) -> float:
        """Return the moment of a call, in seconds since the epoch."""
        return await self._server.seconds(self._clock)

    async def read(self, name: str, namespace: Namespace | None, key: str | None) -> Stored | None:
        """Return a live item, or `None`; one that has expired is removed.

        Args:
            name: The name of its object.
            namespace: The namespace that it must have; `None`: any.
            key: The key that it must have; `None`: any.

        Raises:
            BackendCorruptError: The object is damaged, or of another item.
        """
        known = await self._read(name, namespace, key)
        stored = known.stored
        if stored is None or stored.is_live(await self.now()):
            return stored
        await self._purge(name, known)
        return None

    async def get(self, namespace: Namespace, key: str) -> Stored | None:
        """Return a live item by its name, or `None`."""
        return await self.read(self.names.item(namespace, key), namespace, key)

    async def write(self, operations: Sequence[Operation]) -> list[int]:
        """Do the operations; those of one item in their order, others at the same time.

        Returns:
            The new version for each put and whether it was there for each delete, in order.

        Raises:
            VersionConflictError: One `if_version` does not hold; the other operations are done.
        """
        orders = [self._order.following() for _ in operations]
        lines: dict[str, list[int]] = {}
        for place, each in enumerate(operations):
            lines.setdefault(self.names.item(each.namespace, each.key), []).append(place)
        results = [0] * len(operations)

        async def work(line: tuple[str, list[int]]) -> None:
            name, places = line
            async with self._locks.of(name):
                for place in places:
                    results[place] = await self._write(name, operations[place], orders[place])

        await together(work, lines.items(), settle=True)
        return results

    async def _write(self, name: str, operation: Operation, order: int) -> int:
        known, is_fresh = self._known.get(name), False
        place = operation.namespace, operation.key
        for attempt in range(_ATTEMPTS):
            if not is_fresh and await self._has_to_read(operation, known):
                known, is_fresh = await self._read(name, *place), True
            known = known or _Known()
            try:
                return await self._attempt(name, operation, order, known)
            except VersionConflictError:
                if is_fresh:
                    raise
            except ChangedError as error:
                before = known
                known, is_fresh = await self._read(name, *place), True
                done = _done(operation, before, known, unsure=error.unsure)
                if done is not None:
                    return done
                await pause(attempt)
                continue
            known, is_fresh = await self._read(name, *place), True
        raise BackendUnavailableError(
            f"oci {self.connection.place}: the item kept changing while it was written; try again"
        )

    async def _has_to_read(self, operation: Operation, known: _Known | None) -> bool:
        """Return whether a write without a read could not succeed, or would trust an old memory."""
        if operation.content is not None:
            return known is None and bool(operation.if_version)
        stored = None if known is None else known.stored
        # Another process may have put an item in the place of one that has expired.
        return stored is None or not stored.is_live(await self.now())

    async def _attempt(self, name: str, operation: Operation, order: int, known: _Known) -> int:
        """Write once, if the item is as it is known.

        Raises:
            VersionConflictError: The known item is not at the expected version.
            ChangedError: The item is not as it is known.
        """
        now, stored = await self.now(), known.stored
        actual = stored.version if stored is not None and stored.is_live(now) else 0
        if operation.if_version not in (None, actual):
            raise VersionConflictError(
                operation.if_version or 0, actual, operation.namespace, operation.key
            )
        place = operation.namespace, operation.key
        if operation.content is not None:
            new = Stored.of(
                place, operation.content, stored, now=now, order=order, mark=operation.mark
            )
            etag = await self.connection.put(name, new.encode(), known.etag)
            self._remember(name, _Known(etag, new))
            return new.version
        if not actual:
            await self._purge(name, known)
            return False
        self._known.discard(name)
        if not await self.connection.delete(name, known.etag):
            raise ChangedError(unsure=False)
        return True

    async def _read(self, name: str, namespace: Namespace | None, key: str | None) -> _Known:
        found = await self.connection.get(name)
        if found is None:
            self._known.discard(name)
            return _Known()
        stored = Stored.decode(self.connection.place, found.body, namespace, key)
        self._order.saw(stored.order)
        return self._remember(name, _Known(found.etag, stored))

    def _remember(self, name: str, known: _Known) -> _Known:
        stored = known.stored
        self._known.put(name, _Known(known.etag, None if stored is None else stored.head()))
        return known

    async def _purge(self, name: str, known: _Known) -> None:
        """Remove an expired item, unless it was written again; it is invisible in any case."""
        if known.etag is None:
            return
        self._known.discard(name)
        with suppress(BackendError, ChangedError):
            await self.connection.delete(name, known.etag)

    async def remove(self, name: str) -> bool:
        """Delete an item whatever it is; return whether it existed."""
        self._known.discard(name)
        return await self.connection.delete(name)


def _done(operation: Operation, before: _Known, after: _Known, *, unsure: bool) -> int | None:
    """Return the result of a write that had its effect unnoticed, or `None` if it had none."""
    stored = after.stored
    if operation.content is not None:
        return None if stored is None else _landed(operation, before, stored, unsure=unsure)
    if not unsure:
        return None
    life = None if before.stored is None else before.stored.life
    is_gone = stored is None or stored.life != life
    return True if is_gone else None


def _landed(operation: Operation, before: _Known, after: Stored, *, unsure: bool) -> int | None:
    """Return the version of a put that had its effect unnoticed, or `None` if it had none.

    Raises:
        BackendUnavailableError: So many writes came after it that nobody knows.
    """
    found = after.marks.get(operation.mark)
    is_same = before.stored is not None and before.stored.life == after.life
    if found is None and unsure and is_same and before.stored is not None:
        oldest = next(iter(after.marks.values()))
        if oldest > before.stored.version + 1:
            raise BackendUnavailableError(
                "oci: the answer to a put was lost, and so many writes of others followed that "
                "nobody knows whether it had its effect"
            )
    return found


async def together(
    work: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[T], *, settle: bool = False
) -> list[R]:
    """Return the results of calls for each of the items, of which some run at the same time.

    Args:
        work: The call.
        items: Its arguments.
        settle: Whether the other calls are still made if one fails. If the service fails, no more
            calls begin in any case.

    Raises:
        Exception: The first error, once no call runs any more.
    """
    listed = list(items)
    if len(listed) == 1:
        return [await work(listed[0])]
    waiting = iter(enumerate(listed))
    results: dict[int, R] = {}
    failures: list[Exception] = []

    async def worker() -> None:
        for place, item in waiting:
            try:
                results[place] = await work(item)
            except Exception as error:  # noqa: BLE001 - it is raised below
                failures.append(error)
            # Another error says nothing about the next call.
            is_over = not settle or any(isinstance(each, BackendError) for each in failures)
            if failures and is_over:
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_AT_ONCE, len(listed))):
            group.create_task(worker())
    if failures:
        raise failures[0]
    return [results[place] for place in sorted(results)]
