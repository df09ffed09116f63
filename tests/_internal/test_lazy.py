"""Patterns that are compiled at their first use."""

from __future__ import annotations

import copy
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory._internal.lazy import compiled_later


@given(st.text("ab ", max_size=20))
def test_it_finds_what_the_pattern_finds(text):
    plain = re.compile(r"(?P<x>a+)(b)?")
    later = compiled_later(partial(re.compile, r"(?P<x>a+)(b)?"))
    for name in ("search", "match", "fullmatch"):
        found, expected = getattr(later, name)(text), getattr(plain, name)(text)
        assert (found and found.regs) == (expected and expected.regs)
    assert [each.span() for each in later.finditer(text)] == [
        each.span() for each in plain.finditer(text)
    ]
    assert later.findall(text) == plain.findall(text)
    assert later.split(text) == plain.split(text)
    assert later.sub("-", text) == plain.sub("-", text)
    assert later.subn("-", text, count=1) == plain.subn("-", text, count=1)


def test_it_is_compiled_once_at_the_first_use():
    made = []

    def make():
        made.append(1)
        return re.compile("a", re.IGNORECASE)

    later = compiled_later(make)
    assert made == []
    assert later.match("A")
    assert (later.pattern, later.groups, bool(later.flags & re.IGNORECASE)) == ("a", 0, True)
    assert repr(later) == "compiled_later('a')"
    assert made == [1]
    assert copy.copy(later).match("A")
    with pytest.raises(AttributeError, match="has no 'replace'"):
        _ = later.replace
