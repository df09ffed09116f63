"""Changes of a tree: planned, written at once, and planned again if another writer was first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container, Mapping
from contextlib import suppress
from datetime import datetime

from locus_memory._internal.running.retrying import until_first
from locus_memory.errors import MemoryConflict, MemoryNotFound, VersionConflictError
from locus_memory.resources.operations import WriteMode
from locus_memory.resources.storing.nodes import Entry, Text, is_folder, prepared
from locus_memory.resources.storing.places import Path
from locus_memory.resources.storing.plans import Plans
from locus_memory.resources.uri import MemoryURI
from locus_memory.store.base import scan_all, write_together
from locus_memory.store.item import StoreItem

__all__ = ["TreeWriter"]


class TreeWriter:
    """Changes of entries and folders; each change of an entry is all or nothing.

    Args:
        plans: The plans of the tree.
        now: Returns the moment, UTC.
    """

    def __init__(self, plans: Plans, now: Callable[[], datetime]) -> None:
        self.plans = plans
        self._now = now

    @property
    def is_exact(self) -> bool:
        """Whether every folder has an entry: a store without transactions may leave empty ones."""
        return self.plans.store.capabilities.transactions

    async def write(
        self, path: Path, content: str, mode: WriteMode, metadata: Mapping[str, str] | None
    ) -> Entry:
        """Write an entry; returns it.

        Raises:
            MemoryConflict: The path is a folder, or below an entry, or `create` found an entry.
        """
        made: list[Text] = []

        async def once() -> Entry:
            item = await self._entry_item(path)
            if item is not None and mode == "create":
                raise MemoryConflict(str(MemoryURI(path)))
            old = None if item is None else Entry.from_value(item.value)
            whole = content if old is None or mode == "replace" else f"{old.content}\n{content}"
            facts = (old.metadata if old else {}) if metadata is None else metadata
            if old is not None and (old.content, dict(old.metadata)) == (whole, dict(facts)):
                return old
            if not made or made[0].content != whole:
                # Kept for the next attempt: a long text takes a while.
                made[:] = [await prepared(whole, path[-1])]
            at = self._now().isoformat(timespec="microseconds")
            entry, operations = await self.plans.put(path, item, made[0], facts, at)
            await write_together(self.plans.store, operations)
            await self._settle(path, is_new=item is None)
            return entry

        return await until_first(once)

    async def _entry_item(self, path: Path) -> StoreItem | None:
        """Return the item of an entry, if there is one.

        Raises:
            MemoryConflict: It is a folder.
        """
        item = await self.plans.item(path)
        if item is None or not is_folder(item):
            return item
        # Without transactions, a killed writer may leave a folder with nothing in it.
        if not await self.is_empty(path):
            raise MemoryConflict(str(MemoryURI(path)), "it is a folder")
        namespace, key = self.plans.places.node(path)
        await self.plans.store.delete(namespace, key, if_version=item.version)
        return None

    async def _settle(self, path: Path, *, is_new: bool) -> None:
        """Take back a new entry below an entry, which only a store without transactions lets in.

        Raises:
            MemoryConflict: It was taken back.
        """
        if not is_new or self.is_exact:
            return
        for depth in range(1, len(path)):
            item = await self.plans.item(path[:depth])
            if item is not None and not is_folder(item):
                await self._delete(path)
                raise MemoryConflict(str(MemoryURI(path[:depth])), "it is an entry, and no folder")
        if not await self.is_empty(path):
            await self._delete(path)
            raise MemoryConflict(str(MemoryURI(path)), "it is a folder")

    async def delete(self, path: Path) -> None:
        """Delete an entry.

        Raises:
            MemoryNotFound: There is none.
        """
        await until_first(lambda: self._delete(path))

    async def _delete(self, path: Path) -> None:
        await write_together(self.plans.store, await self.plans.delete(path))

    async def delete_below(self, path: Path) -> int:
        """Delete all entries below a folder, one after another; returns how many."""
        count = 0
        async for each in self.entries(path):
            with suppress(MemoryNotFound):
                await self.delete(each)
                count += 1
        return count

    async def move(self, path: Path, target: Path) -> None:
        """Move an entry.

        Raises:
            MemoryNotFound: There is none.
            MemoryConflict: The target is taken.
        """

        async def once() -> None:
            entry, _ = await self.plans.entry(path)
            text = await prepared(entry.content, target[-1])
            operations = await self.plans.move(path, target, text)
            if not operations:
                raise VersionConflictError(0, 1)
            await write_together(self.plans.store, operations)
            await self._settle(target, is_new=True)

        await until_first(once)

    async def check_free(self, path: Path, *, leaving: Container[Path]) -> None:
        """Check that an entry may come to a path.

        Args:
            path: The path.
            leaving: The entries that move away before it comes.

        Raises:
            MemoryConflict: The path is taken, or a part of it is an entry.
        """
        for depth in range(1, len(path) + 1):
            item = await self.plans.item(path[:depth])
            if item is None:
                return
            is_taken = depth == len(path) or not is_folder(item)
            if is_taken and path[:depth] not in leaving:
                raise MemoryConflict(str(MemoryURI(path[:depth])))

    async def entries(self, path: Path) -> AsyncIterator[Path]:
        """Yield the paths of the entries below a folder, at any depth."""
        waiting = [path]
        while waiting:
            folder = waiting.pop()
            async for child in self.children(folder):
                if is_folder(child):
                    waiting.append((*folder, child.key))
                else:
                    yield (*folder, child.key)

    def children(self, path: Path) -> AsyncIterator[StoreItem]:
        """Yield the children of a folder in the order of their names, however many."""
        return scan_all(self.plans.store, self.plans.places.children(path))

    async def is_empty(self, path: Path) -> bool:
        """Whether a folder has no entry, at any depth."""
        async for _ in self.entries(path):
            return False
        return True
