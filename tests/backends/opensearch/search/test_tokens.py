"""The terms of a document: in the order of their values, and the same for equal values only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.opensearch.search.tokens import (
    SHORT,
    extend,
    field_terms,
    number_text,
    string_text,
    value_text,
)
from locus_memory.store.filters import equal
from locus_memory.testing.store_suite.base import json_values

numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
close = st.integers(2**53 - 3, 2**53 + 3).flatmap(
    lambda n: st.sampled_from([n, float(n), -n, -float(n)])
)


@given(one=numbers | close, other=numbers | close)
def test_numbers_keep_their_order(one, other):
    assert (number_text(one) < number_text(other)) == (one < other)
    assert (number_text(one) == number_text(other)) == (one == other)


@given(one=st.text(max_size=SHORT), other=st.text(max_size=SHORT))
def test_short_strings_keep_their_order(one, other):
    first, second = string_text(one).encode(), string_text(other).encode()
    assert (first < second) == (one < other)
    assert (first == second) == (one == other)


@pytest.mark.slow
@given(text=st.text("ab\x00\x02", min_size=SHORT - 2, max_size=SHORT + 3), short=st.text("ab\x00"))
def test_a_long_string_is_in_order_with_short_ones(text, short):
    assert (string_text(text) < string_text(short)) == (text < short) or len(short) > SHORT


@pytest.mark.slow
@given(one=json_values, other=json_values)
def test_only_equal_values_have_one_text(one, other):
    assert (value_text(one) == value_text(other)) == equal(one, other)


@pytest.mark.slow
@given(value=json_values)
def test_a_value_equals_its_copy_with_other_numbers(value):
    def floats(each):
        if isinstance(each, dict):
            return {key: floats(child) for key, child in reversed(each.items())}
        if isinstance(each, list):
            return list(map(floats, each))
        is_whole = type(each) is int and each == float(each)
        return float(each) if is_whole else each

    assert equal(value, floats(value))
    assert value_text(value) == value_text(floats(value))


def test_paths_never_meet():
    steps = ["", "a", "a\x01", "\x01", "\x00", "b", "a\x01b", "x" * 300]
    paths = {extend(extend("", one), other) for one in steps for other in steps}
    assert len(paths) == len(steps) ** 2
    assert not paths & {extend("", each) for each in steps}


def test_the_metadata_hides_the_value():
    terms = field_terms({"a": 1, "b": {"c": 2}}, {"a": "x", "b": 3})
    assert {extend("", "a") + "\x00sx", extend("", "b") + "\x00n" + number_text(3)} <= set(terms)
    assert extend(extend("", "b"), "c") + "\x00n" + number_text(2) in terms
    assert not any(term.startswith(extend("", "a") + "\x00n") for term in terms)


def test_no_term_is_too_long_for_the_index():
    deep = "🦊" * 5_000
    for level in range(200):
        deep = {"🦊" * 500 + str(level): deep, "list": [deep] if level < 3 else []}
    terms = field_terms(deep, {"x" * 40_000: "y" * 40_000})
    assert max(len(term.encode()) for term in terms) < 3_000


def test_a_part_that_no_filter_can_name_has_no_term():
    assert field_terms({"a.b": 1}, {}) == []
    assert field_terms("text", {}) == []
