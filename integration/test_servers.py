"""Both contracts, whole, on every server that can be had."""

from __future__ import annotations

import hashlib

import pytest

from locus_memory.registry import get_checkpointer, get_store
from locus_memory.testing import CheckpointerConformance, StoreConformance


def name_of(tmp_path):
    return "t" + hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]


class OnPostgreSQL:
    @pytest.fixture(autouse=True)
    def server(self, postgresql_url):
        self.url = postgresql_url


class OnRedis:
    @pytest.fixture(autouse=True)
    def server(self, redis_url):
        self.url = redis_url


class TestPostgreSQLStore(OnPostgreSQL, StoreConformance):
    def make_store(self, clock, tmp_path):
        return get_store(self.url, schema=name_of(tmp_path), clock=clock)


class TestPostgreSQLCheckpointer(OnPostgreSQL, CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return get_checkpointer(self.url, schema=name_of(tmp_path), clock=clock, **options)


class TestRedisStore(OnRedis, StoreConformance):
    def make_store(self, clock, tmp_path):
        return get_store(self.url, key_prefix=name_of(tmp_path), clock=clock)


class TestRedisCheckpointer(OnRedis, CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return get_checkpointer(self.url, key_prefix=name_of(tmp_path), clock=clock, **options)
