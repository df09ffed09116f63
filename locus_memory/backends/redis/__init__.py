"""The Redis backend: Redis 6 and later, Valkey, and clusters of both."""
