from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory._internal.quoting import LONGEST, quote
from locus_memory.testing.store_suite.base import json_values


class Failing:
    def __repr__(self):
        raise RuntimeError("secret")


def nested(levels):
    found = []
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize("value", ["a", "it's", ("a", 1), ("a",), (), None, True, {"b": 1, "a": 2}])
def test_what_is_short_is_quoted_as_it_is(value):
    assert quote(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000_000,
        b"x" * 10_000_000,
        ["x" * 1000] * 100_000,
        dict.fromkeys(range(100000), "x" * 1000),
        {"x" * 1000: {"x" * 1000: ["x" * 1000] * 1000}},
        10**5000,
        set(range(100_000)),
        nested(100_000),
        Failing(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_large_or_odd_is_cut(value):
    quoted = quote(value)
    assert len(quoted) <= LONGEST
    assert "secret" not in quoted


@pytest.mark.slow
@given(json_values | st.binary() | st.sets(st.text()) | st.tuples(json_values, st.integers()))
def test_no_quote_is_longer_than_the_longest(value):
    assert len(quote(value)) <= LONGEST
