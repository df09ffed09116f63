"""A store of py-key-value: the cases that its makers hold every store against, and ours."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from key_value.aio.errors import InvalidKeyError, InvalidTTLError, SerializationError
from key_value.aio.protocols.key_value import (
    AsyncCullProtocol,
    AsyncDestroyCollectionProtocol,
    AsyncDestroyStoreProtocol,
    AsyncEnumerateCollectionsProtocol,
    AsyncEnumerateKeysProtocol,
    AsyncKeyValueProtocol,
)
from key_value.aio.stores.base import BaseStore
from key_value.aio.stores.memory import MemoryStore

from locus_memory import EncryptingStore, InvalidNamespaceError, get_store
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.events import collect
from locus_memory.integrations.key_value import LocusKeyValue
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing import FakeClock

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
SOME_ID = UUID("12345678-1234-5678-1234-567812345678")

ROUND_TRIPS = {
    "null": [None, [None, None], {"a": None, "b": None}, "null"],
    "boolean": [True, False, [True, False, True], {"a": True, "b": False}, "true"],
    "integer": [1, -42, 10**18, "1"],
    "float": [1.0, 1.23456789012345e10, "1.0"],
    "string": ["text", "a" * 1024, "Hello 世界 🌍 émojis", "Line1\nLine2\tTabbed", "\x00"],
    "identifier": [str(SOME_ID)],
    "nested": [{"b": {"c": {"d": {"e": "deep"}}}}, [{"id": 1}, {"id": 2}] * 1000],
    "large": ["a" * 10_000, list(range(1000))],
}
REFUSED = [NOON, date(2025, 1, 1), time(12), SOME_ID, b"bytes", {1, 2}, float("nan"), 2**70]


class TestTheCasesOfItsMakers:
    """The table of cases of py-key-value's shared tests, which are in no distribution of it.

    One of them does not apply: a store whose number of entries is bounded.
    """

    async def test_it_is_a_store_of_theirs(self, stores):
        store = stores()
        for protocol in (
            *(AsyncKeyValueProtocol, AsyncCullProtocol, AsyncDestroyStoreProtocol, BaseStore),
            *(AsyncDestroyCollectionProtocol, AsyncEnumerateCollectionsProtocol),
            AsyncEnumerateKeysProtocol,
        ):
            assert isinstance(store, protocol)

    async def test_an_empty_store(self, stores):
        store = stores()
        assert await store.get("k", collection="c") is None
        assert await store.ttl("k", collection="c") == (None, None)
        assert await store.delete("k", collection="c") is False
        assert await store.delete_many(["k", "l"], collection="c") == 0
        assert await store.get_many(["k", "l"], collection="c") == [None, None]
        assert (await store.keys("c"), await store.collections()) == ([], [])

    async def test_one_entry(self, stores):
        store = stores()
        await store.put("k", {"a": 1}, collection="c")
        assert await store.get("k", collection="c") == {"a": 1}
        await store.put("k", {"a": 2}, collection="c")
        assert await store.get("k", collection="c") == {"a": 2}
        assert await store.get("k", collection="d") is None
        assert await store.delete("k", collection="c") is True
        assert await store.delete("k", collection="c") is False
        assert await store.get("k", collection="c") is None

    async def test_many_entries(self, stores):
        store = stores()
        await store.put_many(["k", "l"], ({"a": 1}, {"a": 2}), collection="c")
        assert await store.get_many(["l", "m", "k", "l"], collection="c") == [
            *({"a": 2}, None, {"a": 1}, {"a": 2})
        ]
        assert await store.ttl_many(["k", "m"], collection="c") == [({"a": 1}, None), (None, None)]
        assert await store.delete_many(["k", "m", "k"], collection="c") == 1
        assert await store.get_many(["k", "l"], collection="c") == [None, {"a": 2}]
        with pytest.raises(ValueError, match="different number"):
            await store.put_many(["k"], [{"a": 1}, {"a": 2}], collection="c")

    @pytest.mark.parametrize("kind", ROUND_TRIPS)
    async def test_values_come_back(self, stores, kind):
        store = stores()
        for value in ROUND_TRIPS[kind]:
            await store.put("k", {"key": value, str(value)[:100]: "value"}, collection="c")
            assert await store.get("k", collection="c") == {
                "key": value,
                str(value)[:100]: "value",
            }

    async def test_what_json_cannot_hold(self, stores):
        store = stores()
        for value in REFUSED:
            with pytest.raises(SerializationError, match=r"value\.key\[1\]"):
                await store.put("k", {"key": [0, value]}, collection="c")
            with pytest.raises(SerializationError):
                await store.put_many(["l", "k"], [{}, {"key": value}], collection="c")
        assert await store.collections() == []

    @pytest.mark.parametrize("name", ["long" * 400, "!@#$%^&*()", "a/b::c", "*", "Ж\x1f"])
    async def test_any_name(self, stores, name):
        store = stores()
        await store.put("k", {"a": 1}, collection=name)
        await store.put(name, {"a": 2}, collection="c")
        assert await store.get("k", collection=name) == {"a": 1}
        assert await store.get(name, collection="c") == {"a": 2}
        assert await store.collections() == sorted([name, "c"])
        assert await store.keys(name) == ["k"]

    async def test_a_ttl(self, stores):
        store = stores()
        await store.put("k", {"a": 1}, collection="c", ttl=100)
        await store.put_many(["l"], [{"a": 2}], collection="c", ttl=100)
        for [value, ttl], expected in zip(
            await store.ttl_many(["k", "l"], collection="c"), [{"a": 1}, {"a": 2}], strict=True
        ):
            assert value == expected
            assert 90 < ttl <= 100
        for ttl in (0, -100, True, 1e11):
            with pytest.raises(InvalidTTLError):
                await store.put("k", {}, collection="c", ttl=ttl)

    async def test_workers_at_once(self, stores):
        store = stores()

        async def worker(number):
            for turn in range(5):
                key = f"{number}-{turn}"
                for value in ({"a": turn}, {"a": -turn}):
                    await store.put(key, value, collection="c")
                    assert await store.get(key, collection="c") == value
                assert await store.delete(key, collection="c")
                assert await store.get(key, collection="c") is None

        await asyncio.gather(*map(worker, range(3)))


NAMES = st.sampled_from(["a", "b", "a/b", "é", "*"])
VALUES = st.dictionaries(st.text(max_size=3), st.none() | st.integers(-9, 9) | st.text(max_size=3))
CALLS = st.one_of(
    st.tuples(st.just("put"), NAMES, VALUES),
    st.tuples(st.just("put_many"), st.lists(NAMES, max_size=3), VALUES),
    st.tuples(st.just("get"), NAMES),
    st.tuples(st.just("get_many"), st.lists(NAMES, max_size=3)),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("delete_many"), st.lists(NAMES, max_size=3)),
    st.tuples(st.just("destroy_collection")),
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(calls=st.lists(st.tuples(CALLS, st.sampled_from([None, "one", "*"])), max_size=14))
def test_it_answers_as_their_store_in_memory(calls):
    async def both():
        ours, theirs = LocusKeyValue("memory"), MemoryStore()
        for (name, *arguments), collection in calls:
            if name == "put_many":
                arguments[1] = [arguments[1]] * len(arguments[0])
            place = collection or "default_collection"
            if name == "destroy_collection":
                held = bool(await theirs.keys(place))
                await theirs.destroy_collection(place)
                # A collection without entries is none here.
                assert await ours.destroy_collection(place) is held
                theirs = await copied(theirs)
                continue
            called = [
                await getattr(each, name)(*arguments, collection=collection)
                for each in (ours, theirs)
            ]
            assert called[0] == called[1]
            assert await ours.keys(collection) == sorted(await theirs.keys(collection))
        held = [each for each in await theirs.collections() if await theirs.keys(each)]
        assert await ours.collections() == sorted(held)
        assert await ours.destroy() is True
        assert await ours.collections() == []
        await ours.close()

    asyncio.run(both())


async def copied(theirs):
    """Return a copy of their store: one that has destroyed a collection cannot make it again."""
    copy = MemoryStore()
    for collection in await theirs.collections():
        for key in await theirs.keys(collection):
            await copy.put(key, await theirs.get(key, collection=collection), collection=collection)
    return copy


class Plain(StoreWrapper):
    """A store without a TTL, without batches and without transactions."""

    @property
    def capabilities(self):
        return type(super().capabilities)(list_namespaces=True)

    async def put(self, *args, ttl=None, **kwargs):
        assert ttl is None
        return await super().put(*args, **kwargs)

    async def put_batch(self, items):
        items = list(items)
        assert all(each.ttl is None for each in items)
        return await super().put_batch(items)


class TestTime:
    @pytest.mark.parametrize("plain", [False, True])
    async def test_entries_expire(self, plain, monkeypatch):
        clock = FakeClock()
        inner = InMemoryStore(clock=clock)
        store = LocusKeyValue(Plain(inner) if plain else inner)
        moments = [datetime.now(UTC)]
        for module in ("time_to_live", "managed_entry"):
            monkeypatch.setattr(f"key_value.aio._utils.{module}.now", lambda: moments[-1])

        def wait(seconds):
            clock.advance(seconds)
            moments.append(moments[-1] + timedelta(seconds=seconds))

        await store.put("k", {"a": 1}, ttl=60)
        await store.put("l", {"a": 2})
        wait(59)
        assert await store.get("k") == {"a": 1}
        wait(2)
        assert await store.get_many(["k", "l"]) == [None, {"a": 2}]
        assert await store.keys() == ["l"]
        assert await store.keys(limit=0) == []
        await store.put("k", {"a": 4}, ttl=60)
        assert await store.get("k") == {"a": 4}
        wait(61)
        await store.cull()
        assert await inner.list_keys(("py_key_value", "default_collection")) == ["l"]


class TestListings:
    @pytest.mark.slow
    async def test_every_key_and_collection_is_listed(self):
        store = LocusKeyValue("memory", namespace=("*", "kept"))
        await store.store.put(("other", "kept", "c"), "k", 1)
        names = [f"{number:04}" for number in range(2100)]
        await store.put_many(names, [{}] * len(names), collection="long")
        for name in names[:1100]:
            await store.put("k", {}, collection=name)
        assert await store.keys("long") == names
        assert await store.keys("long", limit=1500) == names[:1500]
        assert await store.collections() == [*names[:1100], "long"]
        assert await store.collections(limit=2) == names[:2]
        await store.destroy()
        assert await store.store.exists(("other", "kept", "c"), "k")

    async def test_a_seed_and_a_default_collection(self):
        seed = {"one": {"k": {"a": 1}}}
        store = LocusKeyValue("memory", default_collection="one", seed=seed)
        assert await store.get("k") == {"a": 1}
        assert "InMemoryStore" in repr(store)


class TestRefusals:
    @pytest.mark.parametrize("name", ["", "\ud800"])
    async def test_a_key_that_no_database_holds(self, name):
        store = LocusKeyValue("memory")
        for call in (
            store.get(name),
            store.put(name, {}),
            store.delete(name),
            store.get_many(["k", name]),
            store.put_many(["k", name], [{}, {}]),
            store.delete_many(["k", name]),
        ):
            with pytest.raises(InvalidKeyError, match="key is a non-empty string"):
                await call
        assert await store.collections() == []

    async def test_a_collection_and_a_namespace(self):
        with pytest.raises(InvalidKeyError, match="collection"):
            await LocusKeyValue("memory").put("k", {}, collection="\ud800")
        with pytest.raises(InvalidNamespaceError):
            LocusKeyValue("memory", namespace="c")


class TestDamage:
    @pytest.mark.parametrize(
        "damaged",
        [
            *("text", {"value": {}}, {"value": [], "expires_at": None}),
            {"value": {}, "expires_at": "2999-01-01T00:00:00"},
            {"value": {}, "expires_at": "never"},
        ],
    )
    async def test_an_entry_of_another_form_is_missing_and_told(self, stores, damaged):
        store = stores()
        await store.put_many(["k", "l"], [{"a": 1}, {"a": 2}], collection="c")
        await store.store.put(("py_key_value", "c"), "k", damaged)
        with collect() as events:
            assert await store.get("k", collection="c") is None
            assert await store.get_many(["k", "l"], collection="c") == [None, {"a": 2}]
        assert [(each.name, each.attributes["key"]) for each in events] == [
            ("integrations.item_unreadable", "k")
        ] * 2
        await store.put("k", {"a": 3}, collection="c")
        assert await store.get("k", collection="c") == {"a": 3}

    async def test_an_entry_that_no_key_decrypts(self):
        inner = InMemoryStore()
        ours = EncryptingStore(inner, {"k": b"0" * 32}, active="k")
        store = LocusKeyValue(ours)
        other = LocusKeyValue(EncryptingStore(inner, {"k": b"1" * 32}, active="k"))
        await store.put("k", {"a": 1})
        await other.put("l", {"a": 2})
        with collect() as events:
            assert await store.get_many(["k", "l"]) == [{"a": 1}, None]
        assert {each.name for each in events} == {"integrations.item_unreadable"}
        await store.put("l", {"a": 4})
        assert await store.get("l") == {"a": 4}


class TestOwnership:
    async def test_it_closes_what_it_opened_alone(self, tmp_path):
        where = f"sqlite:{tmp_path / 'test.db'}"
        async with get_store(where) as inner:
            async with LocusKeyValue(inner) as store:
                await store.put("k", {"a": 1})
            assert await store.get("k") == {"a": 1}
        async with LocusKeyValue(where) as store:
            assert await store.get("k") == {"a": 1}

    async def test_no_plain_text_is_stored(self, tmp_path):
        path = tmp_path / "test.db"
        async with EncryptingStore(f"sqlite:{path}", {"k": b"0" * 32}, active="k") as inner:
            await LocusKeyValue(inner).put("k", {"token": "secret"})
        assert b"secret" not in path.read_bytes()


WRITER = """
import asyncio, sys
from locus_memory.integrations.key_value import LocusKeyValue

async def main(where, name, collections):
    print("ready", flush=True)
    sys.stdin.readline()
    async with LocusKeyValue(where) as store:
        for collection in collections.split(","):
            for turn in range(20):
                entry = {"name": name, "turn": turn}
                await store.put(f"{turn:04}-{name}", entry, collection=collection)

asyncio.run(main(*sys.argv[1:]))
"""


def append_together(where, collections="ada"):
    """Let two processes write to the same collections, separated by commas, at the same time."""
    command = [sys.executable, "-c", WRITER, where]
    writers = [
        subprocess.Popen(
            [*command, name, collections], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    for each in writers:
        assert each.stdout.readline() == "ready\n"
    for each in writers:
        each.communicate("go\n", timeout=300)
    assert [each.returncode for each in writers] == [0, 0]


async def assert_appended(store, collection="ada"):
    """Assert that the entries of both processes are there, each process's in its order."""
    keys = await store.keys(collection)
    assert keys == [f"{turn:04}-{name}" for turn in range(20) for name in "ab"]
    entries = await store.get_many(keys, collection=collection)
    for name in "ab":
        assert [each["turn"] for each in entries if each["name"] == name] == list(range(20))


@pytest.mark.slow
def test_two_processes_lose_nothing(tmp_path):
    where = f"sqlite:{tmp_path / 'test.db'}"
    append_together(where)

    async def read():
        async with LocusKeyValue(where) as store:
            await assert_appended(store)

    asyncio.run(read())


def test_values_are_json_in_the_database(tmp_path):
    """An entry is read with the library alone, whatever becomes of the framework."""

    async def both():
        async with LocusKeyValue(f"sqlite:{tmp_path / 'test.db'}") as store:
            await store.put("k", {"a": 1}, collection="c")
            found = await store.store.get(("py_key_value", "c"), "k")
            assert json.loads(json.dumps(found)) == {"value": {"a": 1}, "expires_at": None}

    asyncio.run(both())
