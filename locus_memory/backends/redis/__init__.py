"""The Redis backend: Redis 6 and later, Valkey, and clusters of both.

A write is one Lua script, atomic on the server; `lua/` holds the scripts of the store. Search uses
RediSearch or vector sets where the server has them, and an index of our own where it has neither.

Read `backend.py` and `store.py` first, then `connection/`, `items/` and `search/`; `checkpoints.py`
stands alone.
"""

from locus_memory._internal.providers.drivers import require

require("redis", "redis")
