"""The caches of the searches of a store, as long as they are of its database."""

from __future__ import annotations

import sqlite3
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Final

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.search.candidates import ItemCache
from locus_memory.backends.sqlite.search.texts import TextSearch

if TYPE_CHECKING:
    from locus_memory.backends.sqlite.search.vectors import VectorCache

__all__ = ["Caches", "CurrentCaches"]

_SHARE_OF_TEXTS: Final = 8
"""Text search may cache one of so many parts of the bytes for vectors."""


class Caches:
    """The caches of one database.

    Args:
        vector_bytes: How much memory vectors and their codes may take.
    """

    def __init__(self, vector_bytes: int) -> None:
        self._bytes = vector_bytes
        self.texts = TextSearch(vector_bytes // _SHARE_OF_TEXTS)
        self.items = ItemCache()

    @cached_property
    def vectors(self) -> VectorCache:
        """The cache of vectors, made at first use."""
        from locus_memory.backends.sqlite.search import vectors  # noqa: PLC0415 - it loads numpy

        return vectors.VectorCache(self._bytes)


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
