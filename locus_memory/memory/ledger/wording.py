"""What text search sees of a memory: what it says, and what it said before; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from locus_memory.memory.models import Memory

__all__ = ["search_text"]

_MOST: Final = 3
_LONGEST: Final = 500
"""How many of the versions before, and how many characters of them all, are searched."""

_NOTHING: Final[Mapping[int, Memory | None]] = {}


def search_text(memory: Memory, past: Mapping[int, Memory | None] = _NOTHING) -> str:
    """Return what text search sees of a memory: its key, its content and what it superseded.

    A question in the words of what was replaced so finds what is true now. What was undone is
    in nobody's links, nor is what a deleted key said before it was made anew.

    Args:
        memory: The memory.
        past: Past versions of its key, by number.
    """
    return "\n".join((memory.key, memory.content, *_before(memory, past)))


def _before(memory: Memory, past: Mapping[int, Memory | None]) -> Iterator[str]:
    """Yield what superseded versions say, the newest first; nothing twice, and not too much."""
    seen = {memory.content}
    room = _LONGEST
    for version in islice(_superseded(memory, past), _MOST):
        content = version.content[:room]
        if content and content not in seen:
            seen.add(content)
            room -= len(content)
            yield content


def _superseded(memory: Memory, past: Mapping[int, Memory | None]) -> Iterator[Memory]:
    """Yield the versions that a memory goes back to by its links, as far as they are there."""
    version: Memory | None = memory
    number: float = math.inf
    while version is not None:
        link = version.metadata.get("supersedes")
        if not isinstance(link, Mapping) or link.get("key") != memory.key:
            return
        earlier = link.get("sequence")
        # Numbers fall from link to link, so that no forged one leads in a circle.
        if not isinstance(earlier, int) or earlier >= number:
            return
        number, version = earlier, past.get(earlier)
        if version is not None:
            yield version
