"""Addresses and options: what is taken, what is refused, and what is never shown."""

from __future__ import annotations

import inspect

import oracledb
import pytest

from locus_memory import OracleStore, open_backend
from locus_memory.backends.oracle.connection.address import parse_address
from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.backends.oracle.options import OracleOptions
from locus_memory.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "dsn", "user", "password"),
    [
        ("mydb_high", "mydb_high", None, None),
        ("ada@mydb_high", "mydb_high", "ada", None),
        ("ada@host:1521/service", "host:1521/service", "ada", None),
        ("ada:pw@host:1521/service", "host:1521/service", "ada", "pw"),
        ("ada:p@w:1@host/service", "host/service", "ada", "p@w:1"),
        ("oracle://ada:p%40w@host:1521/service", "host:1521/service", "ada", "p@w"),
    ],
)
def test_an_address_is_parsed(text, dsn, user, password):
    assert parse_address(text)[:3] == (dsn, user, password)


@pytest.mark.parametrize("text", [None, "", "ada:pw@", "oracle://"])
def test_an_address_names_a_database(text):
    with pytest.raises(ConfigurationError, match="names no database"):
        parse_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "ada:secret@host/s",
        "oracle://ada:secret@host/s",
        "ada@host/s?wallet_password=secret",
        "ada@(DESCRIPTION=(SECURITY=(X=secret)))",
    ],
)
def test_a_password_is_never_shown(text):
    options = OracleOptions(password="secret", wallet_password="secret")
    shown = [repr(options), repr(OraclePool(text)), repr(OracleStore(text, options=options))]
    shown.append(repr(open_backend(text if "//" in text else f"oracle:{text}").store))
    assert not [each for each in shown if "secret" in each]


@pytest.mark.parametrize(
    "options",
    [
        {"pool_size": 0},
        {"table_prefix": "locus_"},
        {"table_prefix": ""},
        {"table_prefix": "A" * 65},
        {"schema": 'X"; DROP'},
        {"vector_index": "flat"},
        {"vector_index": "hnsw"},
        {"vector_dimension": 0},
        {"vector_dimension": 70_000},
        {"text_index": "none"},
        {"call_timeout": 0},
        {"acquire_timeout": -1.0},
        {"pool_size": "many"},
    ],
)
def test_an_option_that_cannot_work_is_refused(options):
    with pytest.raises(ConfigurationError):
        OracleOptions(**options)


def test_a_dimension_is_one():
    with pytest.raises(ConfigurationError):
        OracleStore("db", vector_dimension=3, embedding_dimension=4)


def test_the_options_of_a_wallet_reach_the_driver():
    """The names are those of `oracledb.connect_async`."""
    options = OracleOptions(
        config_dir="/wallet",
        wallet_location="/wallet",
        wallet_password="secret",
        edition="ORA$BASE",
        connect_timeout=3.0,
    )
    arguments = OraclePool("ada:pw@mydb_high", options=options)._arguments
    assert arguments == {
        "dsn": "mydb_high",
        "user": "ada",
        "password": "pw",
        "config_dir": "/wallet",
        "wallet_location": "/wallet",
        "wallet_password": "secret",
        "edition": "ORA$BASE",
        "tcp_connect_timeout": 3.0,
    }
    assert set(arguments) <= set(inspect.signature(oracledb.connect_async).parameters)
