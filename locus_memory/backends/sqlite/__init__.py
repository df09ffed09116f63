"""The SQLite backend: the embedded default."""

from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.store import SQLiteStore

__all__ = ["SQLiteDatabase", "SQLiteStore"]
