"""The candidates of a ranking: the hits of two searches in one transaction, decoded once.

An item never changes under its revision, since every put takes a new one. So decoded items are
cached by revision, and a search reads only new ones.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import item_of, item_of_hit
from locus_memory.errors import BackendCorruptError
from locus_memory.store.candidates import Candidate, Candidates
from locus_memory.store.item import StoreItem

__all__ = ["Found", "Held", "ItemCache"]

_CAPACITY: Final = 16 * 2**20
"""About how many bytes of items are cached."""

_VALUE, _METADATA = -7, -6
"""The positions of both in a row, whatever its first columns are."""

_OVERHEAD: Final = 1_000
"""About how many bytes an item takes beside the text of its value and its metadata."""


class Found(NamedTuple):
    """A hit of a search, not read yet.

    Attributes:
        id: The id of the item; for a vector, its revision.
        revision: The revision of the item.
        score: The score of the hit.
    """

    id: int
    revision: int
    score: float


class Held(NamedTuple):
    """An item, and about how many bytes it takes."""

    item: StoreItem
    size: int


class ItemCache:
    """A cache of the last candidates, shared by the reader threads.

    It holds two generations: when the younger one is full, the older one is dropped.
    """

    def __init__(self) -> None:
        self._young: dict[int, Held] = {}
        self._old: dict[int, Held] = {}
        self._size = 0
        self._lock = threading.Lock()

    def candidates(
        self,
        connection: sqlite3.Connection,
        by_text: Sequence[Found],
        by_vector: Sequence[Found],
    ) -> tuple[Candidates, Mapping[int, Held]]:
        """Return the hits with their items, and the hits whose items are not cached.

        Raises:
            BackendCorruptError: An item does not exist, or is damaged.
        """
        held = self._held(each.revision for each in (*by_text, *by_vector))
        new: dict[int, Held] = {}
        for found, statement, decode in (
            (by_text, queries.ITEMS, item_of),
            (by_vector, queries.ITEMS_OF_VECTORS, item_of_hit),
        ):
            unknown = [
                each.id for each in found if each.revision not in held and each.revision not in new
            ]
            if unknown:
                rows = connection.execute(statement, {"ids": json.dumps(unknown)})
                new |= {revision: _held(decode(row), row) for revision, *row in rows}
        items = held | new
        return Candidates(_scored(by_text, items), _scored(by_vector, items), kept=True), new

    def hold(self, items: Mapping[int, Held]) -> None:
        """Add items to the cache.

        Call it only after the transaction that read them: it may have read a write that is rolled
        back later, and then its revision is used again.
        """
        with self._lock:
            for revision, held in items.items():
                self._add(revision, held)

    def _held(self, revisions: Iterable[int]) -> dict[int, Held]:
        """Return the cached items."""
        wanted = dict.fromkeys(revisions)
        with self._lock:
            young = self._young
            found = {each: young[each] for each in wanted if each in young}
            for revision in wanted.keys() - found.keys():
                held = self._old.pop(revision, None)
                if held is not None:
                    self._add(revision, held)
                    found[revision] = held
        return found

    def _add(self, revision: int, held: Held) -> None:
        if self._size > _CAPACITY // 2:
            self._old, self._young, self._size = self._young, {}, 0
        self._young[revision] = held
        self._size += held.size


def _held(item: StoreItem, row: Sequence[Any]) -> Held:
    """Return an item and about its size, from the lengths of its documents in the row."""
    value, metadata = row[_VALUE], row[_METADATA]
    return Held(item, len(value) + len(metadata) + _OVERHEAD)


def _scored(found: Iterable[Found], items: Mapping[int, Held]) -> list[Candidate]:
    try:
        return [Candidate(items[each.revision].item, each.score) for each in found]
    except KeyError:
        raise BackendCorruptError(
            "sqlite: an index is damaged: an item in it does not exist"
        ) from None
