"""The SQLite backend: the embedded default.

One thread writes and a few read, in WAL mode, so that many processes share a file. Text search is
FTS5's BM25, vector search is exact.

Read `backend.py` and `store.py` first, then `items.py` and `queries.py`; `connection/` holds the
threads, `checkpoints.py` stands alone.
"""

from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.store import SQLiteStore

__all__ = ["SQLiteDatabase", "SQLiteStore"]
