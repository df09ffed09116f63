"""The SQLite backend: the embedded default.

One thread writes and a few read, in WAL mode, so many processes can share a file. Text search is
FTS5's BM25, and vector search is exact, or by codes of many vectors.

Read `backend.py` and `store.py` first, then `items.py` and `queries.py`; `connection/` holds the
threads, `search/` the searches and their caches, and `checkpoints.py` stands alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.backends.sqlite.backend import SQLiteBackend
    from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer, SQLiteDeltaStorage
    from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
    from locus_memory.backends.sqlite.store import SQLiteStore
    from locus_memory.backends.sqlite.upkeep.backups import BackupReport, backup, restore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BackupReport": "upkeep.backups",
            "SQLiteBackend": "backend",
            "SQLiteCheckpointer": "checkpoints",
            "SQLiteDatabase": "connection.connection",
            "SQLiteDeltaStorage": "checkpoints",
            "SQLiteStore": "store",
            "backup": "upkeep.backups",
            "restore": "upkeep.backups",
        },
    )

__all__ = [
    "BackupReport",
    "SQLiteBackend",
    "SQLiteCheckpointer",
    "SQLiteDatabase",
    "SQLiteDeltaStorage",
    "SQLiteStore",
    "backup",
    "restore",
]
