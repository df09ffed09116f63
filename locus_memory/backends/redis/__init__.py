"""The Redis backend: Redis 6 and later, Valkey, and clusters of both."""

from locus_memory.drivers import require

require("redis", "redis")
