"""Items as documents: names, sizes, and damage that is noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.opensearch.items.documents import (
    Address,
    Document,
    item_of,
    microseconds,
    value_of,
)
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.items.writing import lines_of
from locus_memory.backends.opensearch.schema import Features
from locus_memory.errors import (
    BackendCorruptError,
    InvalidArgumentError,
    InvalidEmbeddingError,
    InvalidKeyError,
    InvalidNamespaceError,
)
from locus_memory.store.item import Put, check_embedding

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
PUT = Put(namespace=("users", "ada"), key="diet", value={"a": [1, None]}, metadata={"m": "é"})

namespaces = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3).map(tuple)


def stored(put=PUT, **changed):
    """Return the document of a put as the server returns it."""
    fields = Document.of(put, None).written(NOW)
    source = {**fields, "version": 1, "created": microseconds(NOW), **changed}
    return {name: value for name, value in source.items() if name not in {"terms", "text"}}


@pytest.mark.slow
@given(
    one=st.tuples(namespaces, st.text(min_size=1, max_size=4)),
    other=st.tuples(namespaces, st.text(min_size=1, max_size=4)),
)
def test_no_two_items_share_an_id(one, other):
    assert (Address.of(*one).id == Address.of(*other).id) == (one == other)
    assert Address.of(*one).namespace == one[0]


def test_an_id_is_short_and_safe_in_a_path():
    for key in ("k", "/?#%", "🦊" * 8_000, "a\x00b"):
        address = Address.of(("a/b", "\x01"), key)
        assert len(address.id) == 48
        assert address.id.replace("-", "").replace("_", "").isalnum()


def test_an_item_comes_back():
    item = item_of(stored())
    assert (item.namespace, item.key, item.value) == (PUT.namespace, PUT.key, PUT.value)
    assert (item.metadata, item.created_at, item.updated_at) == (PUT.metadata, NOW, NOW)
    assert item.expires_at is None
    later = item_of(stored(replace(PUT, ttl=0.5)))
    assert later.expires_at == NOW + timedelta(seconds=0.5)


@pytest.mark.parametrize(
    "changed",
    [
        {"key": "other"},
        {"namespace": "users\x01eve\x01"},
        {"value": '{"a": [1, 2]}'},
        {"value": '{"a": [1, nul'},
        {"value": None},
        {"metadata": "{}"},
        {"checksum": 7},
        {"created": "yesterday"},
        {"namespace": 5},
    ],
    ids=repr,
)
def test_a_changed_document_is_noticed(changed):
    with pytest.raises(BackendCorruptError) as caught:
        item_of(stored(**changed))
    assert "[1, 2]" not in str(caught.value)


def test_a_missing_field_is_noticed():
    source = stored()
    for name in ("key", "namespace", "value", "metadata", "checksum", "version", "created"):
        with pytest.raises(BackendCorruptError):
            item_of({key: value for key, value in source.items() if key != name})


def test_the_value_of_another_item_is_noticed():
    address = Address.of(PUT.namespace, PUT.key)
    assert value_of(stored(), address) == PUT.value
    with pytest.raises(BackendCorruptError, match="'diet' of"):
        value_of(stored(replace(PUT, key="other")), address)
    with pytest.raises(BackendCorruptError):
        value_of(stored(value="1"), address)


@pytest.mark.slow
def test_what_is_too_long_is_refused():
    with pytest.raises(InvalidKeyError, match="at most 32,000 bytes"):
        Document.of(replace(PUT, key="é" * 16_001), None)
    with pytest.raises(InvalidNamespaceError, match="at most 32,000 bytes"):
        Document.of(replace(PUT, namespace=("x" * 32_000,)), None)
    with pytest.raises(InvalidArgumentError, match="at most 20,000,000 bytes"):
        Document.of(replace(PUT, value="x" * 20_000_000), None)
    vector = check_embedding([1.0] * 16_001)
    with pytest.raises(InvalidEmbeddingError, match="16,000"):
        Document.of(PUT, vector)


def test_a_value_is_text_and_no_field():
    """So 10,000 keys are no fields, and `1` and `1.0` stay what they are."""
    hostile = {f"key {n}": n for n in range(10_000)}
    fields = Document.of(replace(PUT, value=hostile), None).written(NOW)
    assert json.loads(fields["value"]) == hostile
    assert fields.keys() <= {*ITEMS.properties, "value", "metadata", "checksum", "operation"}
    assert value_of(stored(replace(PUT, value=[1, 1.0])), Address.of(PUT.namespace, PUT.key)) == [
        1,
        1.0,
    ]


def test_lines_are_json_with_the_expected_version():
    address = Address.of(PUT.namespace, PUT.key, 10**30)
    action, body = map(json.loads, lines_of(address, NOW).splitlines())
    assert action["update"]["_id"] == address.id
    assert body["script"]["params"] == {"now": microseconds(NOW), "expected": 2**62}
    _, body = map(json.loads, lines_of(Document.of(PUT, None), NOW).splitlines())
    assert body["script"]["params"]["expected"] is None


def test_the_index_takes_no_vectors_without_the_plugin():
    assert "knn" not in ITEMS.settings(Features(version=(3, 6, 0)))
    settings = ITEMS.settings(Features(version=(3, 6, 0), knn=True))
    assert settings["knn"] is True
    assert settings["knn.derived_source.enabled"] is False
    assert "knn.derived_source.enabled" not in ITEMS.settings(
        Features(version=(2, 19, 6), knn=True)
    )
