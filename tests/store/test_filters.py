from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidFilterError
from locus_memory.store.filters import (
    MISSING,
    All,
    Comparison,
    Either,
    Negation,
    equal,
    lookup,
    matches,
    parse_filter,
)
from locus_memory.testing.store_suite.base import json_values
from locus_memory.testing.store_suite.filters import BAD, CASES, PEOPLE, filtered_items, filters

quick = settings(deadline=None, max_examples=200)


def holds(document, value, metadata=None):
    return matches(parse_filter(document), value, metadata or {})


@pytest.mark.parametrize(("document", "keys"), CASES, ids=repr)
def test_the_cases_of_the_conformance_suite(document, keys):
    found = [key for key, (value, metadata) in PEOPLE.items() if holds(document, value, metadata)]
    assert " ".join(found) == keys


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_a_bad_filter_is_refused(bad):
    with pytest.raises(InvalidFilterError):
        parse_filter(bad)


def test_an_unknown_operator_is_named_beside_the_known_ones():
    with pytest.raises(InvalidFilterError, match=r"'\$gtt' on 'a\.b'; known: \$eq, .*\$contains"):
        parse_filter({"a.b": {"$gtt": 1}})
    with pytest.raises(InvalidFilterError, match=r"'\$xor' .*known: \$and, \$or, \$not"):
        parse_filter({"$xor": []})
    with pytest.raises(InvalidFilterError, match=r"'gte' on 'a\.b' is no operator: .*'\$gte'\?"):
        parse_filter({"a.b": {"gte": 1}})
    with pytest.raises(InvalidFilterError, match=r"'or' in place .* no operator: .*'\$or'\?"):
        parse_filter({"or": [{"a": 1}]})


@pytest.mark.slow
def test_endless_nesting_is_refused():
    document = {"a": 1}
    for _ in range(100_000):
        document = {"$not": document}
    with pytest.raises(InvalidFilterError, match="at most 64 levels"):
        parse_filter(document)


def test_nothing_to_ask_for_matches_everything():
    assert parse_filter(None) == parse_filter({}) == All(())
    assert holds(None, 1)
    assert holds({"$and": [{}]}, 1)


def test_negations_are_parsed_away():
    same = Comparison(("a",), "$eq", 1)
    assert parse_filter({"a": {"$ne": 1}}) == All((Negation(same),))
    assert parse_filter({"a": {"$nin": [1]}}) == All((Negation(Comparison(("a",), "$in", [1])),))
    assert parse_filter({"a.b": {"$exists": False}}) == All(
        (Negation(Comparison(("a", "b"), "$exists", True)),)
    )
    assert parse_filter({"$or": [{"a": 1}, {"a": {}}]}) == All(
        (Either((All((same,)), All((Comparison(("a",), "$eq", {}),)))),)
    )


def test_a_document_without_operators_is_a_value():
    assert holds({"a": {}}, {"a": {}})
    assert not holds({"a": {}}, {"a": {"b": 1}})


@pytest.mark.slow
@quick
@given(items=filtered_items, document=filters)
def test_every_filter_has_an_opposite(items, document):
    for value, metadata in items:
        assert holds(document, value, metadata) is not holds({"$not": document}, value, metadata)


@pytest.mark.slow
@quick
@given(items=filtered_items, one=filters, other=filters)
def test_and_or_are_those_of_python(items, one, other):
    for value, metadata in items:
        left, right = holds(one, value, metadata), holds(other, value, metadata)
        assert holds({"$and": [one, other]}, value, metadata) is (left and right)
        assert holds({"$or": [one, other]}, value, metadata) is (left or right)


@pytest.mark.slow
@quick
@given(json_values, json_values)
def test_equality_is_an_equivalence(one, other):
    assert equal(one, one)
    assert equal(one, other) is equal(other, one)
    assert holds({"a": {"$eq": other}}, {"a": one}) is equal(one, other)


@pytest.mark.slow
@quick
@given(json_values)
def test_whatever_exists_equals_itself(value):
    assert holds({"a.b": {"$in": [value]}}, {"a": {"b": value}})
    assert holds({"a": {"$contains": value}}, {"a": [value]})


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.b", 1), ("l.0", 5), ("l.1.x", 6), ("l.2", MISSING), ("l.x", MISSING), ("a.b.c", MISSING)],
)
def test_lookup(path, found):
    document = {"a": {"b": 1}, "l": [5, {"x": 6}]}
    assert lookup(path.split("."), document) is found or lookup(path.split("."), document) == found


@pytest.mark.parametrize("step", ["-1", "+0", "1e0", " 0", "\u0660", "0" * 10])
def test_only_plain_digits_index_a_list(step):
    assert lookup([step], [1]) is MISSING


@given(st.text())
def test_a_missing_field_matches_negatives_only(name):
    if name.startswith("$") or not name:
        return
    assert holds({name: {"$ne": 1}}, None)
    assert holds({name: {"$nin": [1]}}, None)
    assert not holds({name: {"$lte": 1}}, None)
    assert not holds({name: None}, None)


def test_a_field_with_half_a_character_is_refused():
    with pytest.raises(InvalidFilterError, match="a field takes a JSON value"):
        parse_filter({"\ud800": 1})
