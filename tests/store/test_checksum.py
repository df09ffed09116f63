"""The checksums of items notice every damage that a test can think of."""

from __future__ import annotations

import math

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from locus_memory.store.checksum import (
    canonical,
    has_vector,
    item_checksum,
    name_checksum,
    value_matches,
    vector_checksum,
)
from locus_memory.store.encoding import encode_namespace, encode_text

NAMES = st.text(max_size=9)
FIELDS = st.tuples(
    st.lists(NAMES, min_size=1, max_size=3).map(lambda labels: encode_namespace(tuple(labels))),
    NAMES.map(encode_text),
    st.binary(max_size=40),
    st.binary(min_size=2, max_size=40),
).map(lambda fields: [each.encode() if isinstance(each, str) else each for each in fields])


def checksums(fields, *, vector=False, extra=b""):
    path, key, value, metadata = fields
    name = name_checksum(path, key)
    return item_checksum(name, value, metadata, vector=vector, extra=extra)


@pytest.mark.slow
@given(FIELDS, st.booleans(), st.binary(max_size=9), st.data())
def test_a_flipped_byte_in_any_field_is_noticed(fields, vector, extra, data):
    before = checksums(fields, vector=vector, extra=extra)
    assert -(2**63) <= before < 2**63
    assert has_vector(before) is vector
    filled = [place for place, field in enumerate(fields) if field]
    assume(filled)
    place = data.draw(st.sampled_from(filled))
    at = data.draw(st.integers(0, len(fields[place]) - 1))
    altered = bytearray(fields[place])
    altered[at] ^= data.draw(st.integers(1, 255))
    damaged = [*fields[:place], bytes(altered), *fields[place + 1 :]]
    assert checksums(damaged, vector=vector, extra=extra) != before
    assert checksums(fields, vector=not vector, extra=extra) != before


@given(FIELDS, st.binary(min_size=1, max_size=9))
def test_what_moves_from_one_field_to_the_next_is_noticed(fields, moved):
    path, key, value, metadata = fields
    before = checksums([path, key, value + moved, metadata])
    assert before != checksums([path, key, value, moved + metadata])
    assert before != checksums([path, key, value, metadata + moved])


@pytest.mark.slow
@given(FIELDS, FIELDS)
def test_a_value_is_known_without_the_metadata(fields, other):
    checksum = checksums(fields)
    name = name_checksum(*fields[:2])
    assert value_matches(checksum, name, fields[2])
    if other[2] != fields[2]:
        assert not value_matches(checksum, name, other[2])
    if other[:2] != fields[:2]:
        assert not value_matches(checksum, name_checksum(*other[:2]), fields[2])
        assert vector_checksum(name, b"1234") != vector_checksum(name_checksum(*other[:2]), b"1234")


@pytest.mark.slow
@given(
    st.lists(NAMES.filter(bool), min_size=1, max_size=4),
    st.lists(NAMES.filter(bool), min_size=1, max_size=4),
    NAMES,
    NAMES,
)
def test_no_two_names_are_framed_alike(labels, others, key, other_key):
    assume((labels, key) != (others, other_key))
    one = encode_namespace(tuple(labels)) + encode_text(key)
    assert one != encode_namespace(tuple(others)) + encode_text(other_key)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=9,
)


@pytest.mark.slow
@given(JSON)
def test_the_canonical_form_is_json_of_an_equal_value(value):
    assert orjson.loads(canonical(value)) == value
    assert canonical(orjson.loads(canonical(value))) == canonical(value)


def test_the_sign_of_zero_and_the_order_of_keys_do_not_matter():
    one = {"a": -0.0, "b": [-0.0, {"c": "-0.0"}], "d": -0.01}
    two = {"d": -0.01, "b": [0.0, {"c": "-0.0"}], "a": 0.0}
    assert canonical(one) == canonical(two)
    assert canonical(1) != canonical(1.0)
    assert math.copysign(1, orjson.loads(canonical(-0.0))) == 1
