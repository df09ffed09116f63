from __future__ import annotations

import inspect

import numpy as np
import pytest

from locus_memory._internal.providers.construction import known_options
from locus_memory.backends.file.backend import FileBackend
from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.postgresql.backend import PostgreSQLBackend
from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.store import RedisStore
from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.errors import ConfigurationError, LocusMemoryError
from locus_memory.registry import get_store, open_backend

CLASSES = [
    DeltaCheckpointer,
    FileBackend,
    FileCheckpointer,
    InMemoryStore,
    MemoryCheckpointer,
    PostgreSQLBackend,
    PostgreSQLCheckpointer,
    PostgreSQLPool,
    PostgreSQLStore,
    RedisBackend,
    RedisCheckpointer,
    RedisConnection,
    RedisStore,
    SQLiteBackend,
    SQLiteCheckpointer,
    SQLiteDatabase,
    SQLiteStore,
]

# Objects, whose own classes say what they are, and what goes to other classes.
OBJECTS = {
    "state_type",
    "storage",
    "database",
    "pool",
    "client",
    "store_options",
    "checkpointer_options",
}

OPTIONS = [(made, name) for made in CLASSES for name in sorted(known_options(made) - OBJECTS)]


def name_of(each):
    return getattr(each, "__name__", each)


def required(made):
    """Return what a class cannot be made without."""
    return {"path": "x.db"} if made is SQLiteDatabase else {}


@pytest.mark.parametrize(("made", "name"), OPTIONS, ids=name_of)
@pytest.mark.parametrize(
    "value", [b"5", [5], object(), {"a": 1}, 1j], ids=lambda each: type(each).__name__
)
def test_an_option_of_no_type_that_is_wanted_is_refused_by_name(made, name, value):
    with pytest.raises(LocusMemoryError) as caught:
        made(**{**required(made), name: value})
    assert name in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("made", "name"), OPTIONS, ids=name_of)
def test_a_text_is_no_number(made, name):
    default = inspect.signature(made).parameters.get(name)
    if default is None or type(default.default) not in (int, float, bool):
        return
    with pytest.raises(ConfigurationError, match=rf"{name} is .*, not the str '5'"):
        made(**{name: "5", **required(made)})


def test_the_message_names_the_option_and_both_types():
    with pytest.raises(ConfigurationError) as caught:
        get_store("sqlite:x.db", busy_timeout="5")
    assert str(caught.value) == "SQLiteStore: busy_timeout is a number, not the str '5'"
    with pytest.raises(ConfigurationError, match="pool_size is an integer, not None"):
        open_backend("redis:localhost", pool_size=None)
    with pytest.raises(ConfigurationError, match="pool_size is an integer, not the bool True"):
        open_backend("postgresql:x", pool_size=True)
    with pytest.raises(ConfigurationError, match="busy_timeout is a number, not the float nan"):
        get_store("sqlite:x.db", busy_timeout=float("nan"))


def test_a_message_never_quotes_what_may_be_a_password():
    for made, name in ((PostgreSQLPool, "database"), (RedisConnection, "url")):
        with pytest.raises(ConfigurationError) as caught:
            made(**{name: b"redis://:secret@host"})
        assert str(caught.value).endswith("is a string or None, not bytes")


def test_numbers_of_numpy_are_numbers():
    store = InMemoryStore(embedding_dimension=np.int64(3))
    assert store.capabilities.embedding_dimension == 3
    assert SQLiteDatabase("x.db", busy_timeout=np.float32(3)).path == "x.db"
