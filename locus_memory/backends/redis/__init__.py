"""The Redis backend: Redis 6 and later, Valkey, and clusters of both."""

from locus_memory._internal.providers.drivers import require

require("redis", "redis")
