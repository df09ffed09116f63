"""The checkpoints of Redis keep the contract; on Valkey: `integration/test_redis_variants.py`."""

from __future__ import annotations

import hashlib

import pytest

from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.testing.checkpoints import CheckpointerConformance


class TestRedis(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, redis_server):
        self.url = redis_server.url

    def make_checkpointer(self, clock, tmp_path, **options):
        prefix = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]
        return RedisCheckpointer(self.url, key_prefix=f"t{prefix}:", clock=clock, **options)
