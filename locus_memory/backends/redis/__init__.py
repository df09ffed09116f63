"""The Redis backend: Redis 6 and later, Valkey, and clusters of both."""

from locus_memory.backends.redis.connection import RedisConnection
from locus_memory.backends.redis.store import RedisStore

__all__ = ["RedisConnection", "RedisStore"]
