"""The candidates of a ranking: the hits of two searches in one transaction, decoded once.

An item never changes under its revision, since every put takes a new one. So decoded items are
cached by revision, and a search reads only new ones.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import item_of, item_of_hit
from locus_memory.errors import BackendCorruptError
from locus_memory.store.candidates import Candidate, Candidates
from locus_memory.store.item import StoreItem

__all__ = ["Found", "ItemCache"]

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


class ItemCache:
    """A cache of the last candidates, shared by the reader threads.

    It holds two generations: when the younger one is full, the older one is dropped.
    """

    def __init__(self) -> None:
        # Each with about how many bytes it takes.
        self._young: dict[int, tuple[StoreItem, int]] = {}
        self._old: dict[int, tuple[StoreItem, int]] = {}
        self._size = 0

    def candidates(
        self,
        connection: sqlite3.Connection,
        by_text: Sequence[Found],
        by_vector: Sequence[Found],
    ) -> Candidates:
        """Return the hits with their items.

        Raises:
            BackendCorruptError: An item does not exist, or is damaged.
        """
        items: dict[int, StoreItem] = {}
        for found, statement, decode in (
            (by_text, queries.ITEMS, item_of),
            (by_vector, queries.ITEMS_OF_VECTORS, item_of_hit),
        ):
            unknown = [each.id for each in found if not self._holds(each.revision, items)]
            if unknown:
                rows = connection.execute(statement, {"ids": json.dumps(unknown)})
                for revision, *row in rows:
                    size = len(row[_VALUE]) + len(row[_METADATA]) + _OVERHEAD
                    items[revision] = self._hold(revision, decode(row), size)
        return Candidates(_scored(by_text, items), _scored(by_vector, items), kept=True)

    def _holds(self, revision: int, items: dict[int, StoreItem]) -> bool:
        """Return whether an item is cached, which is added to `items` then."""
        held = self._young.get(revision) or self._old.get(revision)
        if held is not None and revision not in items:
            items[revision] = self._hold(revision, *held)
        return revision in items

    def _hold(self, revision: int, item: StoreItem, size: int) -> StoreItem:
        if self._size > _CAPACITY // 2:
            self._old, self._young, self._size = self._young, {}, 0
        if revision not in self._young:
            self._young[revision] = item, size
            self._size += size
        return item


def _scored(found: Iterable[Found], items: Mapping[int, StoreItem]) -> list[Candidate]:
    try:
        return [Candidate(items[each.revision], each.score) for each in found]
    except KeyError:
        raise BackendCorruptError(
            "sqlite: an index is damaged: an item in it does not exist"
        ) from None
