"""The search text of a memory: its content, and the content it superseded; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from locus_memory.memory.models import Memory

__all__ = ["ended_by", "ending_of", "search_text"]

_MOST: Final = 3
_LONGEST: Final = 500
"""How many past versions, and how many characters of all of them, are searched."""

_NOTHING: Final[Mapping[int, Memory | None]] = {}


def search_text(memory: Memory, past: Mapping[int, Memory | None] = _NOTHING) -> str:
    """Return the search text of a memory: its key, its content and the content it superseded.

    So a question in the words of a superseded memory finds the current one. Versions that were
    undone do not count, and neither do those of a key that was deleted and written again later.

    Args:
        memory: The memory.
        past: Past versions of its key, by number.
    """
    told = (each.content for each in islice(_superseded(memory, past), _MOST))
    before = "\n".join(told)[:_LONGEST]
    return "\n".join(filter(None, (memory.key, memory.content, before)))


def _superseded(memory: Memory, past: Mapping[int, Memory | None]) -> Iterator[Memory]:
    """Yield the versions that a memory supersedes, the newest first."""
    sequence = memory.metadata.get("sequence")
    number = sequence if isinstance(sequence, int) else 0
    for earlier in sorted((each for each in past if each < number), reverse=True):
        version = past[earlier]
        ending = None if version is None else ending_of(version)
        if version is not None and ending == "update":
            yield version
        elif ending in ("delete", "evict"):
            return


def ending_of(memory: Memory) -> str | None:
    """Return the `Ending` of a past version; `None` for a current one."""
    return ended_by(memory).get("change")


def ended_by(memory: Memory) -> Mapping[str, Any]:
    """Return what tells of the change that ended a past version; nothing for a current one."""
    by = memory.metadata.get("superseded_by")
    return by if isinstance(by, Mapping) else {}
