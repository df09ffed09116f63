"""What `jsonb` gives back is what was stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.postgresql.items.documents import (
    encode_document,
    encode_object,
    encode_string,
)
from locus_memory.errors import InvalidArgumentError

control = st.text("\x00\x01\x02\x03\x04ab\\u", max_size=8)


@given(control, control)
def test_order_and_parts_stay_as_they_are(one, other):
    assert (encode_string(one) < encode_string(other)) == (one < other)
    assert (encode_string(one) in encode_string(other)) == (one in other)


def test_most_documents_are_stored_as_they_are():
    assert encode_document({"a": ["é", 1.5, "eight e9"]}) == '{"a":["é",1.5,"eight e9"]}'


def test_metadata_is_an_object():
    assert encode_object(None) == "{}"
    assert encode_object({"a": "\x00"}) == '{"a":"\\u0001\\u0001\\u0001\\u0002"}'
    with pytest.raises(InvalidArgumentError):
        encode_object(["a"])
