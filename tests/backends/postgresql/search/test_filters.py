"""Compiled filters answer exactly as `matches` does."""

from __future__ import annotations

import asyncio
import math

import asyncpg
import pytest

from locus_memory.backends.postgresql.items.documents import encode_document
from locus_memory.backends.postgresql.search.filters import Arguments
from locus_memory.store.filters import MOST_TERMS, parse_filter


def compile_filter(condition, *, metadata, value, first):
    """Return the SQL of a filter, and its parameters, of which there are others before."""
    arguments = Arguments()
    arguments.values += [None] * (first - 1)
    where = arguments.compile(condition, metadata=metadata, value=value)
    return where, arguments.values[first - 1 :]


@pytest.fixture(scope="module")
def ask(postgresql_server):
    """Return what a server says of filters and documents, one list of answers for each filter."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(postgresql_server.url))

        def answers(written, pairs, value="t.value"):
            where, bound = compile_filter(
                parse_filter(written), metadata="t.metadata", value=value, first=2
            )
            rows = encode_document([list(pair) for pair in pairs])
            statement = f"""
                SELECT {where} FROM (
                  SELECT pair -> 0 AS value, pair -> 1 AS metadata
                  FROM jsonb_array_elements($1::jsonb) AS each (pair)) AS t"""
            return [row[0] for row in runner.run(connection.fetch(statement, rows, *bound))]

        yield answers
        runner.run(connection.close())


def test_fractions_equal_themselves_and_not_their_neighbours(ask):
    for number in (k / 10**d for d in range(1, 17) for k in (1, 3, 7, 123456789)):
        operands = (number, math.nextafter(number, 1e9), math.nextafter(number, 0))
        pairs = [(None, {"n": each}) for each in operands]
        assert ask({"n": number}, pairs) == [True, False, False]
        assert ask({"n": {"$gt": number}}, pairs) == [False, True, False]


def test_texts_are_ordered_by_code_point_in_any_database(ask):
    ordered = sorted(["b", "B", "a", "aa", "é", "z", "\ue000", "🦊", "10", "9", "_", " ", "\x00"])
    for index, text in enumerate(ordered):
        answers = ask({"t": {"$lt": text}}, [({"t": each}, {}) for each in ordered])
        assert answers == [True] * index + [False] * (len(ordered) - index)


@pytest.mark.slow
def test_a_filter_of_any_size_is_evaluated(ask):
    many = {"n": {"$in": list(range(5000))}}
    deep = {"n": 7}
    for _ in range(30):
        deep = {"$not": {"$not": deep}}
    for written in (many, deep, {"$and": [{"n": 7}] * 4999}, {"$or": [{"n": 7}] * 4999}):
        assert ask(written, [(None, {"n": 7}), (None, {"n": -7})]) == [True, False]


@pytest.mark.slow
def test_no_filter_has_more_parameters_than_the_protocol_counts():
    many = {f"{n}": n for n in range(MOST_TERMS)}
    steps = {".".join(f"0000000000{n}" for n in range(MOST_TERMS)): 1}
    ordered = {f"{n}": {"$gt": f"{n}", "$contains": f"c{n}"} for n in range(MOST_TERMS // 3)}
    for written in (many, steps, ordered):
        condition = parse_filter(written)
        assert len(compile_filter(condition, metadata="m", value="v", first=9)[1]) < 2**15 - 9


def test_there_may_be_metadata_only(ask):
    pairs = [(None, metadata) for metadata in ({"a": 1}, {"a": 1, "b": None}, {"a": 1.0}, {})]
    found = ask({"a": 1, "b": {"$exists": False}}, pairs, value=None)
    assert found == [True, False, True, False]
