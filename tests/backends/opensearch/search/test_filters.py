"""What a filter becomes; that it finds what it should is proved on a server, in `integration/`."""

from __future__ import annotations

from typing import Any

import pytest

from locus_memory.backends.opensearch.search.filters import FIELD, compile_filter
from locus_memory.backends.opensearch.search.tokens import OVERFLOW, field_terms
from locus_memory.backends.selection import is_everything
from locus_memory.store.filters import _OPERATORS, parse_filter


@pytest.mark.slow
def test_a_document_with_too_many_terms_has_one():
    assert field_terms({f"k{n}": n for n in range(30_000)}, {}) == [OVERFLOW]


@pytest.mark.parametrize(
    "large",
    [
        {"$and": [{f"f{n}": {"$gt": n}} for n in range(600)]},
        {"$or": [{f"f{n}": {"$gt": n}} for n in range(600)]},
    ],
    ids=["and", "or"],
)
def test_a_filter_with_too_many_clauses_looks_at_everything(large):
    assert compile_filter(parse_filter(large)) == {"match_all": {}}


def test_a_deep_filter_looks_at_everything():
    deep: dict[str, Any] = {"a": {"$gt": 1}}
    for _ in range(10):
        deep = {"$or": [{"b": {"$lt": 1}}, {"$and": [deep, {"c": {"$gt": 2}}]}]}
    assert compile_filter(parse_filter(deep)) == {"match_all": {}}


def test_choices_are_one_clause():
    """So no number of choices is more than the server takes."""
    many = {"$or": [{"a": {"$in": list(range(3_000))}}, *({"b": n} for n in range(3_000))]}
    ((kind, body),) = compile_filter(parse_filter(many)).items()
    assert (kind, len(body[FIELD])) == ("terms", 6_001)


def test_only_a_filter_without_conditions_is_everything():
    assert is_everything(parse_filter(None))
    assert is_everything(parse_filter({"$and": [{}, {}]}))
    assert not is_everything(parse_filter({"a": 1}))


def test_an_operator_without_a_query_looks_at_everything(monkeypatch):
    starts = (lambda *_: None, lambda found, operand: str(found).startswith(operand))
    monkeypatch.setitem(_OPERATORS, "$starts", starts)
    for written in ({"a": {"$starts": "x"}}, {"a": {"$not": {"$starts": "x"}}}):
        assert compile_filter(parse_filter(written)) == {"match_all": {}}
