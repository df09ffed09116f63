"""The current memories of one type while changes are made to them: pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from locus_memory.memory.ledger.likeness import gist
from locus_memory.memory.ledger.revision import importance_of, read_memory
from locus_memory.memory.models import Memory, is_expired
from locus_memory.store.item import StoreItem

__all__ = ["Table"]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A memory and when it was written: at `updated_at`, or as the `saved`th change of now."""

    memory: Memory
    updated_at: datetime | None
    saved: int

    def worth(self) -> tuple[float, int, float, str]:
        moment = 0.0 if self.updated_at is None else self.updated_at.timestamp()
        return importance_of(self.memory), self.saved, moment, self.memory.key


class Table:
    """The current memories of one type: finds near-duplicates and the memories to evict first.

    Args:
        items: The items of the type's namespace; items that are not memories are ignored.
        now: The present moment, ISO 8601 in UTC: an expired memory is no duplicate of another.
    """

    def __init__(self, items: Iterable[StoreItem], now: str = "") -> None:
        self._now = now
        self._entries: dict[str, _Entry] = {}
        self._keys: dict[tuple[str, ...], dict[str, None]] = {}
        self._coming: dict[str, tuple[str, ...] | None] = {}
        self._saved = 0
        for item in items:
            memory = read_memory(item)
            if memory is not None:
                self._set(_Entry(memory, item.updated_at, 0))

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def announce(self, key: str, memory: Memory | None) -> None:
        """Record the memory of a key after all changes are made; `None`: none."""
        self._coming[key] = None if memory is None else gist(memory.content)

    def duplicate_of(self, memory: Memory) -> str | None:
        """Return the key of a memory with the same gist as a new one, now and after the changes."""
        meant = gist(memory.content)
        if not meant or memory.key in self._entries:
            return None
        keys = self._keys.get(meant, ())
        return next((key for key in keys if self._is_kept(key, meant)), None)

    def _is_kept(self, key: str, meant: tuple[str, ...]) -> bool:
        """Return whether a memory means the same after the changes, and has not expired."""
        if is_expired(self._entries[key].memory, self._now):
            return False
        return self._coming.get(key, meant) == meant

    def put(self, memory: Memory) -> None:
        """Add a memory that was just saved."""
        self._saved += 1
        self._set(_Entry(memory, None, self._saved))

    def remove(self, key: str) -> None:
        """Delete a memory that is no longer current."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        del self._keys[gist(entry.memory.content)][key]

    def surplus(self, most: int, *, kept: str | None = None) -> list[str]:
        """Return the keys of the least valued memories beyond the `most` allowed.

        The least important come first; among equals, those that were not just saved, then those
        with the oldest update. The key `kept` is never returned.
        """
        worth = sorted(self._entries.values(), key=_Entry.worth)
        keys = [entry.memory.key for entry in worth if entry.memory.key != kept]
        return keys[: max(0, len(worth) - most)]

    def _set(self, entry: _Entry) -> None:
        key = entry.memory.key
        self.remove(key)
        self._entries[key] = entry
        self._keys.setdefault(gist(entry.memory.content), {})[key] = None
