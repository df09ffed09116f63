"""The hosts of a URL: which of them is connected to."""

from __future__ import annotations

import pytest

from locus_memory.backends.postgresql.connection.address import attributes, shuffled
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.errors import ConfigurationError
from locus_memory.testing.servers.server import free_port

SEVERAL = "postgresql://u:p%2C@h1:1,h2,[::1]:3/db?application_name=a"


def test_of_several_hosts_one_that_takes_writes_is_meant():
    wanted = {"target_session_attrs": "read-write"}
    assert attributes(SEVERAL) == wanted
    assert attributes("postgresql:///db?host=h1,h2") == wanted
    for where in (None, "mydb", "postgresql://h/db", "postgresql://u:a,b@h/db"):
        assert attributes(where) == {}
    assert attributes(SEVERAL + "&target_session_attrs=any") == {}


def test_the_hosts_of_standbys_are_tried_in_any_order():
    found = {shuffled(SEVERAL) for _ in range(200)}
    assert len(found) == 6
    for url in found:
        user, _, rest = url.partition("@")
        hosts, slash, path = rest.partition("/")
        assert (user, slash + path) == ("postgresql://u:p%2C", "/db?application_name=a")
        assert sorted(hosts.split(",")) == ["[::1]:3", "h1:1", "h2"]


@pytest.mark.parametrize("where", [None, "mydb", "postgresql://h/db"])
def test_reads_of_standbys_need_several_hosts(where):
    with pytest.raises(ConfigurationError, match="standby_reads needs a URL with several hosts"):
        PostgreSQLPool(where, standby_reads=True)


async def test_the_host_that_answers_is_found(postgresql_server):
    """A dead host comes first; no host is a standby, so the primary answers the reads too."""
    dead, port = free_port(), postgresql_server.port
    url = f"postgresql://locus@127.0.0.1:{dead},127.0.0.1:{port}/postgres"
    async with PostgreSQLPool(url, schema="t_of_hosts") as pool:
        assert await pool.fetchval("SELECT 1") == 1
