"""The Redis store keeps the contract, on Redis and on Valkey."""

from __future__ import annotations

import hashlib

import pytest

from locus_memory.backends.redis.store import RedisStore
from locus_memory.testing.store import StoreConformance


class TestRedisStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def server(self, redis_server):
        self.url = redis_server.url

    def make_store(self, clock, tmp_path):
        prefix = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]
        return RedisStore(self.url, key_prefix=f"t{prefix}:", clock=clock)


class TestValkeyStore(TestRedisStore):
    @pytest.fixture(autouse=True)
    def server(self, valkey_server):
        self.url = valkey_server.url
