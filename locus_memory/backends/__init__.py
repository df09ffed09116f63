"""The backends: one folder per database, with the same file names in each.

Import a backend from its own folder or through the registry. The modules beside the folders hold
code that several backends share, so a backend is a connection, a schema and two classes.

Read `base.py` and `providers.py` first, then `checked_store.py`, over which each store is written,
`table_store.py` and `inmemory/`, the smallest backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend, ComposedBackend
    from locus_memory.backends.file.backend import FileBackend as FileBackend
    from locus_memory.backends.file.checkpoints import FileCheckpointer as FileCheckpointer
    from locus_memory.backends.inmemory.backend import InMemoryBackend as InMemoryBackend
    from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer as MemoryCheckpointer
    from locus_memory.backends.inmemory.store import InMemoryStore as InMemoryStore
    from locus_memory.backends.oci.backend import OCIBackend as OCIBackend
    from locus_memory.backends.oci.checkpoints import OCIBucketCheckpointer as OCIBucketCheckpointer
    from locus_memory.backends.oci.checkpoints import OCICheckpointer as OCICheckpointer
    from locus_memory.backends.oci.store import OCIStore as OCIStore
    from locus_memory.backends.opensearch.backend import OpenSearchBackend as OpenSearchBackend
    from locus_memory.backends.opensearch.checkpoints import (
        OpenSearchCheckpointer as OpenSearchCheckpointer,
    )
    from locus_memory.backends.opensearch.store import OpenSearchStore as OpenSearchStore
    from locus_memory.backends.oracle.backend import OracleBackend as OracleBackend
    from locus_memory.backends.oracle.checkpoints import OracleCheckpointer as OracleCheckpointer
    from locus_memory.backends.oracle.store import OracleStore as OracleStore
    from locus_memory.backends.postgresql.backend import PostgreSQLBackend as PostgreSQLBackend
    from locus_memory.backends.postgresql.checkpoints import (
        PostgreSQLCheckpointer as PostgreSQLCheckpointer,
    )
    from locus_memory.backends.postgresql.store import PostgreSQLStore as PostgreSQLStore
    from locus_memory.backends.redis.backend import RedisBackend as RedisBackend
    from locus_memory.backends.redis.checkpoints import RedisCheckpointer as RedisCheckpointer
    from locus_memory.backends.redis.store import RedisStore as RedisStore
    from locus_memory.backends.sqlite.backend import SQLiteBackend as SQLiteBackend
    from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer as SQLiteCheckpointer
    from locus_memory.backends.sqlite.store import SQLiteStore as SQLiteStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Backend": "base",
            "ComposedBackend": "base",
        },
        unlisted={
            "FileBackend": "locus_memory.backends.file.backend",
            "FileCheckpointer": "locus_memory.backends.file.checkpoints",
            "InMemoryBackend": "locus_memory.backends.inmemory.backend",
            "InMemoryStore": "locus_memory.backends.inmemory.store",
            "MemoryCheckpointer": "locus_memory.backends.inmemory.checkpoints",
            "OCIBackend": "locus_memory.backends.oci.backend",
            "OCIBucketCheckpointer": "locus_memory.backends.oci.checkpoints",
            "OCICheckpointer": "locus_memory.backends.oci.checkpoints",
            "OCIStore": "locus_memory.backends.oci.store",
            "OpenSearchBackend": "locus_memory.backends.opensearch.backend",
            "OpenSearchCheckpointer": "locus_memory.backends.opensearch.checkpoints",
            "OpenSearchStore": "locus_memory.backends.opensearch.store",
            "OracleBackend": "locus_memory.backends.oracle.backend",
            "OracleCheckpointer": "locus_memory.backends.oracle.checkpoints",
            "OracleStore": "locus_memory.backends.oracle.store",
            "PostgreSQLBackend": "locus_memory.backends.postgresql.backend",
            "PostgreSQLCheckpointer": "locus_memory.backends.postgresql.checkpoints",
            "PostgreSQLStore": "locus_memory.backends.postgresql.store",
            "RedisBackend": "locus_memory.backends.redis.backend",
            "RedisCheckpointer": "locus_memory.backends.redis.checkpoints",
            "RedisStore": "locus_memory.backends.redis.store",
            "SQLiteBackend": "locus_memory.backends.sqlite.backend",
            "SQLiteCheckpointer": "locus_memory.backends.sqlite.checkpoints",
            "SQLiteStore": "locus_memory.backends.sqlite.store",
        },
    )

__all__ = [
    "Backend",
    "ComposedBackend",
]
