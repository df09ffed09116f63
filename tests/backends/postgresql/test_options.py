"""The options of the connections, in a value and by name."""

from __future__ import annotations

import pytest

from locus_memory.backends.postgresql import PostgreSQLOptions
from locus_memory.backends.postgresql.backend import PostgreSQLBackend
from locus_memory.backends.postgresql.checkpoints import (
    PostgreSQLCheckpointer,
    PostgreSQLDeltaStorage,
)
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.errors import ConfigurationError
from locus_memory.registry import get_checkpointer, get_store, open_backend

pytestmark = pytest.mark.usefixtures("own_tables")

CHANGED = {
    "pool_size": 3,
    "schema": "mine",
    "table_prefix": "my_",
    "statement_cache_size": 7,
    "pooler": True,
    "connect_timeout": 1.5,
    "acquire_timeout": 2.5,
    "command_timeout": None,
}

CLASSES = (
    PostgreSQLPool,
    PostgreSQLStore,
    PostgreSQLDeltaStorage,
    PostgreSQLCheckpointer,
    PostgreSQLBackend,
)


def settings(made):
    """Return what a pool was told."""
    pool = made if isinstance(made, PostgreSQLPool) else getattr(made, "storage", made)._connection
    return pool._names, pool._arguments, pool.pool_size, pool._acquire_timeout


@pytest.mark.parametrize(
    "make",
    [
        *CLASSES,
        lambda **options: get_store("postgresql", **options),
        lambda **options: get_checkpointer("postgresql", **options),
        lambda **options: open_backend("postgresql", **options),
    ],
)
def test_the_value_and_the_names_mean_the_same(make):
    assert settings(make(options=PostgreSQLOptions(**CHANGED))) == settings(make(**CHANGED))
    default = settings(PostgreSQLPool())
    assert settings(make(options=PostgreSQLOptions())) == settings(make()) == default
    names, arguments, size, acquire_timeout = settings(make(options=PostgreSQLOptions(**CHANGED)))
    assert (names.schema, names.prefix, size, acquire_timeout) == ("mine", "my_", 3, 2.5)
    assert (arguments["timeout"], arguments["command_timeout"]) == (1.5, None)
    assert arguments["statement_cache_size"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool_size": 0}, "postgresql: pool_size is at least 1, not 0"),
        ({"connect_timeout": 0}, "postgresql: connect_timeout is above 0, not 0"),
        ({"schema": "a-b"}, "postgresql: schema has letters, digits and underscores, at most 63"),
        ({"table_prefix": "pg_"}, "postgresql: table_prefix has letters, digits and underscores"),
    ],
)
def test_what_cannot_work_is_refused_alike_both_ways(options, message):
    for make in (PostgreSQLOptions, *CLASSES):
        with pytest.raises(ConfigurationError) as caught:
            make(**options)
        assert str(caught.value).startswith(message)


async def test_the_value_reaches_the_server(url, schema):
    options = PostgreSQLOptions(schema=schema, table_prefix="mine_")
    async with open_backend(url, options=options) as backend:
        await backend.store.put(("a",), "k", 1)
    async with PostgreSQLStore(url, schema=schema, table_prefix="mine_") as store:
        assert await store.get(("a",), "k") == 1
