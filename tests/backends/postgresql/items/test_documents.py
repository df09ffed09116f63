"""What `jsonb` gives back is what was stored."""

from __future__ import annotations

import asyncio
import math

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.postgresql.items.documents import (
    decode_document,
    encode_document,
    encode_object,
    encode_string,
)
from locus_memory.errors import InvalidArgumentError, ValueNotSerializableError
from locus_memory.testing.store_suite.base import json_values

control = st.text("\x00\x01\x02\x03\x04ab\\u", max_size=8)


@pytest.fixture(scope="module")
def stored(postgresql_server):
    """Return a value as a server gives it back."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(postgresql_server.url))

        def there_and_back(value):
            return decode_document(
                runner.run(connection.fetchval("SELECT $1::jsonb", encode_document(value)))
            )

        yield there_and_back
        runner.run(connection.close())


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(json_values | st.lists(control | st.dictionaries(control, control)))
def test_any_value_comes_back(stored, value):
    assert stored(value) == value


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**64 - 1))
)
def test_numbers_keep_their_type(stored, numbers):
    back = stored(numbers)
    assert back == numbers
    assert [type(number) for number in back] == [type(number) for number in numbers]


@pytest.mark.parametrize(
    "number", [1e16, 1e22, 1e23, -1e300, 1.7976931348623157e308, 5e-324, 1e-7, -0.0, 2.0**63, 0.1]
)
def test_extreme_floats_come_back(stored, number):
    assert stored({"n": [number]}) == {"n": [number]}
    assert isinstance(stored(number), float)


def test_names_of_fields_come_back(stored):
    value = {"\x00": 1, "\x01": 2, "\x02": {"a\x00b": ["\x00"]}, "\\u0000": "\\u0001", "": ""}
    assert stored(value) == value


@given(control, control)
def test_order_and_parts_stay_as_they_are(one, other):
    assert (encode_string(one) < encode_string(other)) == (one < other)
    assert (encode_string(one) in encode_string(other)) == (one in other)


def test_most_documents_are_stored_as_they_are():
    assert encode_document({"a": ["é", 1.5, "eight e9"]}) == '{"a":["é",1.5,"eight e9"]}'


@pytest.mark.parametrize("value", [math.nan, {"a": (1,)}, {1: 1}, {"\x00": {1, 2}}, [1e300, b""]])
def test_what_is_no_json_is_refused(value):
    with pytest.raises(ValueNotSerializableError):
        encode_document(value)


def test_metadata_is_an_object():
    assert encode_object(None) == "{}"
    assert encode_object({"a": "\x00"}) == '{"a":"\\u0001\\u0001\\u0001\\u0002"}'
    with pytest.raises(InvalidArgumentError):
        encode_object(["a"])
