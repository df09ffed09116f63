"""The search text of a memory: its content, and the content it superseded; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from locus_memory.memory.models import Memory

__all__ = ["search_text"]

_MOST: Final = 3
_LONGEST: Final = 500
"""How many past versions, and how many characters of all of them, are searched."""

_NOTHING: Final[Mapping[int, Memory | None]] = {}


def search_text(memory: Memory, past: Mapping[int, Memory | None] = _NOTHING) -> str:
    """Return the search text of a memory: its key, its content and the content it superseded.

    So a question in the words of a superseded memory finds the current one. Undone versions are
    in no links, and neither are those of a deleted key that was written again later.

    Args:
        memory: The memory.
        past: Past versions of its key, by number.
    """
    return "\n".join((memory.key, memory.content, *_before(memory, past)))


def _before(memory: Memory, past: Mapping[int, Memory | None]) -> Iterator[str]:
    """Yield the contents of superseded versions, newest first, without duplicates, up to limits."""
    seen = {memory.content}
    room = _LONGEST
    for version in islice(_superseded(memory, past), _MOST):
        content = version.content[:room]
        if content and content not in seen:
            seen.add(content)
            room -= len(content)
            yield content


def _superseded(memory: Memory, past: Mapping[int, Memory | None]) -> Iterator[Memory]:
    """Yield the versions that a memory supersedes by its links, as far as they exist."""
    version: Memory | None = memory
    number: float = math.inf
    while version is not None:
        link = version.metadata.get("supersedes")
        if not isinstance(link, Mapping) or link.get("key") != memory.key:
            return
        earlier = link.get("sequence")
        # Numbers fall from link to link, so that a forged link cannot form a circle.
        if not isinstance(earlier, int) or earlier >= number:
            return
        number, version = earlier, past.get(earlier)
        if version is not None:
            yield version
