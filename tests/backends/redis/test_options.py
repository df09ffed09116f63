"""The options of a connection, in a value and by name."""

from __future__ import annotations

import pytest

from locus_memory.backends.redis import RedisOptions
from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.backends.redis.checkpoints import RedisCheckpointer, RedisDeltaStorage
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import ConfigurationError
from locus_memory.registry import get_checkpointer, get_store, open_backend

CHANGED = {
    "key_prefix": "mine:",
    "pool_size": 3,
    "connect_timeout": 1.5,
    "command_timeout": None,
    "acquire_timeout": 2.5,
}


def connection_of(made):
    if isinstance(made, RedisConnection):
        return made
    return getattr(made, "storage", made)._connection


def settings(made):
    """Return what a connection was told."""
    connection = connection_of(made)
    return {
        "key": connection.key("x"),
        "options": connection._options,
    }


@pytest.mark.parametrize(
    "make",
    [
        *(RedisConnection, RedisStore, RedisDeltaStorage, RedisCheckpointer, RedisBackend),
        lambda **options: get_store("redis", **options),
        lambda **options: get_checkpointer("redis", **options),
        lambda **options: open_backend("redis", **options),
    ],
)
def test_the_value_and_the_names_mean_the_same(make):
    assert settings(make(options=RedisOptions(**CHANGED))) == settings(make(**CHANGED))
    assert settings(make(options=RedisOptions())) == settings(make()) == settings(RedisConnection())
    told = settings(make(options=RedisOptions(**CHANGED)))
    assert told["key"] == b"mine:x"
    assert told["options"] == RedisOptions(**CHANGED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool_size": 0}, "redis: pool_size is at least 1, not 0"),
        ({"connect_timeout": 0}, "redis: connect_timeout is above 0, not 0"),
        ({"command_timeout": -1.0}, "redis: command_timeout is above 0, not -1"),
        ({"key_prefix": ""}, "redis: key_prefix is a text without '{' and '}', and not empty"),
        ({"key_prefix": "{a}"}, "redis: key_prefix is a text without '{' and '}', and not empty"),
    ],
)
def test_what_cannot_work_is_refused_alike_both_ways(options, message):
    for make in (RedisOptions, RedisConnection, RedisStore, RedisCheckpointer, RedisBackend):
        with pytest.raises(ConfigurationError) as caught:
            make(**options)
        assert str(caught.value) == message


@pytest.mark.slow
async def test_the_value_reaches_the_server(redis_server, prefix, raw):
    options = RedisOptions(key_prefix=prefix)
    async with open_backend(f"redis:{redis_server.url}", options=options) as backend:
        await backend.store.put(("a",), "k", 1)
        await backend.checkpointer.save({"step": 1}, "t")
    async with RedisStore(redis_server.url, key_prefix=prefix) as store:
        assert await store.get(("a",), "k") == 1
    assert list(raw(redis_server).scan_iter(f"{prefix}*"))
