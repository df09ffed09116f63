"""A time of life ends by one clock, whatever the clocks of the machines say."""

from __future__ import annotations

import pytest

from locus_memory.testing import ServerClockConformance


class TestPostgreSQL(ServerClockConformance):
    @pytest.fixture(autouse=True)
    def server(self, postgresql_server, schema_of):
        self.url, self.schema_of = postgresql_server.url, schema_of

    def where(self, tmp_path):
        return self.url, {"schema": self.schema_of(tmp_path)}


@pytest.mark.parametrize("product", ["redis", "valkey"])
class TestRedis(ServerClockConformance):
    @pytest.fixture(autouse=True)
    def server(self, product, request):
        self.url = request.getfixturevalue(f"{product}_server").url

    def where(self, tmp_path):
        return self.url, {"key_prefix": f"{tmp_path.name}:"}
