"""The forms of an address: a server, a cluster, the sentinels of a primary."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.redis.connection.address import parse_redis_url
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.errors import ConfigurationError
from locus_memory.registry import get_store, parse_address

HOSTS = "h1:7001,h2:7002,[::1]"


@pytest.mark.parametrize(
    ("where", "kind", "place"),
    [
        (None, "server", "localhost:6379"),
        ("h:1", "server", "h:1"),
        ("valkeys://h/2", "server", "h:6379/2"),
        (f"redis+cluster://{HOSTS}", "cluster", "h1:7001,h2:7002,[::1]:6379"),
        ("REDISS+Cluster://u:p@h", "cluster", "h:6379"),
        ("valkey+cluster://h/", "cluster", "h:6379"),
        (f"redis+sentinel://{HOSTS}/main", "sentinel", "h1:7001,h2:7002,[::1]:26379/main"),
        ("rediss+sentinel://:p@h/main/3", "sentinel", "h:26379/main/3"),
    ],
)
def test_a_form_says_what_is_there(where, kind, place):
    address = parse_redis_url(where)
    assert (address.kind, address.place) == (kind, place)
    assert RedisConnection(where).place == place


def test_what_belongs_to_the_sentinels_goes_to_them():
    url = "redis+sentinel://u:p%2F@h1,h2:2/main/3?ssl_x=1&sentinel_password=q%26&client_name=me"
    address = parse_redis_url(url.replace("ssl_x=1&", ""))
    assert address.service == "main"
    assert address.sentinels == {"password": "q&"}
    assert address.urls == tuple(f"redis://u:p%2F@{h}/3?client_name=me" for h in ("h1", "h2:2"))
    assert address.hosts == [("h1", 26379), ("h2", 2)]
    assert "p%2F" not in repr(address)
    assert "q" not in repr(address)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("redis+cluster://h1,,h2", "cannot be read"),
        ("redis+cluster://", "cannot be read"),
        ("redis+cluster://h1:x", "cannot be read"),
        ("redis+cluster://h1,h2:99999", "cannot be read"),
        ("redis+cluster://[::1", "cannot be read"),
        ("redis+cluster://u:12/34@h", "cannot be read"),
        ("redis+cluster://u:secret@pass@h:x", "cannot be read"),
        ("redis+cluster:h1", "cannot be read"),
        ("redis+ring://h1", "cannot be read"),
        ("http+cluster://h1", "cannot be read"),
        ("redis+cluster://h1/1", "no databases"),
        ("redis+cluster://h1?nothing=1", "unknown"),
        ("redis+sentinel://h1", "the service is missing"),
        ("redis+sentinel://h1/", "the service is missing"),
        ("redis+sentinel://h1/main/x", "the service is missing"),
        ("redis+sentinel://h1/main?nothing=1", "unknown"),
        ("redis+sentinel://h1/main?sentinel_nothing=1", "unknown"),
        ("redis+sentinel://u:12/secret@h/main", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused_and_not_quoted(where, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        RedisConnection(where)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.slow
@given(st.text(max_size=30), st.sampled_from(["redis+cluster", "redis+sentinel", "redis"]))
def test_any_text_is_an_address_or_refused(text, scheme):
    with suppress(ConfigurationError):
        assert parse_redis_url(f"{scheme}://{text}").urls


@pytest.mark.parametrize("kind", ["cluster", "sentinel"])
def test_a_provider_string_is_the_url(kind):
    url = f"redis+{kind}://u:hunter2@h1:1,h2:2/main"[: None if kind == "sentinel" else -5]
    assert "hunter2" not in str(parse_address(url))
    for where in (url, f"redis:{url}"):
        assert get_store(where)._connection.place.startswith("h1:1,h2:2")
