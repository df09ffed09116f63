"""Both contracts, whole, on each Redis there is, and on Valkey."""

from __future__ import annotations

import pytest

from locus_memory.registry import get_checkpointer, get_store
from locus_memory.testing import CheckpointerConformance, StoreConformance


class OnRedis:
    @pytest.fixture(autouse=True)
    def server(self, redis_url, name_of):
        self.url, self.name_of = redis_url, name_of


class TestRedisStore(OnRedis, StoreConformance):
    def make_store(self, clock, tmp_path):
        return get_store(self.url, key_prefix=self.name_of(tmp_path), clock=clock)


class TestRedisCheckpointer(OnRedis, CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return get_checkpointer(self.url, key_prefix=self.name_of(tmp_path), clock=clock, **options)
