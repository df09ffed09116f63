"""The writes of each change of a tree, with the conditions under which they hold.

Each plan reads, and returns operations that the store does all at once, if nothing that was read
has changed. A name is one item: an entry or a folder, so a writer of each meets the other. A folder
is written again, unchanged, when a child of it comes or goes; so one writer that finds a folder
empty, and another that puts a child into it, meet as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from locus_memory.documents.chunking.config import Chunk
from locus_memory.errors import MemoryConflict, MemoryNotFound
from locus_memory.resources.storing.nodes import FOLDER, Entry, Text, is_folder
from locus_memory.resources.storing.places import Path, Places, name_of_task
from locus_memory.resources.uri import MemoryURI
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Put, StoreItem

__all__ = ["ABSTRACT", "MOST_VERSIONS", "Operation", "Plans", "chunk_key"]

Operation = Put | Delete

ABSTRACT: Final = "abstract"
"""The key of the chunk that holds an abstract by a model; those of the text are numbers."""

MOST_VERSIONS: Final = 10
"""How many past versions of an entry are kept."""


def chunk_key(index: int) -> str:
    """Return the key of a chunk of a text."""
    return f"{index:08d}"


def version_key(version: int) -> str:
    """Return the key of a past version; keys are in the order of the versions."""
    return f"{version:012d}"


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of one tree.

    Attributes:
        store: The store.
        places: The places of the tree.
        has_tasks: Whether an entry has levels or vectors that are made later.
        has_model: Whether a model makes the levels.
    """

    store: BaseStore
    places: Places
    has_tasks: bool = False
    has_model: bool = False

    async def item(self, path: Path) -> StoreItem | None:
        """Return the item of an entry or a folder."""
        return await self.store.get_item(*self.places.node(path)) if path else None

    async def entry(self, path: Path) -> tuple[Entry, int]:
        """Return an entry and the version of its item.

        Raises:
            MemoryNotFound: There is none; a folder is none.
        """
        item = await self.item(path)
        if item is None or is_folder(item):
            reason = None if item is None else "it is a folder, which has no detail"
            raise MemoryNotFound(str(MemoryURI(path)), reason)
        return Entry.from_value(item.value), item.version

    async def put(
        self, path: Path, item: StoreItem | None, text: Text, metadata: Mapping[str, str], at: str
    ) -> tuple[Entry, list[Operation]]:
        """Return the new entry, and the writes that put it in place of an item."""
        old = None if item is None else Entry.from_value(item.value)
        levels = None if self.has_model else text.levels
        if old is not None and old.digest == text.digest:
            levels = old.levels
        new = Entry(
            text.content,
            dict(metadata),
            text.digest,
            text.size,
            1 if old is None else old.revision + 1,
            len(text.chunks),
            levels,
            at,
        )
        folders = [] if old is not None else await self.entering(path)
        version = 0 if item is None else item.version
        is_same = old is not None and old.digest == text.digest
        return new, [
            *self._task(path, new),
            *folders,
            self.node_put(path, new.to_value(), version),
            *([] if is_same else self._chunk_writes(path, text, old)),
            *self._history_writes(path, old),
        ]

    def node_put(self, path: Path, value: Mapping[str, Any], version: int) -> Put:
        """Return the put of the item of an entry or a folder alone."""
        namespace, key = self.places.node(path)
        return Put(namespace=namespace, key=key, value=value, if_version=version, text="")

    def _chunk_writes(self, path: Path, text: Text, old: Entry | None) -> list[Operation]:
        before = 0 if old is None else old.chunks
        space = self.places.chunks(path)
        gone = [chunk_key(index) for index in range(len(text.chunks), before)]
        if old is not None:
            gone += [each.key for each in self.abstract_puts(path, old)]
        deletes = [Delete(namespace=space, key=key) for key in gone]
        return [*self.chunk_puts(path, text), *deletes]

    def chunk_puts(self, path: Path, text: Text) -> list[Put]:
        """Return the puts of the chunks of a text, without vectors."""
        return [
            self._chunk_put(path, chunk_key(n), text.digest, each)
            for n, each in enumerate(text.chunks)
        ]

    def abstract_puts(self, path: Path, entry: Entry) -> list[Put]:
        """Return the put of an abstract by a model, as searches find it; rules repeat the text."""
        levels = entry.levels
        if levels is None or levels.made_by != "model":
            return []
        return [self._chunk_put(path, ABSTRACT, entry.digest, Chunk(levels.abstract))]

    def _chunk_put(self, path: Path, key: str, digest: str, chunk: Chunk) -> Put:
        metadata = {"uri": str(MemoryURI(path)), "digest": digest}
        value, space = {"content": chunk.content}, self.places.chunks(path)
        return Put(namespace=space, key=key, value=value, metadata=metadata, text=chunk.text)

    def _history_writes(self, path: Path, old: Entry | None) -> list[Operation]:
        if old is None:
            return []
        space = self.places.history(path)
        value = {**old.to_value(), "levels": None}
        kept = version_key(old.revision)
        put = Put(namespace=space, key=kept, value=value, text="")
        last = old.revision - MOST_VERSIONS
        dropped = [Delete(namespace=space, key=version_key(last))] if last > 0 else []
        return [put, *dropped]

    def _task(self, path: Path, entry: Entry) -> list[Operation]:
        if not self.has_tasks:
            return []
        value = {"path": list(path), "revision": entry.revision}
        key = name_of_task(path)
        return [Put(namespace=self.places.tasks, key=key, value=value, text="")]

    async def entering(self, path: Path) -> list[Operation]:
        """Return the writes of the folders that a new child at a path needs.

        Raises:
            MemoryConflict: A part of the path is an entry.
        """
        found: list[Operation] = []
        for depth in range(len(path) - 1, 0, -1):
            folder = path[:depth]
            item = await self.item(folder)
            if item is not None and not is_folder(item):
                raise MemoryConflict(str(MemoryURI(folder)), "it is an entry, and no folder")
            found.append(self.node_put(folder, FOLDER, 0 if item is None else item.version))
            if item is not None:
                break
        return found[::-1]

    async def leaving(self, path: Path) -> list[Operation]:
        """Return the writes of the folders when the child at a path goes: empty ones go as well."""
        found: list[Operation] = []
        for depth in range(len(path) - 1, 0, -1):
            folder = path[:depth]
            # First the folder, then its children: a child that comes between is noticed.
            item = await self.item(folder)
            if item is None or not is_folder(item):
                break
            names = await self.store.list_keys(self.places.children(folder), 2)
            if set(names) - {path[depth]}:
                found.append(self.node_put(folder, FOLDER, item.version))
                break
            namespace, key = self.places.node(folder)
            found.append(Delete(namespace=namespace, key=key, if_version=item.version))
            space, name = self.places.levels(folder)
            found.append(Delete(namespace=space, key=name))
        return found

    async def delete(self, path: Path) -> list[Operation]:
        """Return the writes that delete an entry, its chunks and its past versions.

        Raises:
            MemoryNotFound: There is no entry.
        """
        entry, version = await self.entry(path)
        namespace, key = self.places.node(path)
        return [
            Delete(namespace=namespace, key=key, if_version=version),
            *await self._removal(path, entry),
            *await self.leaving(path),
        ]

    async def _removal(self, path: Path, entry: Entry) -> list[Operation]:
        chunks, past = self.places.chunks(path), self.places.history(path)
        keys = [*map(chunk_key, range(entry.chunks)), ABSTRACT]
        versions = await self.store.list_keys(past, 2 * MOST_VERSIONS)
        task = Delete(namespace=self.places.tasks, key=name_of_task(path))
        return [
            *(Delete(namespace=chunks, key=key) for key in keys),
            *(Delete(namespace=past, key=key) for key in versions),
            *([task] if self.has_tasks else []),
        ]

    async def move(self, path: Path, target: Path, text: Text) -> list[Operation]:
        """Return the writes that move an entry.

        Args:
            path: The entry.
            target: Its new path.
            text: Its text, with the chunks that it has there.

        Raises:
            MemoryNotFound: There is no entry.
            MemoryConflict: The target is taken.
        """
        entry, version = await self.entry(path)
        if await self.item(target) is not None:
            raise MemoryConflict(str(MemoryURI(target)))
        if entry.digest != text.digest:
            return []
        coming = await self.entering(target)
        kept = {self.places.node(target[:depth]) for depth in range(1, len(target))}
        leaving = await self.leaving(path)
        going = [each for each in leaving if (each.namespace, each.key) not in kept]
        moved = replace(entry, chunks=len(text.chunks))
        namespace, key = self.places.node(path)
        return [
            Delete(namespace=namespace, key=key, if_version=version),
            *await self._removal(path, entry),
            *going,
            *coming,
            self.node_put(target, moved.to_value(), 0),
            *self._chunk_writes(target, text, None),
            *self.abstract_puts(target, moved),
            *await self._moved_history(path, target),
            *self._task(target, moved),
        ]

    async def _moved_history(self, path: Path, target: Path) -> list[Operation]:
        past = await self.store.scan(self.places.history(path), 2 * MOST_VERSIONS)
        space = self.places.history(target)
        return [Put(namespace=space, key=each.key, value=each.value, text="") for each in past]
