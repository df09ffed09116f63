"""The view of extracted memories: `memory://memories/<type>/<key>`, read from the ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from locus_memory.errors import InvalidMemoryURI, MemoryNotFound
from locus_memory.memory.models import Memory, MemoryType, is_expired
from locus_memory.resources.results import (
    MemoryEntry,
)
from locus_memory.resources.storing.places import Path
from locus_memory.resources.uri import MemoryURI

if TYPE_CHECKING:
    from locus_memory.memory.manager import LLMMemoryManager

__all__ = ["FACTS", "MemoriesView", "as_segments"]

FACTS: Final = "memories"
"""The top folder of the view; nothing is written below it."""

_DEPTH: Final = 3


def as_segments(memory: Memory) -> Path | None:
    """Return the path of a memory; `None`: its key is no segment of a URI."""
    segments = (FACTS, memory.type.value, memory.key)
    try:
        MemoryURI(segments)
    except InvalidMemoryURI:
        return None
    return segments


class MemoriesView:
    """The current memories of one scope, as entries that can be read.

    Args:
        manager: Returns the memory manager of the scope.
        clock: Returns seconds since the epoch.
    """

    def __init__(self, manager: Callable[[], LLMMemoryManager], clock: Callable[[], float]) -> None:
        self.manager = manager
        self._clock = clock

    def is_current(self, memory: Memory) -> bool:
        """Whether a memory has not expired."""
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat()
        return not is_expired(memory, now)

    async def read(self, path: Path) -> Memory:
        """Return a memory.

        Raises:
            MemoryNotFound: There is none at this path.
        """
        if len(path) == _DEPTH and path[1] in tuple(MemoryType):
            memory = await self.manager().get(f"{path[1]}:{path[2]}")
            if memory is not None:
                return memory
        raise MemoryNotFound(str(MemoryURI(path)))

    async def children(self, path: Path) -> AsyncIterator[MemoryEntry]:
        """Yield the types that have memories, or the memories of a type."""
        if len(path) == 1:
            for kind in MemoryType:
                async for _ in self.entries(kind):
                    uri = MemoryURI((*path, kind.value), is_folder=True)
                    yield MemoryEntry(kind.value, str(uri), is_dir=True)
                    break
        elif len(path) == _DEPTH - 1 and path[1] in tuple(MemoryType):
            async for _, entry in self.entries(MemoryType(path[1])):
                yield entry

    async def entries(self, kind: MemoryType) -> AsyncIterator[tuple[Memory, MemoryEntry]]:
        """Yield the memories of a type with their entries."""
        async for memory in self.manager().memories(kind):
            segments = as_segments(memory)
            if segments is not None:
                size = len(memory.content.encode())
                yield (
                    memory,
                    MemoryEntry(memory.key, str(MemoryURI(segments)), is_dir=False, size=size),
                )
