"""The memories that may be the same as those that are written; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from locus_memory.memory.ledger.likeness import folded
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory, MemoryType, has_authority, is_expired
from locus_memory.memory.scope import current_key
from locus_memory.store.item import StoreItem

__all__ = ["Table"]


class Table:
    """The memories that are the same as others, while changes are made.

    Args:
        items: The current memories that may be the same; items that are no memories are ignored.
        taken: The `current_key` of each memory of the changes that is current.
        coming: The content of each memory after all changes, by its `current_key`; `None`: it is
            gone.
        now: The present moment, ISO 8601 in UTC: nothing is the same as an expired memory.
    """

    def __init__(
        self,
        items: Iterable[StoreItem],
        taken: Iterable[str],
        coming: Mapping[str, str | None],
        now: str,
    ) -> None:
        self._taken = set(taken)
        self._coming = coming
        self._known: dict[tuple[MemoryType, str], list[Memory]] = {}
        for memory in filter(None, map(read_memory, items)):
            if not is_expired(memory, now):
                self._add(memory)

    def duplicate_of(self, memory: Memory) -> str | None:
        """Return the key of a memory that is the same as a new one, now and after the changes.

        What the user says is not the same as what a tool, a document or an import told.
        """
        if current_key(memory.type, memory.key) in self._taken:
            return None
        said = folded(memory.content)
        known = self._known.get((memory.type, said), ())
        told = [each for each in known if has_authority(each) or not has_authority(memory)]
        return next((each.key for each in told if self._stays(memory.type, each.key, said)), None)

    def put(self, memory: Memory) -> None:
        """Add a memory that was just written."""
        self._taken.add(current_key(memory.type, memory.key))
        self._add(memory)

    def _add(self, memory: Memory) -> None:
        self._known.setdefault((memory.type, folded(memory.content)), []).append(memory)

    def _stays(self, kind: MemoryType, key: str, said: str) -> bool:
        content = self._coming.get(current_key(kind, key), said)
        return content is not None and folded(content) == said
