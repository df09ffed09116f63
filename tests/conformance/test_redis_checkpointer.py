"""The checkpoints of Redis keep the contract, on Redis, on Valkey and on a cluster."""

from __future__ import annotations

import hashlib
import time

import pytest
from redis import Redis

from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.testing.checkpoints import CheckpointerConformance
from locus_memory.testing.servers import ValkeyServer


@pytest.fixture(scope="module")
def cluster_of_one():
    """A server that has every slot and yet refuses keys of two slots, as a cluster does."""
    with ValkeyServer(cluster_enabled="yes") as server, Redis.from_url(server.url) as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        while client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
            time.sleep(0.02)
        yield server


class TestRedis(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, redis_server):
        self.url = redis_server.url

    def make_checkpointer(self, clock, tmp_path, **options):
        prefix = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]
        return RedisCheckpointer(self.url, key_prefix=f"t{prefix}:", clock=clock, **options)


class TestValkey(TestRedis):
    @pytest.fixture(autouse=True)
    def server(self, valkey_server):
        self.url = valkey_server.url


class TestCluster(TestRedis):
    @pytest.fixture(autouse=True)
    def server(self, cluster_of_one):
        self.url = cluster_of_one.url
