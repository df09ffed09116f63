"""The caches of the searches of a store, as long as they are of its database.

An item never changes under its revision, since every put takes a new one. So the items that hybrid
searches found last are cached by revision, and a search decodes only new ones.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.selection import Page
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import Scope, item_of, item_of_hit
from locus_memory.backends.sqlite.search.texts import Hit, Matches
from locus_memory.errors import BackendCorruptError
from locus_memory.store.candidates import Candidate, Candidates
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem

if TYPE_CHECKING:
    from locus_memory.backends.sqlite.search.postings import PostedSearch
    from locus_memory.backends.sqlite.search.vectors import VectorCache

__all__ = ["Caches", "CurrentCaches", "Found", "ItemCache"]

_SHARE_OF_TEXTS: Final = 8
"""Text search may cache one of so many parts of the bytes for vectors."""

_UNCOUNTED: Final = 1_000
"""In a file of so few items, FTS5 ranks whatever matches."""

_MANY: Final = 500
"""More matches are ranked faster by postings."""

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
    """A cache of the last candidates, shared by the reader threads."""

    def __init__(self) -> None:
        # Each with about how many bytes it takes.
        self._kept: RecentlyUsed[tuple[StoreItem, int]] = RecentlyUsed(_CAPACITY, itemgetter(1))

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
            for revision in {each.revision for each in found}:
                if (kept := self._kept.get(str(revision))) is not None:
                    self._kept.touch(str(revision))
                    items[revision] = kept[0]
            unknown = [each.id for each in found if each.revision not in items]
            if unknown:
                rows = connection.execute(statement, {"ids": json.dumps(unknown)})
                for revision, *row in rows:
                    size = len(row[_VALUE]) + len(row[_METADATA]) + _OVERHEAD
                    items[revision] = decode(row)
                    self._kept.put(str(revision), (items[revision], size))
        return Candidates(_scored(by_text, items), _scored(by_vector, items), kept=True)


def _scored(found: Iterable[Found], items: Mapping[int, StoreItem]) -> list[Candidate]:
    try:
        return [Candidate(items[each.revision], each.score) for each in found]
    except KeyError:
        raise BackendCorruptError(
            "sqlite: an index is damaged: an item in it does not exist"
        ) from None


class Caches:
    """The caches of one database.

    Args:
        vector_bytes: How much memory vectors and their codes may take.
    """

    def __init__(self, vector_bytes: int) -> None:
        self._bytes = vector_bytes
        self.items = ItemCache()

    @cached_property
    def posted(self) -> PostedSearch | None:
        """The search by postings, made at first use; `None`: it may take no memory."""
        capacity = self._bytes // _SHARE_OF_TEXTS
        if not capacity:
            return None
        from locus_memory.backends.sqlite.search.postings import PostedSearch  # noqa: PLC0415 - it loads numpy

        return PostedSearch(capacity)

    @cached_property
    def vectors(self) -> VectorCache:
        """The cache of vectors, made at first use."""
        from locus_memory.backends.sqlite.search.vectors import VectorCache  # noqa: PLC0415 - it loads numpy

        return VectorCache(self._bytes)

    def matches(
        self,
        connection: sqlite3.Connection,
        scope: Scope,
        words: Iterable[str],
        condition: Condition,
        page: Page,
    ) -> list[Hit]:
        """Return the matches of any of the words that satisfy the condition, the best first.

        FTS5 counts the items of each word in each statement, and steps through all of them. Many
        matches are ranked by postings, which are cached.

        Raises:
            OutdatedError: The transaction is older than the cache.
        """
        matches = Matches.of(connection, scope, condition) if page.limit else None
        if matches is None:
            return []
        quoted = [f'"{word.removesuffix("*")}"{"*" * word.endswith("*")}' for word in words]
        # The postings are of whole words.
        is_many = matches.totals.rows > _UNCOUNTED and not quoted[0].endswith("*")
        is_many = is_many and matches.are_more(quoted, _MANY)
        if is_many and self.posted is not None:
            found = self.posted.find(matches, quoted, page.offset + page.limit)
            if found is not None:
                return found[page.offset :]
        return matches.page(quoted, page, is_many=is_many)


class CurrentCaches:
    """The caches of the database that a file holds now.

    A backup that is restored to an open file is another database: it uses revisions and ids again
    that the former one had. SQLite gives the schema a new number then, which no write changes.

    Args:
        vector_bytes: As for `Caches`.
    """

    def __init__(self, vector_bytes: int) -> None:
        self._bytes = vector_bytes
        self._schema: int | None = None
        self._lock = threading.Lock()
        self.last = Caches(vector_bytes)
        """The caches of the last search."""

    def of(self, connection: sqlite3.Connection) -> Caches:
        """Return the caches of the database that a transaction sees."""
        (schema,) = connection.execute(queries.SCHEMA).fetchone()
        with self._lock:
            if self._schema not in (None, schema):
                self.last = Caches(self._bytes)
            self._schema = schema
            return self.last
