"""Reading entries at their levels, the summaries of folders, and past versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from locus_memory._internal.offload import in_thread
from locus_memory.errors import MemoryNotFound
from locus_memory.resources.levels.making import LevelMaker
from locus_memory.resources.levels.rules import folder_levels, levels_of
from locus_memory.resources.operations import (
    MemoryOpHistory,
    MemoryOpRead,
)
from locus_memory.resources.reading.memories import FACTS, MemoriesView
from locus_memory.resources.results import (
    MemoryHistoryResult,
    MemoryReadResult,
    MemoryVersion,
)
from locus_memory.resources.storing.nodes import Entry, is_folder
from locus_memory.resources.storing.plans import MOST_VERSIONS, Plans, version_key
from locus_memory.resources.uri import MemoryURI, as_uri

__all__ = ["Reader"]


_Read = tuple[str, Mapping[str, str], int | None]
"""A text, its metadata and its version."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of one tree.

    Attributes:
        plans: The plans of the tree.
        maker: Makes levels that are not made yet.
        view: The memories.
    """

    plans: Plans
    maker: LevelMaker
    view: MemoriesView

    async def is_folder(self, uri: MemoryURI) -> bool:
        """Whether a URI says that it is a folder, or it is one."""
        if uri.is_folder:
            return True
        item = await self.plans.item(uri.segments)
        return item is not None and is_folder(item)

    async def read(self, op: MemoryOpRead) -> MemoryReadResult:
        """Return what the operation asks for.

        Raises:
            MemoryNotFound: There is no such entry, or it has no such level or version.
            InvalidMemoryURI: The URI is none.
        """
        uri = as_uri(op.uri)
        if uri.segments and uri.segments[0] == FACTS:
            text, metadata, version = await self._fact(op, uri)
        elif await self.is_folder(uri):
            text, metadata, version = await self._folder(op, uri)
        else:
            text, metadata, version = await self._entry(op, uri)
        data = text if op.encoding is not None else text.encode()
        return MemoryReadResult(str(uri), data, op.level, metadata, version)

    async def _fact(self, op: MemoryOpRead, uri: MemoryURI) -> _Read:
        if op.version is not None:
            raise MemoryNotFound(str(uri), "the history of a memory is with its memory manager")
        children = [each async for each in self.view.children(uri.segments)]
        if children and op.level != "detail":
            names = [(each.name, "") for each in children]
            return getattr(folder_levels(names, ""), op.level), {"made_by": "rules"}, None
        memory = await self.view.read(uri.segments)
        facts = {name: text for name, text in memory.metadata.items() if isinstance(text, str)}
        if op.level == "detail":
            return memory.content, facts, None
        levels = await in_thread(levels_of, memory.content, "")
        return getattr(levels, op.level), {**facts, "made_by": levels.made_by}, None

    async def _folder(self, op: MemoryOpRead, uri: MemoryURI) -> _Read:
        if op.level == "detail" or op.version is not None:
            raise MemoryNotFound(str(uri), "it is a folder: read its abstract or overview")
        levels = await self.maker.folder(uri.segments)
        return getattr(levels, op.level), {"made_by": levels.made_by}, None

    async def _entry(self, op: MemoryOpRead, uri: MemoryURI) -> _Read:
        entry, _ = await self.plans.entry(uri.segments)
        if op.version is not None and op.version != entry.revision:
            entry = await self._past(uri, op.version)
        if op.level == "detail":
            return entry.content, dict(entry.metadata), entry.revision
        levels = await self.maker.levels(uri.segments, entry)
        metadata = {**entry.metadata, "made_by": levels.made_by}
        return getattr(levels, op.level), metadata, entry.revision

    async def _past(self, uri: MemoryURI, version: int) -> Entry:
        space = self.plans.places.history(uri.segments)
        value = await self.plans.store.get(space, version_key(version))
        if value is None:
            raise MemoryNotFound(str(uri), f"version {version} is not kept")
        return Entry.from_value(value)

    async def history(self, op: MemoryOpHistory) -> MemoryHistoryResult:
        """Return the versions of an entry.

        Raises:
            MemoryNotFound: There is no such entry.
            InvalidMemoryURI: The URI is none.
        """
        uri = as_uri(op.uri)
        if uri.is_folder:
            raise MemoryNotFound(str(uri), "it is a folder, which has no history")
        entry, _ = await self.plans.entry(uri.segments)
        space = self.plans.places.history(uri.segments)
        past = await self.plans.store.scan(space, MOST_VERSIONS, descending=True)
        entries = [entry, *(Entry.from_value(each.value) for each in past)]
        versions = [
            MemoryVersion(each.revision, each.size, datetime.fromisoformat(each.written_at))
            for each in entries
        ]
        return MemoryHistoryResult(str(uri), tuple(versions))
