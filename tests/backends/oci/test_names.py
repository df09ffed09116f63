"""Names of objects: injective, ordered, never too long, and legal in every request."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.oci.schema import (
    MOST,
    Names,
    NamesInOrder,
    decode_labels,
    decode_name,
    encode_name,
    fit,
    is_cut,
)
from locus_memory.testing.store_suite.base import HOSTILE

NAMES = Names("locus/")
TEXTS = st.text(min_size=1, max_size=12)
LONGEST = Names("p" * 63 + "/")


@pytest.mark.parametrize("text", [*HOSTILE, "\U0010ffff" * 1000, "\x00" * 1000])
def test_any_name_is_legal(text):
    name = LONGEST.item((text, text), text)
    assert len(name.encode()) <= 1024
    assert re.fullmatch(r"[A-Za-z0-9._~/-]+", name)
    assert not {"", ".", ".."} & set(name.split("/"))
    assert len(LONGEST.pack(text).encode()) <= 1024
    assert LONGEST.thread_of_pack(LONGEST.pack(text)) == LONGEST.thread(text)
    parts = LONGEST.parts(name)
    assert parts is not None
    assert is_cut(parts[1]) or decode_name(parts[1]) == text


@given(st.integers(0, 40), st.integers(0, 40))
def test_cut_names_keep_the_order_of_their_first_characters(one, other):
    short, long = "a" * (MOST - 20 + one), "a" * (MOST - 20 + other) + "b" * 30
    if short[:MOST] != long[:MOST]:
        assert (short < long) == (fit(short) < fit(long))
    elif len(short) <= MOST:
        assert fit(short) < fit(long)


@pytest.mark.slow
@given(st.text(max_size=3), st.none() | TEXTS, TEXTS, st.booleans())
def test_the_bounds_of_a_list_hold_what_is_asked_for(prefix, after, key, descending):
    bounds = NamesInOrder.of("f/", prefix, after, descending=descending)
    name = "f/" + fit(encode_name(key))
    inside = name.startswith(bounds.prefix)
    inside = inside and (bounds.start is None or name >= bounds.start)
    inside = inside and (bounds.stop is None or name < bounds.stop)
    wanted = key.startswith(prefix)
    if after is not None:
        wanted = wanted and (key < after if descending else key > after)
    assert inside == wanted


@pytest.mark.parametrize("foreign", ["A", ".", "~zz", "é", "Z", "~ff", "-"])
def test_a_foreign_name_is_no_name(foreign):
    assert decode_name(foreign) is None
    assert decode_labels(foreign + "--") is None


@pytest.mark.parametrize(
    "name", ["locus/items/x", "locus/items/a--/b/c", "locus/items//k", "locus/items/a/k"]
)
def test_a_foreign_object_is_no_item(name):
    assert NAMES.parts(name) is None
