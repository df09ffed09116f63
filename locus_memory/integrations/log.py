"""A log of items in one namespace, which many processes append to and cut at its end.

The items have ascending numbers as keys. One more item, the head, holds the next number. Each
change writes the head at the version it has read, together with the items, so changes are in one
order for all processes, whatever their clocks return. The head stays when the log is emptied: a
number is never used twice.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from locus_memory._internal.cancellation import finished
from locus_memory.backends.loops import LoopLocal
from locus_memory.errors import VersionConflictError
from locus_memory.integrations.reading import DAMAGE, readable, tell_unreadable
from locus_memory.store.base import BaseStore, all_keys
from locus_memory.store.item import Delete, Namespace, Put, Restored, StoreItem, quick_put

__all__ = ["Entry", "Head", "Item", "Log", "LogGoneError", "Past", "Tail"]

Item = dict[str, Any]

_HEAD: Final = "head"
"""The key of the head; it follows every number."""

_LONGEST_WAIT: Final = 0.05
"""Seconds, before another attempt to write the head."""

_AT_ONCE: Final = 1000
"""How many items one transaction deletes or copies."""


class LogGoneError(Exception):
    """A log that has to exist was deleted, or all of it has expired."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An item of the log, with the key that it has."""

    key: str
    item: Item
    stored: StoreItem


@dataclass(frozen=True, slots=True)
class Head:
    """The head at one version; 0: there is none."""

    version: int
    next: int
    until: float = math.inf
    """When it expires, as `time.monotonic` counts."""


@dataclass(frozen=True, slots=True)
class Past:
    """An item of another log, with the moment when it was added."""

    item: Item
    moment: datetime


@dataclass(frozen=True, slots=True)
class Tail:
    """The last items of a log in one moment; `complete`: there are no earlier ones."""

    head: Head
    entries: list[Entry]
    complete: bool


class Log:
    """The items of one namespace, in the order in which they were appended.

    Args:
        store: The store of the items.
        namespace: The namespace of this log alone.
        ttl: Seconds until an item expires; the same for all who append to this log.

    Attributes:
        namespace: The namespace.
        required: Whether a change raises `LogGoneError` if the log does not exist; by default, it
            begins one.
    """

    def __init__(self, store: BaseStore, namespace: Namespace, ttl: float | None) -> None:
        self.namespace = namespace
        self.required = False
        self._store = store
        self._ttl = ttl
        self._head: Head | None = None
        self._locks: LoopLocal[asyncio.Lock] = LoopLocal()

    async def append(self, items: Sequence[Item]) -> None:
        """Append items: all of them, next to each other, where the store has transactions.

        Raises:
            BackendError: The database failed.
        """

        async def plan(head: Head) -> _Change:
            return self._puts(head, items)

        await self._change(plan)

    async def read(self, limit: int | None = None) -> list[Entry]:
        """Return the last `limit` items that are readable, or all of them, the oldest first."""
        if limit is None:
            return [entry async for entry in self._entries()]
        found: list[Entry] = []
        if limit > 0:
            async for entry in self._entries(descending=True, page=min(limit + 1, 500)):
                found.append(entry)
                if len(found) == limit:
                    break
        return found[::-1]

    async def tail(self, limit: int) -> Tail | None:
        """Return the last items and the head that they belong to; `None` if one is unreadable."""
        head = await self._current()
        entries = await self.read(limit + 1)
        keys = await self._keys()
        # An item that is left out would be lost when the tail is replaced.
        if [entry.key for entry in entries] != keys[-(limit + 1) :]:
            return None
        return Tail(head, entries[-limit:] if limit else [], complete=len(entries) <= limit)

    async def replace(
        self, tail: Tail, start: int, items: Sequence[Item], outdated: Sequence[str] = ()
    ) -> bool:
        """Put `items` in the place of a tail's entries from `start`; false: the log has changed.

        The store has transactions. The keys of `outdated` are deleted as well.
        """
        gone = [*outdated, *(entry.key for entry in tail.entries[start:])]
        puts = self._puts(tail.head, items)
        try:
            await self._commit(
                tail.head, _Change(puts.next, [*map(self._delete, gone), *puts.operations])
            )
        except VersionConflictError:
            return False
        return True

    async def restore(self, head: Head, items: Sequence[Past]) -> Head | None:
        """Append items with their moments, behind a head; `None`: the log has changed.

        The head is written first, which reserves the numbers; a crash then leaves some of them
        without an item.

        Args:
            head: The head that the caller knows.
            items: The items; the store writes all of them or none if it has batches.

        Returns:
            The head after them.
        """
        try:
            await self._commit(head, _Change(head.next + len(items), []))
        except VersionConflictError:
            return None
        await self._store.restore(
            Restored(
                namespace=self.namespace,
                key=f"{number:016d}",
                value=past.item,
                text="",
                version=1,
                created_at=past.moment,
                updated_at=past.moment,
            )
            for number, past in enumerate(items, head.next)
        )
        return self._head

    async def pop(self) -> Item | None:
        """Remove and return the last readable item; `None` if there is none."""
        popped: Item | None = None

        async def plan(head: Head) -> _Change:
            nonlocal popped
            last = await self.read(1)
            popped = last[0].item if last else None
            return _Change(head.next, [self._delete(entry.key) for entry in last])

        await self._change(plan, fresh=True)
        return popped

    async def clear(self) -> None:
        """Delete the items that the log has now, the damaged ones included."""
        keys = await self._keys()
        while keys:
            keys, part = keys[:-_AT_ONCE], keys[-_AT_ONCE:]

            async def plan(head: Head, part: Sequence[str] = part) -> _Change:
                return _Change(head.next, [self._delete(key) for key in part])

            await self._change(plan)

    async def edit(
        self, change: Callable[[list[Entry]], Mapping[str, Item | None]], items: Sequence[Item] = ()
    ) -> None:
        """Replace and append items, in one transaction where the store has transactions.

        Args:
            change: From the readable items to new ones by their keys; `None` deletes one. It is
                called again if another writer was first.
            items: The items to append.

        Raises:
            BackendError: The database failed.
        """

        async def plan(head: Head) -> _Change:
            appended = self._puts(head, items)
            changed = [
                self._delete(key)
                if item is None
                else quick_put(self.namespace, key, item, ttl=self._ttl, text="")
                for key, item in change(await self.read()).items()
            ]
            return _Change(appended.next, [*changed, *appended.operations])

        await self._change(plan, fresh=True)

    async def start(self, items: Sequence[Item]) -> bool:
        """Begin a log that does not exist with these items; false if it exists."""
        await self._store.open()
        head = Head(0, 1)
        try:
            await self._commit(head, self._puts(head, items[:_AT_ONCE]))
        except VersionConflictError:
            return False
        for begin in range(_AT_ONCE, len(items), _AT_ONCE):
            await self.append(items[begin : begin + _AT_ONCE])
        return True

    async def exists(self) -> bool:
        """Return whether the log was begun, and neither deleted nor has expired."""
        return await self._store.exists(self.namespace, _HEAD) or bool(await self._keys())

    async def outdated(self, before: str, is_outdated: Callable[[Item], bool]) -> list[str]:
        """Return the keys of the first items that are outdated, up to the key `before`."""
        keys: list[str] = []
        async for entry in self._entries():
            if entry.key >= before or not is_outdated(entry.item):
                break
            keys.append(entry.key)
        return keys

    async def _entries(self, *, descending: bool = False, page: int = 500) -> AsyncIterator[Entry]:
        async for stored, item in readable(
            self._store, self.namespace, _item_of, descending=descending, page=page
        ):
            if item is not None:
                yield Entry(stored.key, item, stored)

    async def _keys(self) -> list[str]:
        return [key for key in await all_keys(self._store, self.namespace) if key != _HEAD]

    async def _change(
        self, plan: Callable[[Head], Awaitable[_Change]], *, fresh: bool = False
    ) -> None:
        """Write a change of the newest head; plan it again if another writer was first.

        A caller that is cancelled waits for the outcome.
        """
        async with self._locks.get(asyncio.Lock):
            await finished(self._tried(plan, fresh=fresh))

    async def _tried(self, plan: Callable[[Head], Awaitable[_Change]], *, fresh: bool) -> None:
        wait = 0.0
        while True:
            head = self._head
            if fresh or head is None or time.monotonic() >= head.until:
                head = await self._current()
                if self.required and head == Head(0, 1):
                    raise LogGoneError
            try:
                return await self._commit(head, await plan(head))
            except VersionConflictError:
                self._head = None
            await asyncio.sleep(random.uniform(0, wait))  # noqa: S311 - no secret
            wait = min(_LONGEST_WAIT, wait * 2 + 0.001)

    async def _commit(self, head: Head, change: _Change) -> None:
        put = quick_put(
            self.namespace, _HEAD, change.next, ttl=self._ttl, if_version=head.version, text=""
        )
        # Taken before the write, so that the head never expires earlier than this.
        until = time.monotonic() + self._ttl if self._ttl else math.inf
        if self._store.capabilities.transactions:
            version = (await self._store.write_batch([put, *change.operations]))[0]
        else:
            version = await self._apart(put, change.operations)
        self._head = Head(int(version), change.next, until)

    async def _apart(self, head: Put, operations: Sequence[Put | Delete]) -> int:
        """Write the head, which reserves the numbers, and then the items."""
        version = (await self._store.put_batch([head]))[0]
        puts = [each for each in operations if isinstance(each, Put)]
        await self._store.delete_batch(
            [(each.namespace, each.key) for each in operations if isinstance(each, Delete)]
        )
        await self._store.put_batch(puts)
        return version

    async def _current(self) -> Head:
        """Return the stored head; without a readable one, the number after the last key."""
        try:
            stored = await self._store.get_item(self.namespace, _HEAD)
        except DAMAGE as error:
            tell_unreadable(self.namespace, _HEAD, error)
            # It would refuse every later change.
            await self._store.delete(self.namespace, _HEAD)
            stored = None
        if stored is not None and type(stored.value) is int:
            return Head(stored.version, stored.value, _until(stored))
        keys = await self._keys()
        return Head(stored.version if stored else 0, int(keys[-1]) + 1 if keys else 1)

    def _puts(self, head: Head, items: Sequence[Item]) -> _Change:
        puts = [
            quick_put(self.namespace, f"{number:016d}", item, ttl=self._ttl, if_version=0, text="")
            for number, item in enumerate(items, head.next)
        ]
        return _Change(head.next + len(items), puts)

    def _delete(self, key: str) -> Delete:
        return Delete(namespace=self.namespace, key=key)


@dataclass(frozen=True, slots=True)
class _Change:
    """The next number after a change, and the operations that it is made of."""

    next: int
    operations: Sequence[Put | Delete]


def _item_of(stored: StoreItem) -> Item | None:
    """Return an item of a framework; `None` for the head."""
    if stored.key == _HEAD:
        return None
    if not isinstance(stored.value, dict):
        raise TypeError("an item is an object")
    return stored.value


def _until(stored: StoreItem) -> float:
    if stored.expires_at is None:
        return math.inf
    return time.monotonic() + (stored.expires_at - datetime.now(UTC)).total_seconds()
