"""The store suite: one item at a time, its version and its value."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from locus_memory.errors import (
    InvalidArgumentError,
    InvalidKeyError,
    InvalidNamespaceError,
    ValueNotSerializableError,
    VersionConflictError,
)
from locus_memory.store.base import BaseStore
from locus_memory.store.filters import equal
from locus_memory.store.item import Delete, Put, StoreItem, timestamp
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import (
    HOSTILE,
    NOT_TEXT,
    PROPERTY,
    StoreSuite,
    held,
    json_objects,
    json_values,
    need,
    refused,
)

__all__ = ["ItemTests", "NameTests", "ValueTests"]

NS = ("users", "ada")

NOT_NAMESPACES: list[Any] = ["users", ["users"], (), ("",), ("a", ""), (1,), ("a", None), None]
NOT_KEYS: list[Any] = ["", None, 1, b"key", ("key",)]

NOT_JSON: list[tuple[Any, str]] = [
    (math.nan, "$"),
    ({"a": [1, math.inf]}, "$.a[1]"),
    ({"a": -math.inf}, "$.a"),
    ({"items": [{}, {}, {}, {"when": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}]}, "$.items[3].when"),
    ({"day": dt.date(2026, 1, 1)}, "$.day"),
    ({"tags": {"a", "b"}}, "$.tags"),
    ({"pair": (1, 2)}, "$.pair"),
    ({"raw": b"bytes"}, "$.raw"),
    ({"odd name": [object()]}, "$['odd name'][0]"),
    ({"a": {1: "one"}}, "$.a"),
    ({"a": {None: "none"}}, "$.a"),
    ([2**70], "$[0]"),
    ([-(2**63) - 1], "$[0]"),
    (["\ud800"], "$[0]"),
]


class ItemTests(StoreSuite):
    """Put, get, delete and the version of an item."""

    async def test_an_item_comes_back_whole(self, store: BaseStore, clock: FakeClock) -> None:
        assert await store.put(NS, "k", {"name": "Ada"}, {"source": "form"}) == 1
        moment = timestamp(clock())
        assert await store.get_item(NS, "k") == StoreItem(
            namespace=NS,
            key="k",
            value={"name": "Ada"},
            metadata={"source": "form"},
            created_at=moment,
            updated_at=moment,
        )
        assert await store.get(NS, "k") == {"name": "Ada"}
        assert await store.exists(NS, "k")

    async def test_a_stored_none_exists(self, store: BaseStore) -> None:
        await store.put(NS, "k", None)
        assert await store.exists(NS, "k")
        item = await held(store, NS, "k")
        assert item.value is None
        assert item.metadata == {}
        assert await store.get_batch([(NS, "k")]) == {(NS, "k"): None}
        assert await store.delete(NS, "k")

    async def test_an_update_keeps_created_at_and_replaces_the_rest(
        self, store: BaseStore, clock: FakeClock
    ) -> None:
        created = timestamp(clock())
        await store.put(NS, "k", "old", {"a": 1})
        clock.advance(60)
        assert await store.put(NS, "k", "new") == 2
        item = await held(store, NS, "k")
        assert (item.value, item.metadata, item.version) == ("new", {}, 2)
        assert item.created_at == created
        assert item.updated_at == timestamp(clock())
        assert item.created_at.tzinfo is not None

    async def test_concurrent_puts_are_counted_exactly(self, store: BaseStore) -> None:
        versions = await asyncio.gather(*(store.put(NS, "k", n) for n in range(60)))
        assert sorted(versions) == list(range(1, 61))
        item = await held(store, NS, "k")
        assert item.version == 60
        assert item.value == versions.index(60)

    async def test_one_of_many_conditional_puts_wins(self, store: BaseStore) -> None:
        results = await asyncio.gather(
            *(store.put(NS, "k", n, if_version=0) for n in range(20)), return_exceptions=True
        )
        conflicts = [each for each in results if isinstance(each, VersionConflictError)]
        assert len(conflicts) == 19
        assert await store.get(NS, "k") == results.index(1)

    async def test_optimistic_increments_lose_nothing(self, store: BaseStore) -> None:
        await store.put(NS, "count", 0)

        async def increment() -> None:
            while True:
                item = await held(store, NS, "count")
                try:
                    await store.put(NS, "count", item.value + 1, if_version=item.version)
                except VersionConflictError:
                    continue
                return

        await asyncio.gather(*(increment() for _ in range(10)))
        assert await store.get(NS, "count") == 10

    async def test_a_put_that_lost_writes_nothing(self, store: BaseStore) -> None:
        await store.put(NS, "k", "kept", {"a": 1})
        for expected in (0, 2, 7, 2**62, 2**63, 10**30):
            [error] = await refused(
                VersionConflictError,
                store.put(NS, "k", "lost", if_version=expected),
            )
            assert (error.expected, error.actual) == (expected, 1)
        [error] = await refused(
            VersionConflictError,
            store.put(NS, "missing", "lost", if_version=1),
        )
        assert (error.expected, error.actual) == (1, 0)
        item = await held(store, NS, "k")
        assert (item.value, item.metadata, item.version) == ("kept", {"a": 1}, 1)
        assert not await store.exists(NS, "missing")
        assert await store.put(NS, "k", "won", if_version=1) == 2
        assert await store.put(NS, "missing", "won", if_version=0) == 1

    async def test_a_conflict_names_the_item(self, store: BaseStore) -> None:
        for namespace, key in ((NS, "k"), (("a/b", "é\x00", "%"), "key: 'x'\x00")):
            await store.put(namespace, key, 1)
            errors = await refused(
                VersionConflictError,
                store.put(namespace, key, 2, if_version=7),
                store.delete(namespace, key, if_version=7),
                store.put_batch(
                    [
                        Put(namespace=namespace, key="new", value=1),
                        Put(namespace=namespace, key=key, value=2, if_version=7),
                    ]
                ),
            )
            assert [(error.namespace, error.key) for error in errors] == [(namespace, key)] * 3
            assert str(errors[0]) == f"{key!r} in {namespace!r}: expected version 7, found 1"

    @pytest.mark.parametrize("if_version", [-1, True, 1.0, "1"])
    async def test_a_bad_if_version_is_refused(self, store: BaseStore, if_version: Any) -> None:
        await store.put(NS, "k", "kept")
        await refused(
            InvalidArgumentError,
            store.put(NS, "k", "lost", if_version=if_version),
            store.delete(NS, "k", if_version=if_version),
        )
        assert await store.get(NS, "k") == "kept"

    async def test_values_are_copies(self, store: BaseStore) -> None:
        value: dict[str, Any] = {"list": [1]}
        metadata: dict[str, Any] = {"tags": ["a"]}
        await store.put(NS, "k", value, metadata)
        value["list"].append(2)
        metadata["tags"].append("b")
        for _ in range(2):
            item = await held(store, NS, "k")
            assert item.value == {"list": [1]}
            assert item.metadata == {"tags": ["a"]}
            item.value["list"].append(3)
            item.metadata["tags"].append("c")
            (await store.get(NS, "k"))["list"].append(4)
            (await store.scan(NS))[0].value["list"].append(5)
            (await store.search(NS))[0].value["list"].append(6)
            (await store.get_batch([(NS, "k")]))[NS, "k"]["list"].append(7)


class NameTests(StoreSuite):
    """Any character is valid in a name, and no two names collide."""

    async def test_hostile_keys_never_meet(self, store: BaseStore) -> None:
        for key in HOSTILE:
            assert await store.put(NS, key, key) == 1
        for key in HOSTILE:
            assert await store.get(NS, key) == key
        assert await store.list_keys(NS, 1000) == sorted(HOSTILE)
        for key in HOSTILE:
            assert await store.delete(NS, key)
            assert not await store.exists(NS, key)
        assert await store.list_keys(NS) == []

    async def test_hostile_labels_never_meet(self, store: BaseStore) -> None:
        namespaces = [namespace for label in HOSTILE for namespace in ((label,), ("x", label))]
        for namespace in namespaces:
            assert await store.put(namespace, "k", list(namespace)) == 1
        for namespace in namespaces:
            assert await store.get(namespace, "k") == list(namespace)
            assert await store.list_keys(namespace) == ["k"]
            assert [item.namespace for item in await store.search(namespace)] == [namespace]
        if store.capabilities.list_namespaces:
            assert await store.list_namespaces(limit=1000) == sorted(namespaces)
        for namespace in namespaces:
            assert await store.clear_namespace(namespace) == 1

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (("a/b",), ("a", "b")),
            (("a", "b/c"), ("a/b", "c")),
            (("a\x1fb",), ("a", "b")),
            (("a\x00b",), ("a", "b")),
            (("a.b",), ("a", "b")),
            (("a:b",), ("a", "b")),
            (("users",), ("users:admin",)),
            (("users",), ("users", "admin")),
            (("foo",), ("foobar",)),
            (("Foo",), ("foo",)),
            (("a", "b"), ("b", "a")),
            (("a",), ("a ",)),
            (("e\u0301",), ("é",)),
            (("*",), ("a",)),
            (("a_c",), ("abc",)),
            (("a%",), ("abc",)),
        ],
    )
    async def test_namespaces_never_meet(
        self, store: BaseStore, one: tuple[str, ...], other: tuple[str, ...]
    ) -> None:
        for mine, theirs in ((one, other), (other, one)):
            await store.put(mine, "k", "mine")
            assert await store.get(theirs, "k") is None
            assert await store.list_keys(theirs) == []
            assert await store.search(theirs) == []
            assert await store.clear_namespace(theirs) == 0
            assert await store.delete(mine, "k")

    @PROPERTY
    @given(
        names=st.sets(
            st.tuples(
                st.lists(st.text(min_size=1, max_size=6), max_size=2).map(tuple),
                st.text(min_size=1, max_size=12),
            ),
            max_size=8,
        )
    )
    async def test_any_names_never_meet(
        self, store: BaseStore, names: set[tuple[tuple[str, ...], str]]
    ) -> None:
        root = self.fresh()
        for labels, key in names:
            assert await store.put((*root, *labels), key, [*labels, key]) == 1
        for labels, key in names:
            assert await store.get((*root, *labels), key) == [*labels, key]
        for labels in {labels for labels, _ in names}:
            mine = sorted(key for others, key in names if others == labels)
            assert await store.list_keys((*root, *labels)) == mine

    @pytest.mark.parametrize("namespace", NOT_NAMESPACES, ids=repr)
    async def test_a_bad_namespace_is_refused_by_every_verb(
        self, store: BaseStore, namespace: Any
    ) -> None:
        await refused(
            InvalidNamespaceError,
            store.put(namespace, "k", 1),
            store.put_batch([(("good",), "k", 1), (namespace, "k", 1)]),
            store.get(namespace, "k"),
            store.get_item(namespace, "k"),
            store.exists(namespace, "k"),
            store.get_batch([(namespace, "k")]),
            store.delete(namespace, "k"),
            store.delete_batch([(namespace, "k")]),
            store.list_keys(namespace),
            store.scan(namespace),
            store.search(namespace),
            store.clear_namespace(namespace),
        )
        if store.capabilities.batch_operations:
            assert not await store.exists(("good",), "k")

    @pytest.mark.parametrize("key", NOT_KEYS, ids=repr)
    async def test_a_bad_key_is_refused_by_every_verb(self, store: BaseStore, key: Any) -> None:
        await refused(
            InvalidKeyError,
            store.put(NS, key, 1),
            store.get(NS, key),
            store.get_item(NS, key),
            store.exists(NS, key),
            store.delete(NS, key),
            store.put_batch([(NS, key, 1)]),
            store.get_batch([(NS, key)]),
            store.delete_batch([(NS, key)]),
        )
        assert await store.list_keys(NS) == []


class ValueTests(StoreSuite):
    """A value is JSON and is returned equal; any other value is refused with its path."""

    @PROPERTY
    @given(value=json_values, metadata=json_objects)
    @example(value=-0.0, metadata={"": 5e-324})
    @example(value=[1.7976931348623157e308, 2**64 - 1, -(2**63), True, 1, 1.0], metadata={})
    @example(
        value={"\x01": 1, "\x02": {"a\x00b": ["\x00\x03\x04"]}, "\\u0000": "\\u0001"}, metadata={}
    )
    @example(value={"\x00": "a\x00b", '"': "\\", "": {}}, metadata={"\x00": "\x00"})
    async def test_any_json_comes_back_equal(
        self, store: BaseStore, value: Any, metadata: dict[str, Any]
    ) -> None:
        namespace = self.fresh()
        await store.put(namespace, "k", value, metadata)
        item = await held(store, namespace, "k")
        assert equal(item.value, value)
        assert equal(item.metadata, metadata)

    async def test_numbers_keep_their_types(self, store: BaseStore) -> None:
        numbers = [1, True, 1.0, 0, False, 0.0, 2**63, 2.0**63, 1e16, 1e22, 1e23, -1e300, 1e-7, 0.1]
        await store.put(NS, "k", numbers)
        found = await store.get(NS, "k")
        assert [(type(each), each) for each in found] == [(type(each), each) for each in numbers]

    @pytest.mark.parametrize(("value", "path"), NOT_JSON, ids=[path for _, path in NOT_JSON])
    async def test_anything_but_json_is_refused(
        self, store: BaseStore, value: Any, path: str
    ) -> None:
        await store.put(NS, "k", "kept")
        errors = await refused(
            ValueNotSerializableError,
            store.put(NS, "k", value),
            store.put(NS, "new", value),
            store.put_batch([(NS, "k", value)]),
        )
        assert [error.path for error in errors] == [path] * 3
        await refused(ValueNotSerializableError, store.put(NS, "k", "lost", {"field": value}))
        assert [(i.key, i.value) for i in await store.scan(NS)] == [("k", "kept")]

    async def test_write_batch_refuses_anything_but_json(self, store: BaseStore) -> None:
        need(store, "transactions")
        await store.put(NS, "k", "kept")
        first = Delete(namespace=NS, key="k")
        await refused(
            ValueNotSerializableError,
            store.write_batch([first, Put(namespace=NS, key="k", value={"a": math.nan})]),
            store.write_batch([first, Put(namespace=NS, key="k", value=1, metadata={"a": NS})]),
        )
        assert await store.get(NS, "k") == "kept"

    @pytest.mark.parametrize("levels", [10, 200, 240, 250, 255, 300, 1000, 10_000])
    async def test_a_deep_value_is_kept_or_refused(self, store: BaseStore, levels: int) -> None:
        deep: Any = "leaf"
        for level in range(levels):
            deep = [deep] if level % 2 else {"a": deep}
        if levels <= 240:
            await store.put(NS, "k", deep, {"meta": deep})
            item = await held(store, NS, "k")
            assert (item.value, item.metadata) == (deep, {"meta": deep})
            assert [each.key for each in await store.search(NS)] == ["k"]
        elif levels > 254:
            await refused(ValueNotSerializableError, store.put(NS, "k", deep))
            await refused(ValueNotSerializableError, store.put(NS, "k", 1, {"meta": deep}))
            assert not await store.exists(NS, "k")

    async def test_an_error_quotes_the_beginning_of_a_name(self, store: BaseStore) -> None:
        large = "x" * 1_000_000
        bad: Any
        for bad in ((large + "\ud800",), (large, ""), large, ([large] * 1000,)):
            errors = await refused(InvalidNamespaceError, store.put(bad, "k", 1))
            assert len(str(errors[0])) < 1000
        for bad in (large + "\ud800", [large]):
            for call in (store.put(NS, bad, 1), store.get(NS, bad)):
                [error] = await refused(InvalidKeyError, call)
                assert len(str(error)) < 1000
        for value in ({large: math.nan}, {"a": {large + " ": {1}}}, [{(large,): 1}]):
            refusals = await refused(ValueNotSerializableError, store.put(NS, "k", value))
            assert len(str(refusals[0])) < 1000

    async def test_a_value_that_contains_itself_is_refused(self, store: BaseStore) -> None:
        loop: list[Any] = []
        loop.append(loop)
        await refused(
            ValueNotSerializableError,
            store.put(NS, "k", loop),
        )

    @pytest.mark.parametrize("metadata", ["text", ["list"], 1, [("a", 1)]], ids=repr)
    async def test_metadata_is_an_object(self, store: BaseStore, metadata: Any) -> None:
        await refused(
            InvalidArgumentError,
            store.put(NS, "k", 1, metadata),
        )
        assert not await store.exists(NS, "k")

    @pytest.mark.parametrize("text", NOT_TEXT, ids=ascii)
    async def test_a_bad_text_is_refused(self, store: BaseStore, text: Any) -> None:
        await refused(
            InvalidArgumentError,
            store.put(NS, "k", 1, text=text),
            store.put_batch([Put(namespace=NS, key="k", value=1, text=text)]),
        )
        assert not await store.exists(NS, "k")

    async def test_a_large_value_comes_back(self, store: BaseStore) -> None:
        value = {"text": "x\x00é🦊" * 50_000, "list": list(range(10_000))}
        await store.put(NS, "k", value)
        assert await store.get(NS, "k") == value
