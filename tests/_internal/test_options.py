from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest

from locus_memory._internal.providers.construction import known_options
from locus_memory.agent import AgentOptions
from locus_memory.backends.file.backend import FileBackend
from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.oci import OCIOptions
from locus_memory.backends.opensearch import OpenSearchOptions
from locus_memory.backends.oracle import OracleOptions
from locus_memory.backends.postgresql.backend import PostgreSQLBackend
from locus_memory.backends.postgresql.checkpoints import (
    PostgreSQLCheckpointer,
    PostgreSQLDeltaStorage,
)
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.options import PostgreSQLKeywords, PostgreSQLOptions
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.backends.redis.checkpoints import RedisCheckpointer, RedisDeltaStorage
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.options import RedisKeywords, RedisOptions
from locus_memory.backends.redis.store import RedisStore
from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.errors import ConfigurationError, LocusMemoryError, UnknownOptionError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.options import MemoryKeywords, MemoryOptions
from locus_memory.registry import get_checkpointer, get_store, open_backend

DOCS = Path(__file__).parents[2] / "docs"

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

# Each value that groups options: the same by name, who takes it, and as which parameter.
REDIS = (RedisBackend, RedisCheckpointer, RedisConnection, RedisDeltaStorage, RedisStore)
POSTGRESQL = (
    PostgreSQLBackend,
    PostgreSQLCheckpointer,
    PostgreSQLDeltaStorage,
    PostgreSQLPool,
    PostgreSQLStore,
)
GROUPS = [
    *((RedisOptions, RedisKeywords, made, "options") for made in REDIS),
    *((PostgreSQLOptions, PostgreSQLKeywords, made, "options") for made in POSTGRESQL),
    (MemoryOptions, MemoryKeywords, LLMMemoryManager, "options"),
]

VALUES = list(dict.fromkeys((value, named) for value, named, _, _ in GROUPS))

DEFAULTS = {field.name: field.default for value, _ in VALUES for field in fields(value)}

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
    parameter = inspect.signature(made).parameters.get(name)
    default = DEFAULTS.get(name) if parameter is None else parameter.default
    if type(default) not in (int, float, bool):
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


@pytest.mark.parametrize(("value", "named"), VALUES, ids=name_of)
def test_what_is_taken_by_name_are_the_fields_of_the_value(value, named):
    assert {field.name: field.type for field in fields(value)} == {
        name: each.__forward_arg__ for name, each in named.__annotations__.items()
    }
    assert named.__required_keys__ == frozenset()


@pytest.mark.parametrize(("value", "named"), VALUES, ids=name_of)
def test_a_value_of_options_is_frozen_and_keyword_only_and_has_a_default_for_each(value, named):
    made = value()
    assert made == value()
    assert not hasattr(made, "__dict__")
    assert all(field.kw_only and field.default is not MISSING for field in fields(value))
    for name in named.__annotations__:
        with pytest.raises(FrozenInstanceError):
            setattr(made, name, 5)


@pytest.mark.parametrize(
    "value",
    [
        *(RedisOptions, PostgreSQLOptions, MemoryOptions, OCIOptions, OpenSearchOptions),
        *(OracleOptions, AgentOptions),
    ],
    ids=name_of,
)
def test_the_reference_says_what_each_option_is(value):
    told = inspect.getdoc(value).partition("Attributes:\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^    (\w+): \S", told, re.MULTILINE)) == {
        field.name for field in fields(value)
    }
    reference = "".join(page.read_text("utf-8") for page in DOCS.glob("api/*.md"))
    assert re.search(rf"^::: locus_memory\S*\.{value.__name__}$", reference, re.MULTILINE)


def needed(made):
    """Return the arguments that a class cannot be made without."""
    return ["memory"] if "store" in inspect.signature(made).parameters else []


@pytest.mark.parametrize(("value", "named", "made", "parameter"), GROUPS, ids=name_of)
class TestGroups:
    def test_both_ways_at_once_are_refused_by_both_names(self, value, named, made, parameter):
        for field in fields(value):
            with pytest.raises(ConfigurationError) as caught:
                made(*needed(made), **{parameter: value(), field.name: field.default})
            assert str(caught.value) == (
                f"{made.__name__}: {field.name!r} is given twice, by name and within "
                f"{parameter}={value.__name__}(...)"
            )

    def test_no_other_object_is_a_value(self, value, named, made, parameter):
        for wrong in ({}, value, 5, "x"):
            with pytest.raises(ConfigurationError) as caught:
                made(*needed(made), **{parameter: wrong})
            assert str(caught.value) == (
                f"{made.__name__}: {parameter} is {value.__name__}(...) or None, "
                f"not {type(wrong).__name__}"
            )

    def test_a_keyword_that_nobody_knows_is_a_type_error(self, value, named, made, parameter):
        with pytest.raises(TypeError, match=r"\.__init__\(\) got an unexpected .* 'tokenbudget'"):
            made(*needed(made), tokenbudget=5)

    def test_the_options_of_a_class_are_known_both_ways(self, value, named, made, parameter):
        assert known_options(made) >= {parameter, *named.__annotations__}


@pytest.mark.parametrize(
    ("where", "value"), [("redis:x", RedisOptions), ("postgresql:x", PostgreSQLOptions)]
)
@pytest.mark.parametrize("make", [get_store, get_checkpointer, open_backend])
def test_a_provider_string_takes_options_both_ways(where, value, make):
    make(where, options=value(pool_size=3))
    make(where, pool_size=3)
    with pytest.raises(ConfigurationError, match="'pool_size' is given twice"):
        make(where, options=value(), pool_size=3)
    with pytest.raises(UnknownOptionError, match="'poolsize': did you mean 'pool_size'"):
        make(where, poolsize=3)
