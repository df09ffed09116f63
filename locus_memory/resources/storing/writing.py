"""Changes of a tree: planned, written at once, and planned again if another writer was first."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from locus_memory._internal.running.paging import paged
from locus_memory.errors import MemoryConflict, MemoryNotFound, VersionConflictError
from locus_memory.resources.operations import (
    WriteMode,
)
from locus_memory.resources.storing.nodes import Entry, Text, is_folder, prepared
from locus_memory.resources.storing.places import Path
from locus_memory.resources.storing.plans import Plans
from locus_memory.resources.uri import MemoryURI
from locus_memory.store.base import write_together
from locus_memory.store.item import StoreItem

__all__ = ["Child", "TreeWriter"]

_ATTEMPTS: Final = 500
_PAGE: Final = 100
_LONGEST_PAUSE: Final = 0.05

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Child:
    """A child of a folder.

    Attributes:
        name: Its name.
        item: Its item.
    """

    name: str
    item: StoreItem

    @property
    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return is_folder(self.item)


class TreeWriter:
    """Changes of entries and folders; each change of an entry is all or nothing.

    Args:
        plans: The plans of the tree.
        now: Returns the moment, UTC.
    """

    def __init__(self, plans: Plans, now: Callable[[], datetime]) -> None:
        self._plans = plans
        self._now = now

    @property
    def is_exact(self) -> bool:
        """Whether every folder has an entry: a store without transactions may leave empty ones."""
        return self._plans.store.capabilities.transactions

    async def write(
        self, path: Path, content: str, mode: WriteMode, metadata: Mapping[str, str] | None
    ) -> tuple[Entry, bool]:
        """Write an entry; returns it, and whether anything changed.

        Raises:
            MemoryConflict: The path is a folder, or below an entry, or `create` found an entry.
        """
        made: list[Text] = []

        async def once() -> tuple[Entry, bool]:
            item = await self._entry_item(path)
            if item is not None and mode == "create":
                raise MemoryConflict(str(MemoryURI(path)))
            old = None if item is None else Entry.from_value(item.value)
            whole = content if old is None or mode == "replace" else f"{old.content}\n{content}"
            facts = (old.metadata if old else {}) if metadata is None else metadata
            if old is not None and (old.content, dict(old.metadata)) == (whole, dict(facts)):
                return old, False
            if not made or made[0].content != whole:
                # Kept for the next attempt: a long text takes a while.
                made[:] = [await prepared(whole, path[-1])]
            at = self._now().isoformat(timespec="microseconds")
            entry, operations = await self._plans.put(path, item, made[0], facts, at)
            await write_together(self._plans.store, operations)
            await self._settle(path, is_new=item is None)
            return entry, True

        return await retried(once)

    async def _entry_item(self, path: Path) -> StoreItem | None:
        """Return the item of an entry, if there is one.

        Raises:
            MemoryConflict: It is a folder.
        """
        item = await self._plans.item(path)
        if item is None or not is_folder(item):
            return item
        # Without transactions, a killed writer may leave a folder with nothing in it.
        if not await self.is_empty(path):
            raise MemoryConflict(str(MemoryURI(path)), "it is a folder")
        namespace, key = self._plans.places.node(path)
        await self._plans.store.delete(namespace, key, if_version=item.version)
        return None

    async def _settle(self, path: Path, *, is_new: bool) -> None:
        """Take back a new entry below an entry, which only a store without transactions lets in.

        Raises:
            MemoryConflict: It was taken back.
        """
        if not is_new or self._plans.store.capabilities.transactions:
            return
        for depth in range(1, len(path)):
            item = await self._plans.item(path[:depth])
            if item is not None and not is_folder(item):
                await self._taken_back(path)
                raise MemoryConflict(str(MemoryURI(path[:depth])), "it is an entry, and no folder")
        if not await self.is_empty(path):
            await self._taken_back(path)
            raise MemoryConflict(str(MemoryURI(path)), "it is a folder")

    async def _taken_back(self, path: Path) -> None:
        await write_together(self._plans.store, await self._plans.delete(path))

    async def delete(self, path: Path) -> None:
        """Delete an entry.

        Raises:
            MemoryNotFound: There is none.
        """

        async def once() -> None:
            await write_together(self._plans.store, await self._plans.delete(path))

        await retried(once)

    async def delete_below(self, path: Path) -> int:
        """Delete all entries below a folder, one after another; returns how many."""
        count = 0
        while batch := [each async for each in self.entries(path, most=_PAGE)]:
            for each in batch:
                try:
                    await self.delete(each)
                except MemoryNotFound:
                    continue
                count += 1
        return count

    async def move(self, path: Path, target: Path) -> None:
        """Move an entry.

        Raises:
            MemoryNotFound: There is none.
            MemoryConflict: The target is taken.
        """

        async def once() -> None:
            entry, _ = await self._plans.entry(path)
            text = await prepared(entry.content, target[-1])
            operations = await self._plans.move(path, target, text)
            if not operations:
                raise VersionConflictError(0, 1)
            await write_together(self._plans.store, operations)
            await self._settle(target, is_new=True)

        await retried(once)

    async def check_free(self, path: Path, *, leaving: Container[Path]) -> None:
        """Check that an entry may come to a path.

        Args:
            path: The path.
            leaving: The entries that move away before it comes.

        Raises:
            MemoryConflict: The path is taken, or a part of it is an entry.
        """
        for depth in range(1, len(path) + 1):
            item = await self.item(path[:depth])
            if item is None:
                return
            is_taken = depth == len(path) or not is_folder(item)
            if is_taken and path[:depth] not in leaving:
                raise MemoryConflict(str(MemoryURI(path[:depth])))

    async def entries(self, path: Path, most: int | None = None) -> AsyncIterator[Path]:
        """Yield the paths of the entries below a folder, at any depth."""
        count = 0
        waiting = [path]
        while waiting:
            folder = waiting.pop()
            async for child in self.children(folder):
                if child.is_dir:
                    waiting.append((*folder, child.name))
                    continue
                yield (*folder, child.name)
                count += 1
                if count == most:
                    return

    async def children(self, path: Path) -> AsyncIterator[Child]:
        """Yield the children of a folder in the order of their names, however many."""
        space = self._plans.places.children(path)
        store = self._plans.store
        async for item in paged(
            lambda after: store.scan(space, _PAGE, after=after), lambda item: item.key
        ):
            yield Child(item.key, item)

    async def item(self, path: Path) -> StoreItem | None:
        """Return the item of an entry or a folder."""
        return await self._plans.item(path)

    async def names(self, path: Path, most: int) -> list[str]:
        """Return the names of the first children of a folder."""
        return await self._plans.store.list_keys(self._plans.places.children(path), most)

    async def is_empty(self, path: Path) -> bool:
        """Whether a folder has no entry, at any depth."""
        async for _ in self.entries(path, most=1):
            return False
        return True


async def retried(once: Callable[[], Awaitable[_Result]]) -> _Result:
    """Return the result of a change, which is planned again while others change the same.

    Raises:
        VersionConflictError: Others were first 500 times.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return await once()
        except MemoryConflict:
            raise
        except VersionConflictError:
            if attempt == _ATTEMPTS - 1:
                raise
            # Other writers must not stay in step with this one.
            await asyncio.sleep(random.random() * min(_LONGEST_PAUSE, 0.001 * 2 ** min(attempt, 6)))  # noqa: S311 - no secret
    raise AssertionError
