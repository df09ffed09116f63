"""A compiled filter finds all that the filter matches, and seldom anything else."""

from __future__ import annotations

import operator
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from locus_memory.backends.opensearch.search.filters import (
    FIELD,
    compile_filter,
    is_everything,
)
from locus_memory.backends.opensearch.search.tokens import OVERFLOW, field_terms
from locus_memory.store.filters import matches, parse_filter

SIGNS = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}


def found(query: dict[str, Any], terms: set[str]) -> bool:
    """Whether a query finds a document with these terms, as the server evaluates it."""
    ((kind, body),) = query.items()
    if kind == "match_all":
        return True
    if kind == "match_none":
        return False
    if kind == "bool":
        return (
            all(found(each, terms) for each in body.get("filter", ()))
            and not any(found(each, terms) for each in body.get("must_not", ()))
            and ("should" not in body or any(found(each, terms) for each in body["should"]))
        )
    return found_in(kind, body[FIELD], terms)


def found_in(kind: str, body: Any, terms: set[str]) -> bool:
    if kind == "term":
        return body in terms
    if kind == "terms":
        return not terms.isdisjoint(body)
    if kind == "prefix":
        return any(term.startswith(body) for term in terms)
    if kind == "range":
        bounds = [(SIGNS[sign], bound.encode()) for sign, bound in body.items()]
        return any(all(sign(t.encode(), bound) for sign, bound in bounds) for t in terms)
    assert kind == "wildcard"
    pieces = re.split(r"(\\.|\*)", body["value"], flags=re.DOTALL)
    pattern = "".join(".*" if p == "*" else re.escape(p.removeprefix("\\")) for p in pieces)
    return any(re.fullmatch(pattern, term, re.DOTALL) for term in terms)


names = st.sampled_from(["a", "b", "0", "1", "00", "", "a.b", "\x00", "n"]) | st.just("k").map(
    lambda letter: letter * 300
)
long_texts = st.builds(
    lambda count, end: "x" * count + end,
    st.sampled_from([127, 128, 129, 200]),
    st.text("a*", max_size=1),
)
numbers = (
    st.integers(-3, 3)
    | st.integers(2**53 - 2, 2**53 + 3)
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 2.0**53, 2.0**63, -(2.0**63)])
)
texts = st.text("ab*?\\\x00\x01\x02é🦊", max_size=3) | long_texts
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(names, values, max_size=3)
fields = (
    st.lists(names.filter(lambda name: "." not in name), min_size=1, max_size=3)
    .map(".".join)
    .filter(bool)
)
tests = st.one_of(
    *(st.builds(lambda v, o=o: {o: v}, values) for o in ("$eq", "$ne", "$contains")),
    *(st.builds(lambda v, o=o: {o: v}, numbers | texts) for o in ("$gt", "$gte", "$lt", "$lte")),
    *(st.builds(lambda v, o=o: {o: v}, st.lists(values, max_size=3)) for o in ("$in", "$nin")),
    st.booleans().map(lambda v: {"$exists": v}),
)
filters = st.recursive(
    st.dictionaries(fields, tests | tests.map(lambda t: {"$not": t}), min_size=1, max_size=2),
    lambda inner: (
        st.builds(lambda parts: {"$and": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda parts: {"$or": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda part: {"$not": part}, inner)
    ),
    max_leaves=5,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(value=values, metadata=objects, given_filter=filters)
@example(value={"a": [7]}, metadata={"a": {"0": 5}}, given_filter={"a.00": 7})
@example(value={"a": {"b": 2}}, metadata={"a": 1}, given_filter={"a.b": 2})
@example(value={"a": 1}, metadata={"a": True}, given_filter={"a": 1})
@example(value={"a": 2**53 + 1}, metadata={}, given_filter={"a": {"$gt": float(2**53)}})
@example(value={"a": "x" * 200 + "b"}, metadata={}, given_filter={"a": {"$gt": "x" * 200 + "a"}})
@example(value={"a": "x" * 200 + "*"}, metadata={}, given_filter={"a": {"$contains": "x*"}})
def test_a_match_is_found(value, metadata, given_filter):
    condition = parse_filter(given_filter)
    terms = set(field_terms(value, metadata))
    if matches(condition, value, metadata):
        assert found(compile_filter(condition), terms)


scalars = st.none() | st.booleans() | numbers | st.text("ab\x00\x01\x02é", max_size=3)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    value=st.dictionaries(st.sampled_from("abc"), scalars | st.lists(scalars, max_size=3)),
    field=st.sampled_from(["a", "b", "a.0"]),
    test=st.one_of(
        *(st.builds(lambda v, o=o: {o: v}, scalars) for o in ("$eq", "$ne")),
        *(st.builds(lambda v, o=o: {o: v}, numbers) for o in ("$gt", "$gte", "$lt", "$lte")),
        st.lists(scalars, max_size=3).map(lambda choices: {"$in": choices}),
        numbers.map(lambda number: {"$contains": number}),
        st.booleans().map(lambda v: {"$exists": v}),
    ),
)
def test_what_is_short_is_found_exactly(value, field, test):
    condition = parse_filter({field: test})
    terms = set(field_terms(value, {}))
    assert found(compile_filter(condition), terms) == matches(condition, value, {})


@pytest.mark.slow
def test_a_document_with_too_many_terms_is_always_looked_at():
    value = {f"k{n}": n for n in range(30_000)}
    terms = field_terms(value, {})
    assert terms == [OVERFLOW]
    for each in ({"k5": 5}, {"k5": {"$ne": 7}}, {"$or": [{"k5": {"$gt": 1}}, {"no": 1}]}):
        assert found(compile_filter(parse_filter(each)), set(terms))


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
