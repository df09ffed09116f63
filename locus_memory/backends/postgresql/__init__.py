"""The PostgreSQL backend.

Each verb is one statement, and `schema.py` migrates the tables when a database is first used.
Values are `jsonb`, text search is BM25 over `tsvector`, vectors are pgvector's.

Read `backend.py` and `store.py` first, then `connection/`, `items/` and `search/`; `checkpoints.py`
and `checkpoint_queries.py` stand alone.
"""

from locus_memory._internal.providers.drivers import require

require("asyncpg", "postgresql")
