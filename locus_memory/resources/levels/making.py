"""The levels and vectors of entries that a model or an embedder makes, and those of folders."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Final

from locus_memory._internal.offload import in_thread
from locus_memory._internal.running.paging import batches
from locus_memory.chat.base import ChatModel
from locus_memory.documents.layout import digest_of
from locus_memory.errors import MemoryNotFound, VersionConflictError
from locus_memory.events import emit
from locus_memory.resources.levels.modelled import HINTS, modelled_levels
from locus_memory.resources.levels.rules import Levels, folder_levels, levels_of
from locus_memory.resources.storing.nodes import Entry, is_folder, prepared
from locus_memory.resources.storing.places import Path, name_of_task
from locus_memory.resources.storing.plans import Operation, Plans
from locus_memory.resources.storing.writing import TreeWriter
from locus_memory.resources.uri import MemoryURI
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedding import embedded_puts
from locus_memory.store.base import has_semantic_search, write_together
from locus_memory.store.item import Delete

__all__ = ["LevelMaker"]

_MOST_CHILDREN: Final = 50
_MOST_NAMES: Final = 10
_BATCH: Final = 64


@dataclass(frozen=True, slots=True)
class LevelMaker:
    """A maker of levels and vectors; what it writes holds only for the text that it read.

    Attributes:
        plans: The plans of the tree.
        writer: The writer of the tree.
        embedder: Makes the vectors of chunks; `None`: there are none.
        model: Makes the levels; `None`: rules do, with each write.
    """

    plans: Plans
    writer: TreeWriter
    embedder: Embedder | None = None
    model: ChatModel | None = None

    async def complete(self, path: Path) -> None:
        """Make what an entry lacks, and end its task; an entry that is gone needs nothing.

        Raises:
            ModelError: The model failed; the entry keeps its task.
            BackendError: The store failed.
        """
        tasks, name = self.plans.places.tasks, name_of_task(path)
        if not await self.plans.store.exists(tasks, name):
            return
        try:
            entry, version = await self.plans.entry(path)
        except MemoryNotFound:
            await self.plans.store.delete(tasks, name)
            return
        levels = entry.levels or await self._modelled(entry)
        made = replace(entry, levels=levels)
        operations = [
            self.plans.node_put(path, made.to_value(), version),
            *await self._chunks(path, made),
            Delete(namespace=tasks, key=name),
        ]
        try:
            await write_together(self.plans.store, operations)
        except VersionConflictError:
            # Another write came first, and has a task of its own; or the levels are made already.
            item = await self.plans.item(path)
            if item is not None and item.value.get("revision") == entry.revision:
                await self.complete(path)

    async def _modelled(self, entry: Entry) -> Levels:
        if self.model is None:
            return await in_thread(levels_of, entry.content, entry.digest)
        hints = {name: entry.metadata.get(name, "") for name in HINTS}
        return await modelled_levels(self.model, entry.content, entry.digest, hints)

    async def _chunks(self, path: Path, entry: Entry) -> list[Operation]:
        """Return the puts of the chunks with their vectors, and of an abstract by a model."""
        puts = self.plans.abstract_puts(path, entry)
        if self.embedder is None or not await has_semantic_search(self.plans.store):
            return list(puts)
        text = await prepared(entry.content, path[-1])
        puts += self.plans.chunk_puts(path, text)
        return [
            made
            for batch in batches(puts, _BATCH)
            for made in await embedded_puts(
                batch, self.embedder, [each.text or "" for each in batch]
            )
        ]

    async def levels(self, path: Path, entry: Entry) -> Levels:
        """Return the levels of an entry, made now if need be; a failing model leaves it to rules.

        Raises:
            BackendError: The store failed.
        """
        if entry.levels is not None:
            return entry.levels
        try:
            made = await self._modelled(entry)
        except Exception as error:  # noqa: BLE001 - reported; the rules must do
            emit("resources.levels_failed", error=error)
            return await in_thread(levels_of, entry.content, entry.digest)
        await self._keep(path, entry, made)
        return made

    async def _keep(self, path: Path, entry: Entry, made: Levels) -> None:
        """Store the levels of an entry, unless it changed meanwhile."""
        with suppress(VersionConflictError, MemoryNotFound):
            now, version = await self.plans.entry(path)
            if now.digest != entry.digest or now.levels is not None:
                return
            now = replace(now, levels=made)
            node = self.plans.node_put(path, now.to_value(), version)
            await write_together(self.plans.store, [node, *self.plans.abstract_puts(path, now)])

    async def folder(self, path: Path) -> Levels:
        """Return the levels of a folder, from the abstracts of its first 50 children.

        Raises:
            MemoryNotFound: There is no such folder.
            BackendError: The store failed.
        """
        children = await self._children(path)
        if not children and path:
            raise MemoryNotFound(str(MemoryURI(path, is_folder=True)))
        lines = "\n".join(f"{name}\n{abstract}" for name, abstract in children)
        digest = digest_of(lines)
        if self.model is None or not children:
            return folder_levels(children, digest)
        stored = await self.plans.store.get(*self.plans.places.levels(path))
        known = Levels.from_value(stored, digest)
        if known is not None:
            return known
        try:
            made = await modelled_levels(self.model, lines, digest)
        except Exception as error:  # noqa: BLE001 - reported; the rules must do
            emit("resources.levels_failed", error=error)
            return folder_levels(children, digest)
        await self.plans.store.put(*self.plans.places.levels(path), asdict(made), text="")
        return made

    async def _children(self, path: Path) -> Sequence[tuple[str, str]]:
        """Return the names and the abstracts of the first children."""
        found: list[tuple[str, str]] = []
        async for child in self.writer.children(path):
            if len(found) == _MOST_CHILDREN:
                break
            below = (*path, child.key)
            if is_folder(child):
                found.append((f"{child.key}/", await self._inner(below)))
            else:
                levels = await self.levels(below, Entry.from_value(child.value))
                found.append((child.key, levels.abstract))
        return found

    async def _inner(self, path: Path) -> str:
        """Return what a folder in a folder is about, whatever its depth: names, and one entry.

        Its own levels may need those of any number of folders below it.
        """
        names = self.plans.places.children(path)
        children = [(name, "") for name in await self.plans.store.list_keys(names, _MOST_NAMES)]
        async for below in self.writer.entries(path):
            # One that was deleted meanwhile is passed over.
            with suppress(MemoryNotFound):
                entry, _ = await self.plans.entry(below)
                children.append(("", (await self.levels(below, entry)).abstract))
                break
        return folder_levels(children, "").abstract
