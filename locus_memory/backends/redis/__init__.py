"""The Redis backend: Redis 6 and later, Valkey, and clusters of both.

A write is one Lua script, atomic on the server; `lua/` holds all of them. Texts are in an own index
of the library, and vectors in vector sets if the server has them.

Read `backend.py` and `store.py` first, then `connection/`, `items/` and `search/`; `checkpoints.py`
stands alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names
from locus_memory._internal.providers.drivers import require

require("redis", "redis")
require("hiredis", "redis")

if TYPE_CHECKING:
    from locus_memory.backends.redis.backend import RedisBackend
    from locus_memory.backends.redis.checkpoints import RedisCheckpointer, RedisDeltaStorage
    from locus_memory.backends.redis.connection.connection import RedisConnection
    from locus_memory.backends.redis.options import RedisOptions
    from locus_memory.backends.redis.store import RedisStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "RedisBackend": "backend",
            "RedisCheckpointer": "checkpoints",
            "RedisConnection": "connection.connection",
            "RedisDeltaStorage": "checkpoints",
            "RedisOptions": "options",
            "RedisStore": "store",
        },
    )

__all__ = [
    "RedisBackend",
    "RedisCheckpointer",
    "RedisConnection",
    "RedisDeltaStorage",
    "RedisOptions",
    "RedisStore",
]
