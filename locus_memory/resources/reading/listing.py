"""Listings of a tree: folders first, then entries, each by name; a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator

from locus_memory.errors import MemoryNotFound
from locus_memory.resources.operations import MemoryOpList, MemoryOpTree
from locus_memory.resources.reading.memories import FACTS, MemoriesView
from locus_memory.resources.results import (
    MemoryEntry,
    MemoryListResult,
)
from locus_memory.resources.storing.nodes import Entry, is_folder
from locus_memory.resources.storing.places import Path
from locus_memory.resources.storing.writing import TreeWriter
from locus_memory.resources.uri import MemoryURI, as_uri

__all__ = ["listed"]

_Place = tuple[tuple[bool, str], ...]


async def listed(
    writer: TreeWriter,
    view: MemoriesView,
    op: MemoryOpList | MemoryOpTree,
) -> MemoryListResult:
    """Return what is below a folder; each folder is followed by its children.

    Args:
        writer: Reads the tree.
        view: The memories.
        op: The folder, the depth and the page.

    Raises:
        MemoryNotFound: There is no such folder; the root is always there.
        InvalidMemoryURI: The folder or `after` is no URI.
    """
    uri = as_uri(op.uri)
    depth = op.depth if isinstance(op, MemoryOpTree) else 1
    cursor = None if op.after is None else _place(MemoryURI.parse(op.after))
    found: list[MemoryEntry] = []
    is_there = not uri.segments
    async for entry in _walk(writer, view, uri.segments, depth):
        is_there = True
        if cursor is not None and _place(MemoryURI.parse(entry.uri)) <= cursor:
            continue
        if op.limit is not None and len(found) >= op.limit:
            break
        found.append(entry)
    if not is_there:
        raise MemoryNotFound(str(uri), "there is no such folder")
    return MemoryListResult(tuple(found))


def _place(uri: MemoryURI) -> _Place:
    """Return the place of an entry in the order of a walk: all above it are folders."""
    last = len(uri.segments) - 1
    return tuple((n == last and not uri.is_folder, name) for n, name in enumerate(uri.segments))


async def _walk(
    writer: TreeWriter, view: MemoriesView, path: Path, depth: int
) -> AsyncIterator[MemoryEntry]:
    children = await _children(writer, view, path)
    for child in children:
        yield child
        if child.is_dir and depth > 1:
            async for below in _walk(writer, view, (*path, child.name), depth - 1):
                yield below


async def _children(writer: TreeWriter, view: MemoriesView, path: Path) -> list[MemoryEntry]:
    """Return the children of a folder, in order."""
    if path and path[0] == FACTS:
        found = [each async for each in view.children(path)]
    else:
        found = [each async for each in _stored(writer, path)]
        if not path and [each async for each in view.children((FACTS,))]:
            uri = MemoryURI((FACTS,), is_folder=True)
            found.append(MemoryEntry(FACTS, str(uri), is_dir=True))
    return sorted(found, key=lambda each: (not each.is_dir, each.name))


async def _stored(writer: TreeWriter, path: Path) -> AsyncIterator[MemoryEntry]:
    async for child in writer.children(path):
        below = (*path, child.key)
        if not is_folder(child):
            size = Entry.from_value(child.value).size
            yield MemoryEntry(child.key, str(MemoryURI(below)), is_dir=False, size=size)
        elif writer.is_exact or not await writer.is_empty(below):
            uri = MemoryURI(below, is_folder=True)
            yield MemoryEntry(child.key, str(uri), is_dir=True)
