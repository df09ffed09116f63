from __future__ import annotations

import datetime as dt
import math
from collections import Counter, OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from locus_memory.errors import (
    InvalidArgumentError,
    InvalidEmbeddingError,
    InvalidKeyError,
    InvalidNamespaceError,
    ValueNotSerializableError,
)
from locus_memory.store.encoding import (
    decode_namespace,
    decode_text,
    encode_namespace,
    encode_text,
    namespace_upper_bound,
    prefix_upper_bound,
)
from locus_memory.store.filters import equal
from locus_memory.store.item import (
    Put,
    StoreItem,
    check_embedding,
    check_identifier,
    check_key,
    check_limit,
    check_namespace,
    check_ttl,
    check_version,
    timestamp,
)
from locus_memory.store.json_values import (
    decode_json,
    encode_json,
    encode_metadata,
    round_trip,
)
from locus_memory.testing.store_suite.base import json_values
from locus_memory.testing.store_suite.items import NOT_JSON, NOT_KEYS, NOT_NAMESPACES

quick = settings(deadline=None, max_examples=300)
texts = st.text("\x00\x01\x02\x03aé\ud7ff\ue000\U0010ffff", max_size=4) | st.text(max_size=4)
labels = texts.filter(bool)
namespaces = st.lists(labels, max_size=3).map(tuple)


@pytest.mark.slow
@quick
@given(texts)
def test_text_encoding_round_trips_without_nul(text):
    encoded = encode_text(text)
    assert decode_text(encoded) == text
    assert "\x00" not in encoded
    assert "\x01" not in encoded


@pytest.mark.slow
@quick
@given(namespaces)
def test_namespace_encoding_round_trips(namespace):
    assert decode_namespace(encode_namespace(namespace)) == namespace


@pytest.mark.slow
@quick
@given(texts, texts)
def test_text_encoding_keeps_order_and_prefixes(one, other):
    left, right = encode_text(one), encode_text(other)
    assert (left < right) is (one < other)
    assert (left.encode() < right.encode()) is (one < other)
    assert right.startswith(left) is other.startswith(one)


@pytest.mark.slow
@quick
@given(namespaces, namespaces)
def test_namespace_encoding_keeps_order_and_descent(one, other):
    left, right = encode_namespace(one), encode_namespace(other)
    assert (left == right) is (one == other)
    assert (left < right) is (one < other)
    assert right.startswith(left) is (other[: len(one)] == one)


@pytest.mark.slow
@quick
@given(namespaces, namespaces)
def test_the_bounds_of_a_namespace_hold_its_descendants_only(one, other):
    upper = namespace_upper_bound(one)
    encoded = encode_namespace(other)
    inside = encode_namespace(one) <= encoded and (upper is None or encoded < upper)
    assert inside is (other[: len(one)] == one)


@pytest.mark.slow
@quick
@given(texts, texts)
def test_the_bounds_of_a_prefix_hold_what_starts_with_it(prefix, text):
    upper = prefix_upper_bound(prefix)
    inside = prefix <= text and (upper is None or text < upper)
    assert inside is text.startswith(prefix)
    if upper is not None:
        assert upper.encode().decode() == upper


@pytest.mark.parametrize(("value", "path"), NOT_JSON, ids=[path for _, path in NOT_JSON])
def test_the_path_of_what_is_not_json(value, path):
    with pytest.raises(ValueNotSerializableError) as caught:
        encode_json(value)
    assert caught.value.path == path
    assert str(caught.value).startswith(path)
    with pytest.raises(ValueNotSerializableError):
        round_trip(value)


def test_a_text_of_a_subclass_is_kept_as_a_text():
    """The text of a message of LangChain is one."""

    class Accessor(str):  # noqa: SLOT000 - as LangChain has it
        def __str__(self):
            return "something else"

    encoded, copy = round_trip({"text": Accessor("Grüezi"), "list": [Accessor("a")]})
    assert copy == {"text": "Grüezi", "list": ["a"]} == decode_json(encoded)
    assert type(copy["text"]) is str
    with pytest.raises(ValueNotSerializableError) as caught:
        round_trip({"text": Accessor("a"), "when": math.nan})
    assert caught.value.path == "$.when"


class Point(BaseModel):
    x: int


@dataclass
class Place:
    x: int


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (
            dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            "datetime is not a JSON type: pass value.isoformat()",
        ),
        (dt.date(2026, 1, 1), "date is not a JSON type: pass value.isoformat()"),
        (dt.time(1), "pass value.isoformat()"),
        (dt.timedelta(1), "pass value.total_seconds()"),
        (Point(x=1), 'Point is not a JSON type: pass value.model_dump(mode="json")'),
        (Place(1), "Place is not a JSON type: pass dataclasses.asdict(value)"),
        ({1}, "set is not a JSON type: pass list(value)"),
        (frozenset(), "pass list(value)"),
        ((1,), "tuple is not a JSON type: pass list(value)"),
        (OrderedDict(a=1), "OrderedDict is not a JSON type: pass dict(value)"),
        (Counter("a"), "pass dict(value)"),
        (b"a", "bytes is not a JSON type: pass value.decode(), or base64"),
        (Decimal(1), "pass str(value)"),
        (UUID(int=1), "pass str(value)"),
        (Path("a"), "pass str(value)"),
        (Colour.RED, "Colour is not a JSON type: pass value.value"),
        (np.float32(1), "pass value.item()"),
        (np.zeros(2), "ndarray is not a JSON type: pass value.tolist()"),
        (2**64, "an integer of more than 64 bits: pass str(value)"),
        (math.nan, "nan is not a JSON number: pass None or a string"),
        ("\ud800", "half a character"),
        ({1: "a"}, "the key 1 is not a string: pass str(key)"),
        (..., "ellipsis is not a JSON type"),
    ],
    ids=repr,
)
def test_a_refusal_names_the_remedy(value, remedy):
    with pytest.raises(ValueNotSerializableError) as caught:
        encode_json({"items": [value]})
    assert str(caught.value) == f"$.items[0]: {caught.value.reason}; values must be plain JSON"
    assert remedy in caught.value.reason


def test_an_error_does_not_hold_the_value():
    with pytest.raises(ValueNotSerializableError) as caught:
        encode_json({"password": ("hunter2",)})
    assert "hunter2" not in str(caught.value)


def test_what_is_too_deep_is_refused():
    deep: list = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(ValueNotSerializableError):
        encode_json(deep)


@pytest.mark.slow
@quick
@given(json_values)
def test_json_round_trips(value):
    encoded, decoded = round_trip(value)
    assert encoded == encode_json(value)
    assert equal(decode_json(encoded), value)
    assert equal(decoded, value)
    assert type(decoded) is type(value)


def test_negative_zero_keeps_its_sign():
    assert math.copysign(1, decode_json(encode_json(-0.0))) == -1


def test_metadata_is_any_mapping():
    assert encode_metadata(None) == b"{}"
    assert encode_metadata(MappingProxyType({"a": 1})) == b'{"a":1}'
    with pytest.raises(InvalidArgumentError):
        encode_metadata([("a", 1)])
    with pytest.raises(ValueNotSerializableError, match=r"\$\.when"):
        encode_metadata({"when": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)})


@pytest.mark.parametrize("bad", [*NOT_NAMESPACES, ("\ud800",)], ids=repr)
def test_bad_namespaces(bad):
    with pytest.raises(InvalidNamespaceError):
        check_namespace(bad)


def test_the_empty_namespace_where_it_is_allowed():
    assert check_namespace((), empty=True) == ()


@pytest.mark.parametrize("bad", [*NOT_KEYS, "a\udfff"], ids=repr)
def test_bad_keys(bad):
    with pytest.raises(InvalidKeyError, match="a key is"):
        check_key(bad)
    with pytest.raises(InvalidKeyError, match="a thread id is"):
        check_identifier(bad, "a thread id")


@pytest.mark.parametrize("bad", [-1, True, 1.0, "1"], ids=repr)
def test_bad_limits_and_versions(bad):
    with pytest.raises(InvalidArgumentError, match="limit"):
        check_limit(bad)
    with pytest.raises(InvalidArgumentError, match="if_version"):
        check_version(bad)
    assert check_version(None) is None
    assert check_version(0) == check_limit(0) == 0


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1"], ids=repr)
def test_bad_ttls(bad):
    with pytest.raises(InvalidArgumentError, match="ttl"):
        check_ttl(bad)
    assert check_ttl(None) is None
    assert check_ttl(2) == 2.0


@pytest.mark.parametrize(
    "bad", [[], [math.nan], [0.0], [[1.0]], "ab", None, 1.0, [1.0, "x"]], ids=repr
)
def test_bad_embeddings(bad):
    with pytest.raises(InvalidEmbeddingError):
        check_embedding(bad)


def test_embeddings_are_scaled_to_unit_length():
    for vector in ([3.0, 4.0], np.array([3, 4]), (3e200, 4e200), [3e-300, 4e-300]):
        stored = np.frombuffer(check_embedding(vector, 2), dtype="<f4")
        assert stored.tolist() == pytest.approx([0.6, 0.8])
    with pytest.raises(InvalidEmbeddingError, match="2 dimensions, the store holds 3"):
        check_embedding([1.0, 2.0], 3)


def test_an_item_round_trips_as_a_dict():
    moment = timestamp(1_700_000_000.25)
    item = StoreItem(("a", "b"), "k", {"x": [1]}, {"m": 1}, moment, moment, 3, 0.5, moment)
    document = item.to_dict()
    assert decode_json(encode_json(document)) == document
    assert StoreItem.from_dict(document) == item
    plain = StoreItem(("a",), "k", None, {}, moment, moment)
    assert StoreItem.from_dict(plain.to_dict()) == plain
    with pytest.raises(KeyError):
        StoreItem.from_dict({"key": "k"})


def test_a_put_is_made_by_position():
    assert Put(("n",), "k", 1) == Put(namespace=("n",), key="k", value=1)
    put = Put(("n",), "k", 1, {"a": 1})
    assert put == Put(namespace=("n",), key="k", value=1, metadata={"a": 1})
    assert repr(put) == repr(Put(namespace=("n",), key="k", value=1, metadata={"a": 1}))
    options = {"ttl": 2.0, "if_version": 3, "text": "t", "embedding": [1.0]}
    assert Put(("n",), "k", 1, **options) == Put(namespace=("n",), key="k", value=1, **options)
