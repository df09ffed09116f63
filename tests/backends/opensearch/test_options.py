"""The options of a connection and its addresses, without a server."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from opensearchpy import OpenSearch

from locus_memory.backends.opensearch import OpenSearchOptions
from locus_memory.backends.opensearch.backend import OpenSearchBackend
from locus_memory.backends.opensearch.checkpoints import (
    OpenSearchCheckpointer,
    OpenSearchDeltaStorage,
)
from locus_memory.backends.opensearch.connection.address import Host, hosts_of, place_of
from locus_memory.backends.opensearch.connection.client import OpenSearchClient
from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.connection.driver import make_client
from locus_memory.backends.opensearch.store import OpenSearchStore
from locus_memory.errors import BackendClosedError, ConfigurationError
from locus_memory.registry import get_checkpointer, get_store, open_backend

CHANGED = {
    "index_prefix": "mine-",
    "shards": 3,
    "replicas": 2,
    "pool_size": 4,
    "http_auth": ("user", "hunter2"),
    "connect_timeout": 1.5,
    "acquire_timeout": 2.5,
    "command_timeout": 3.5,
    "retries": 0,
}

ALL = [
    *(OpenSearchConnection, OpenSearchStore, OpenSearchDeltaStorage, OpenSearchCheckpointer),
    OpenSearchBackend,
    lambda **options: get_store("opensearch", **options),
    lambda **options: get_checkpointer("opensearch", **options),
    lambda **options: open_backend("opensearch", **options),
]


def connection_of(made):
    if isinstance(made, OpenSearchConnection):
        return made
    return getattr(made, "storage", made)._connection


@pytest.mark.parametrize("make", ALL)
def test_the_value_and_the_names_mean_the_same(make):
    named = connection_of(make(**CHANGED))
    assert connection_of(make(options=OpenSearchOptions(**CHANGED))).options == named.options
    assert named.options == OpenSearchOptions(**CHANGED)
    assert connection_of(make()).options == OpenSearchOptions()
    assert "hunter2" not in f"{named!r} {named.options!r}"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, ["localhost:9200"]),
        ("host", ["host:9200"]),
        ("host:80", ["host:80"]),
        ("[::1]:9201", ["[::1]:9201"]),
        ("http://host", ["host:9200"]),
        ("https://host", ["host:443"]),
        ("opensearch://host", ["host:9200"]),
        ("HTTPS://user:p%40ss%2C@host:9200/a/b/", ["host:9200/a/b"]),
        ("one:1, two:2,https://three", ["one:1", "two:2", "three:443"]),
    ],
)
def test_addresses(where, expected):
    assert place_of(hosts_of(where)) == ",".join(expected)


def test_a_url_has_a_user_and_tls():
    (host,) = hosts_of("https://user:p%40ss%2C@host:9200/a/")
    assert host == Host(
        host="host", port=9200, use_ssl=True, url_prefix="/a", http_auth=("user", "p@ss,")
    )
    assert "p@ss" not in f"{host!r} {host}"


@pytest.mark.parametrize(
    "where",
    [
        *("", ",", "host,", "ftp://host", "http://", "host:port", "host:99999", "a b"),
        *("https://user:hunter2/x@host", "https://u:hunter2#@host", "http://h?x=1"),
        "https://user:hunter2,@host",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_its_password(where):
    with pytest.raises(ConfigurationError) as caught:
        OpenSearchConnection(where)
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "options",
    [
        *({"index_prefix": prefix} for prefix in ("", "A-", "-a", ".a", "a*", "a b", "a" * 101)),
        *({"index_prefix": 7}, {"shards": 0}, {"replicas": -1}, {"pool_size": 0}, {"retries": -1}),
        *({"command_timeout": 0}, {"connect_timeout": None}, {"acquire_timeout": -1.0}),
        *({"http_auth": "user:hunter2"}, {"http_auth": ("hunter2",)}, {"ssl_context": "yes"}),
        {"verify_certs": "no"},
    ],
)
def test_an_option_that_cannot_work_is_refused(options):
    with pytest.raises(ConfigurationError) as caught:
        OpenSearchOptions(**options)
    assert "hunter2" not in str(caught.value)


def test_a_user_is_given_once():
    with pytest.raises(ConfigurationError, match="twice") as caught:
        OpenSearchConnection("https://u:hunter2@host", http_auth=("u", "hunter3"))
    assert "hunter" not in str(caught.value)


def test_a_client_of_another_kind_is_refused():
    with OpenSearch() as client, pytest.raises(ConfigurationError, match="AsyncOpenSearch"):
        OpenSearchConnection(client=client)


def test_files_that_are_missing_are_named_as_options(tmp_path):
    for name in ("ca_certs", "client_cert"):
        with pytest.raises(ConfigurationError, match="ca_certs, client_cert or client_key"):
            OpenSearchConnection("https://host", **{name: str(tmp_path / "none")})
    # Without TLS nothing is read.
    OpenSearchConnection("http://host", ca_certs=str(tmp_path / "none"))


def test_certificates_are_verified_unless_it_is_said():
    assert OpenSearchConnection("https://host")._context.verify_mode is ssl.CERT_REQUIRED
    made = OpenSearchConnection("https://host", verify_certs=False)
    assert made._context.verify_mode is ssl.CERT_NONE
    own = ssl.create_default_context()
    assert OpenSearchConnection("https://host", ssl_context=own)._context is own


async def test_after_close_there_is_a_clear_error():
    connection = OpenSearchConnection("127.0.0.1:9")
    await connection.close()
    await connection.close()
    with pytest.raises(BackendClosedError, match="after close"):
        await connection.open()
    with pytest.raises(BackendClosedError, match="after close"):
        await connection.request("GET", "/")


async def test_whoever_stops_waiting_for_the_end_leaves_no_connection():
    came, left = asyncio.Event(), asyncio.Event()

    async def silent(reader, writer):
        came.set()
        while await reader.read(1024):
            pass
        left.set()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        options = OpenSearchOptions(pool_size=1)
        client = make_client(hosts_of(f"127.0.0.1:{port}"), options, None)
        held = OpenSearchClient(client, options, owned=True, size=1, place="silent")
        await held.start()
        asking = asyncio.create_task(held.send("GET", "/", None, None, again=True))
        await came.wait()
        closing = asyncio.create_task(held.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        async with asyncio.timeout(30):
            await left.wait()
        assert held.has_ended()
        asking.cancel()
        await asyncio.wait([asking])
        # Or nobody asks for its error.
        assert asking.cancelled() or asking.exception()
