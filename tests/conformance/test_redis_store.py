"""The Redis store keeps the contract, on Redis, on Valkey and on a cluster."""

from __future__ import annotations

import hashlib
import time

import pytest
from redis import Redis

from locus_memory.backends.redis.store import RedisStore
from locus_memory.testing.servers import RedisServer, ValkeyServer
from locus_memory.testing.store import StoreConformance


@pytest.fixture(scope="module")
def cluster_of_one():
    """A server that has every slot and yet refuses keys of two slots, as a cluster does."""
    with ValkeyServer(cluster_enabled="yes") as server, Redis.from_url(server.url) as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        while client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
            time.sleep(0.02)
        yield server


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


class TestClusterStore(TestRedisStore):
    @pytest.fixture(autouse=True)
    def server(self, cluster_of_one):
        self.url = cluster_of_one.url


@pytest.fixture(scope="module")
def redis_8_with_redisearch():
    with RedisServer(search=True) as server:
        yield server


class TestRediSearchStore(TestRedisStore):
    @pytest.fixture(autouse=True)
    def server(self, redisearch_server):
        self.url = redisearch_server.url

    def make_store(self, clock, tmp_path):
        prefix = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]
        options = {"key_prefix": f"t{prefix}:", "search_index": "redisearch"}
        return RedisStore(self.url, clock=clock, **options)


class TestRediSearchOnRedis8Store(TestRediSearchStore):
    @pytest.fixture(autouse=True)
    def server(self, redisearch_server, redis_8_with_redisearch):
        self.url = redis_8_with_redisearch.url


class TestVectorsInRediSearchStore(TestRedisStore):
    @pytest.fixture(autouse=True)
    def server(self, redisearch_server):
        self.url = redisearch_server.url
