"""Compiled filters answer exactly as `matches` does."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing

import pytest

from locus_memory.backends.sqlite.search.filters import compile_filter, register_functions
from locus_memory.store.filters import _OPERATORS, parse_filter
from locus_memory.store.json_values import encode_json


@pytest.fixture(scope="module")
def connection():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        register_functions(connection)
        connection.execute("CREATE TABLE t (metadata TEXT, value TEXT)")
        yield connection


def answer(connection, condition, value, metadata):
    where, bound = compile_filter(condition, metadata="t.metadata", value="t.value")
    connection.execute("DELETE FROM t")
    documents = encode_json(metadata).decode(), encode_json(value).decode()
    connection.execute("INSERT INTO t VALUES (?, ?)", documents)
    return connection.execute(f"SELECT {where} FROM t", bound).fetchone()[0]


@pytest.mark.parametrize("number", [k / 10**d for d in range(1, 17) for k in (1, 3, 7, 123456789)])
def test_fractions_equal_themselves_and_not_their_neighbours(connection, number):
    metadata = {"n": number}
    for operand in (number, math.nextafter(number, 1e9), math.nextafter(number, 0)):
        condition = parse_filter({"n": operand})
        assert answer(connection, condition, None, metadata) == (number == operand)


@pytest.mark.parametrize(
    "written",
    [
        {"kind": "note"},
        {"user.name": {"$in": ["ada", "bob"]}},
        {"age": {"$gte": 18, "$lt": 65.5}},
        {"done": False, "due": None},
        {"tags": {"$contains": "x"}, "note": {"$exists": True}},
        {"$or": [{"kind": "note"}, {"$not": {"age": 3}}]},
    ],
)
def test_common_filters_never_call_python(written):
    with closing(sqlite3.connect(":memory:")) as connection:

        def refuse(*_):
            raise AssertionError

        connection.create_function("locus_matches", 3, refuse, deterministic=True)
        connection.execute("CREATE TABLE t (metadata TEXT, value TEXT)")
        value = {"kind": "note", "user": {"name": "ada"}, "age": 30, "done": False, "due": None}
        metadata = {"tags": ["x"], "note": "text\n\u00e9"}
        condition = parse_filter(written)
        assert answer(connection, condition, value, metadata) == 1


def test_a_filter_of_any_size_is_evaluated(connection):
    many = {"n": {"$in": list(range(5000))}}
    deep = {"n": 7}
    for _ in range(31):
        deep = {"$not": {"$not": deep}}
    for written in (many, deep, {"$and": [{"n": 7}] * 500}):
        condition = parse_filter(written)
        assert answer(connection, condition, None, {"n": 7}) == 1
        assert answer(connection, condition, None, {"n": -7}) == 0


def test_checkpoints_have_metadata_only(connection):
    where, bound = compile_filter(
        parse_filter({"a": 1, "b": {"$exists": False}}), metadata="metadata", value="NULL"
    )
    connection.execute("DELETE FROM t")
    for metadata in ({"a": 1}, {"a": 1, "b": None}, {"a": 1.0}, {}):
        connection.execute("INSERT INTO t VALUES (?, NULL)", (json.dumps(metadata),))
    found = connection.execute(f"SELECT {where} FROM t ORDER BY rowid", bound).fetchall()
    assert [row[0] for row in found] == [1, 0, 1, 0]


def test_an_operator_without_sql_is_evaluated(connection, monkeypatch):
    starts = (lambda *_: None, lambda found, operand: str(found).startswith(operand))
    monkeypatch.setitem(_OPERATORS, "$starts", starts)
    written = {"a": {"$starts": "x"}, "b": {"$not": {"$starts": "x"}}, "c": {"$gt": 1}}
    condition = parse_filter(written)
    assert answer(connection, condition, {"c": 2}, {"a": "xy", "b": "y"}) == 1
    assert answer(connection, condition, {"c": 2}, {"a": "yx", "b": "y"}) == 0
    assert answer(connection, condition, {"c": 2}, {"a": "xy", "b": "xy"}) == 0
