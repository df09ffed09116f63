"""The hosts of a URL: which of them is connected to."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager

import pytest
from asyncpg.connect_utils import _parse_connect_arguments

from locus_memory.backends.postgresql.connection.address import attributes, each_host
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.errors import BackendUnavailableError, ConfigurationError
from locus_memory.testing.servers.server import free_port

SEVERAL = "postgresql://u:p%2C@h1:1,h2,[::1]:3/db?application_name=a"


def test_of_several_hosts_one_that_takes_writes_is_meant():
    wanted = {"target_session_attrs": "read-write"}
    assert attributes(SEVERAL) == wanted
    assert attributes("postgresql:///db?host=h1,h2") == wanted
    for where in (None, "mydb", "postgresql://h/db", "postgresql://u:a,b@h/db"):
        assert attributes(where) == {}
    assert attributes(SEVERAL + "&target_session_attrs=any") == {}


def test_each_host_has_a_url():
    assert each_host(SEVERAL) == [
        f"postgresql://u:p%2C@{host}/db?application_name=a" for host in ("h1:1", "h2", "[::1]:3")
    ]
    for url in ("postgresql://h/db", "postgresql://u:a,b@h/db?host=h", "postgresql:///db"):
        assert [read(each) for each in each_host(url)] == [read(url)]


@pytest.mark.parametrize(
    ("ports", "meant"), [("", [5432, 5432]), ("&port=7", [7, 7]), ("&port=7,8", [7, 8])]
)
def test_hosts_of_a_query_have_urls_as_well(ports, meant):
    urls = each_host(f"postgresql://u:p%2C@/db?host=h1,h2&application_name=a%26b{ports}")
    addresses = [read(url) for url in urls]
    assert [found[0] for found in addresses] == [[("h1", meant[0])], [("h2", meant[1])]]
    assert {found[1:] for found in map(tuple, addresses)} == {("u", "p,", "db", "a&b")}


def read(url):
    """Return what the driver reads in a URL: hosts with ports, and the rest."""
    hosts, options, *_ = _parse_connect_arguments(
        dsn=url,
        command_timeout=None,
        statement_cache_size=1,
        max_cached_statement_lifetime=1,
        max_cacheable_statement_size=1,
        **dict.fromkeys(UNSET),
    )
    name = (options.server_settings or {}).get("application_name")
    return hosts, options.user, options.password, options.database, name


UNSET = (
    *("host", "port", "user", "password", "passfile", "database", "ssl", "direct_tls"),
    *("server_settings", "target_session_attrs", "krbsrvname", "gsslib", "service", "servicefile"),
)


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


@contextmanager
def silence():
    """A host that is reached, and never says anything: its process is suspended."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


async def test_a_silent_host_takes_its_part_of_the_time_once(postgresql_server):
    loop, port = asyncio.get_running_loop(), postgresql_server.port
    with silence() as silent, silence() as other:
        hosts = ",".join(f"127.0.0.1:{each}" for each in (silent, other, port))
        url = f"postgresql://locus@{hosts}/postgres"
        async with PostgreSQLPool(url, schema="t_of_hosts", connect_timeout=3) as pool:
            assert await pool.fetchval("SELECT 1") == 1
            # The one that answered is the first now, also for connections that are opened later.
            begun = loop.time()
            await asyncio.gather(*(pool.fetchval("SELECT pg_sleep(0.1) IS NULL") for _ in range(8)))
            assert loop.time() - begun < 1


@pytest.mark.parametrize("wanted", ["any", "prefer-standby", "primary", "read-write"])
async def test_of_silent_hosts_and_a_primary_the_primary_is_taken(postgresql_server, wanted):
    with silence() as silent:
        hosts = f"127.0.0.1:{silent},127.0.0.1:{postgresql_server.port}"
        url = f"postgresql://locus@{hosts}/postgres?target_session_attrs={wanted}"
        async with PostgreSQLPool(url, schema="t_of_hosts", connect_timeout=0.6) as pool:
            assert await pool.fetchval("SELECT 1") == 1


async def test_where_all_are_silent_the_time_is_the_same():
    loop = asyncio.get_running_loop()
    with silence() as first, silence() as second:
        url = f"postgresql://locus@127.0.0.1:{first},127.0.0.1:{second}/postgres"
        begun = loop.time()
        async with asyncio.timeout(20):
            with pytest.raises(BackendUnavailableError):
                await PostgreSQLPool(url, connect_timeout=0.4).open()
        assert loop.time() - begun < 10


async def test_where_no_host_fits_the_error_says_so(postgresql_server):
    port = postgresql_server.port
    hosts = f"127.0.0.1:{port},localhost:{port}"
    url = f"postgresql://locus@{hosts}/postgres?target_session_attrs=standby"
    with pytest.raises(BackendUnavailableError, match=r"[Tt]arget"):
        await PostgreSQLPool(url).open()
