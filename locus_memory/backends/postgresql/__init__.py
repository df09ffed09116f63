"""The PostgreSQL backend.

Each verb is one statement, and `schema.py` migrates the tables at the first use of a database.
Values are `jsonb`, text search is BM25 over `tsvector`, and vector search uses pgvector.

Read `backend.py` and `store.py` first, then `connection/`, `items/` and `search/`; `checkpoints.py`
and `records.py` stand alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names
from locus_memory._internal.providers.drivers import require

require("asyncpg", "postgresql")

if TYPE_CHECKING:
    from locus_memory.backends.postgresql.backend import PostgreSQLBackend
    from locus_memory.backends.postgresql.checkpoints import (
        PostgreSQLCheckpointer,
        PostgreSQLDeltaStorage,
    )
    from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
    from locus_memory.backends.postgresql.options import PostgreSQLOptions
    from locus_memory.backends.postgresql.store import PostgreSQLStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "PostgreSQLBackend": "backend",
            "PostgreSQLCheckpointer": "checkpoints",
            "PostgreSQLDeltaStorage": "checkpoints",
            "PostgreSQLOptions": "options",
            "PostgreSQLPool": "connection.connection",
            "PostgreSQLStore": "store",
        },
    )

__all__ = [
    "PostgreSQLBackend",
    "PostgreSQLCheckpointer",
    "PostgreSQLDeltaStorage",
    "PostgreSQLOptions",
    "PostgreSQLPool",
    "PostgreSQLStore",
]
