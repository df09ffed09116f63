"""Where the entries of a conversation are: pure functions, no store.

Entries that follow each other are in one segment, a namespace whose keys are their depths in the
conversation. A branch or a fork begins a segment of its own, behind an entry of another. The path
of an entry names the segments from the first entry to it, each with the last depth that it takes of
it. A history is one query for each segment of its path: one, if nothing was branched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["Chain", "Path", "depth_of", "parts_of", "segments_of"]

Path = tuple[tuple[str, int], ...]
"""The segments of an entry, each with its last depth; depths begin at 0."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The segment that a conversation may append to: its name, and the depth of its last entry."""

    segment: str | None = None
    top: int = -1

    def place(self, entry_id: str, parent: Path) -> tuple[Chain, Path]:
        """Return the path of a new entry behind `parent`, and the chain that it leaves.

        Only the last entry of the own segment is continued there: others may be followed already.
        """
        depth = depth_of(parent) + 1
        if parent and parent[-1] == (self.segment, self.top):
            return replace(self, top=depth), (*parent[:-1], (parent[-1][0], depth))
        return Chain(entry_id, depth), (*parent, (entry_id, depth))


def depth_of(path: Path) -> int:
    """Return the depth of the entry with this path; of none, -1."""
    return path[-1][1] if path else -1


def parts_of(path: Path, limit: int | None) -> list[tuple[str, int, int]]:
    """Return the segments to read, each with the first and the last depth to read in it.

    Args:
        path: The path of the last entry.
        limit: How many entries to read at most.
    """
    first = 0 if limit is None else depth_of(path) + 1 - limit
    begins = (0, *(last + 1 for _, last in path))
    return [
        (segment, max(first, begin), last)
        for begin, (segment, last) in zip(begins, path, strict=False)
        if first <= last
    ]


def segments_of(paths: Iterable[Path]) -> set[str]:
    """Return the segments of all the paths."""
    return {segment for path in paths for segment, _ in path}
