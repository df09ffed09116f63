"""The candidates of a ranking: what two searches of one moment found, each item decoded once.

An item never changes under its revision, for every put takes a new one. So what was decoded is
held by its revision, and a search reads only what is new.
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
"""How many bytes of items are held, about."""

_VALUE, _METADATA = -7, -6
"""Where a row has the two, whatever it begins with."""

_OVERHEAD: Final = 1_000
"""What an item takes beside the text of its value and its metadata, about."""


class Found(NamedTuple):
    """What a search found, not read yet.

    Attributes:
        id: The id of the item; of a vector, its revision.
        revision: That of the item.
        score: How good it is.
    """

    id: int
    revision: int
    score: float


class Held(NamedTuple):
    """An item, and how many bytes it takes, about."""

    item: StoreItem
    size: int


class ItemCache:
    """The items that were candidates last; the reader threads share it.

    Those of two generations are held: when the younger one is full, the older one goes.
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
        """Return what was found, with its items, and those among them that are not held yet.

        Raises:
            BackendCorruptError: An item is not there, or not what was written.
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
        """Hold items from now on.

        Only once the transaction that saw them is over: it may have seen what is undone
        later, and then its revision comes again.
        """
        with self._lock:
            for revision, held in items.items():
                self._add(revision, held)

    def _held(self, revisions: Iterable[int]) -> dict[int, Held]:
        """Return those that are held."""
        found: dict[int, Held] = {}
        with self._lock:
            for revision in revisions:
                held = self._young.get(revision)
                if held is None and (held := self._old.pop(revision, None)) is not None:
                    self._add(revision, held)
                if held is not None:
                    found[revision] = held
        return found

    def _add(self, revision: int, held: Held) -> None:
        if self._size > _CAPACITY // 2:
            self._old, self._young, self._size = self._young, {}, 0
        self._young[revision] = held
        self._size += held.size


def _held(item: StoreItem, row: Sequence[Any]) -> Held:
    """Return an item, and about what it takes: its row says how long its documents are."""
    value, metadata = row[_VALUE], row[_METADATA]
    return Held(item, len(value) + len(metadata) + _OVERHEAD)


def _scored(found: Iterable[Found], items: Mapping[int, Held]) -> list[Candidate]:
    try:
        return [Candidate(items[each.revision].item, each.score) for each in found]
    except KeyError:
        raise BackendCorruptError(
            "sqlite: an index is damaged: an item that it has is not there"
        ) from None
