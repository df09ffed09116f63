"""LangGraph's store over ours: items, batches, listing, filters, TTL."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)

from locus_memory import (
    BlockingCallError,
    ConfigurationError,
    InvalidFilterError,
    NamespacedStore,
    ValueNotSerializableError,
    blocking,
    get_store,
    open_backend,
)
from locus_memory._internal.providers.installing import install_command
from locus_memory.encryption.keys import EncryptionKeys
from locus_memory.errors import (
    BackendClosedError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    EncryptionError,
    InvalidArgumentError,
    InvalidKeyError,
)
from locus_memory.events import subscribe
from locus_memory.integrations import langgraph
from locus_memory.integrations.langgraph.store import LocusStore
from locus_memory.store.base import read_together
from locus_memory.store.item import Put
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.store.wrappers.encrypting import EncryptingStore
from locus_memory.testing import FakeClock


def where(name, request, tmp_path):
    if name == "postgresql":
        url = request.getfixturevalue("postgresql_server").url
        schema_of = request.getfixturevalue("schema_of")
        return name, {"database": url, "schema": schema_of(tmp_path)}
    if name == "redis":
        mark = "t_" + blake2b(bytes(tmp_path), digest_size=8).hexdigest()
        return name, {"url": request.getfixturevalue("redis_server").url, "key_prefix": mark}
    return name, {"path": tmp_path / "a.db"} if name == "sqlite" else {}


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis"])
async def ours(request, tmp_path, clock):
    name, options = where(request.param, request, tmp_path)
    async with get_store(name, clock=clock, **options) as made:
        yield made


@pytest.fixture
async def store(ours):
    async with LocusStore(ours) as made:
        yield made


async def names(store, *prefix, **options):
    return [item.key for item in await store.asearch(prefix, **options)]


class TestItems:
    async def test_it_keeps_items(self, store, clock):
        """Put anew, an item keeps when it was made."""
        await store.aput(("users", "ada"), "tea", {"likes": "oolong"})
        first = await store.aget(("users", "ada"), "tea")
        clock.advance(60)
        await store.aput(("users", "ada"), "tea", {"likes": "sencha"})
        second = await store.aget(("users", "ada"), "tea")
        assert type(first) is Item
        assert (second.namespace, second.key) == (("users", "ada"), "tea")
        assert second.value == {"likes": "sencha"}
        assert second.created_at == first.created_at == first.updated_at
        assert (second.updated_at - first.updated_at).total_seconds() == 60
        await store.adelete(("users", "ada"), "tea")
        assert await store.aget(("users", "ada"), "tea") is None

    async def test_others_see_its_items_and_it_sees_theirs(self, ours, store):
        """Namespaces and values are the same, nothing is added to them."""
        await store.aput(("users", "ada"), "tea", {"likes": "oolong"})
        await ours.put(("users", "bob"), "tea", {"likes": "mate"})
        assert await ours.get(("users", "ada"), "tea") == {"likes": "oolong"}
        assert (await ours.get_item(("users", "ada"), "tea")).metadata == {}
        assert (await store.aget(("users", "bob"), "tea")).value == {"likes": "mate"}
        assert await store.alist_namespaces() == [("users", "ada"), ("users", "bob")]

    async def test_any_character_is_legal(self, store):
        label, key = "ada@x %_*/:'\" \x1f\N{SNOWMAN}\N{TEACUP WITHOUT HANDLE}", "à:*%\x1e['"
        value = {"Überschrift": "日本語のテキスト", "a.b": "עברית", "": "हिन्दी \x00"}
        await store.aput((label,), key, value)
        assert (await store.aget((label,), key)).value == value
        assert [hit.namespace for hit in await store.asearch((label,))] == [(label,)]
        assert await names(store, label, query="日本語") == [key]

    async def test_a_period_is_legal_in_a_batch(self, store):
        """LangGraph's own methods refuse one, for the sake of stores that join labels."""
        with pytest.raises(InvalidNamespaceError):
            await store.aput(("a.b",), "k", {})
        await store.abatch([PutOp(("a.b",), "k", {"n": 1}), PutOp(("a", "b"), "k", {"n": 2})])
        found = await store.abatch([GetOp(("a.b",), "k"), GetOp(("a", "b"), "k")])
        assert [item.value["n"] for item in found] == [1, 2]

    @pytest.mark.parametrize(
        "namespace", [(), ("langgraph", "x"), ("a", ""), ("a", 7), ("a\x00",), "users"]
    )
    async def test_what_is_no_namespace(self, store, namespace):
        with pytest.raises(InvalidNamespaceError):
            await store.aput(namespace, "k", {"n": 1})
        assert await store.asearch(()) == []

    @pytest.mark.parametrize("value", [{"when": {1}}, {1: 2}, {"n": float("nan")}, {"t": (1,)}])
    async def test_what_json_cannot_hold(self, store, value):
        """A batch with one such value writes nothing."""
        with pytest.raises(ValueNotSerializableError):
            await store.abatch([PutOp(("a",), "good", {}), PutOp(("a",), "bad", value)])
        assert await store.asearch(("a",)) == []

    @pytest.mark.parametrize("ttl", [0, -1, True, "1", float("nan")])
    async def test_what_is_no_ttl(self, store, ttl):
        with pytest.raises(InvalidArgumentError):
            await store.aput(("a",), "k", {}, ttl=ttl)
        assert await store.aget(("a",), "k") is None

    async def test_what_is_no_operation(self, store):
        with pytest.raises(InvalidArgumentError):
            await store.abatch(["get"])
        with pytest.raises(InvalidArgumentError):
            await store.abatch([PutOp(("a",), "k", ["a list"])])


class TestBatch:
    async def test_reads_see_what_was_there_before_its_writes(self, store):
        """Results come in the order of the operations, and the last put of a key counts."""
        await store.aput(("a",), "k", {"n": 0})
        results = await store.abatch(
            [
                PutOp(("a",), "k", {"n": 1}),
                GetOp(("a",), "k"),
                PutOp(("b",), "new", {"n": 9}),
                SearchOp(()),
                ListNamespacesOp(),
                PutOp(("a",), "k", None),
                PutOp(("a",), "k", {"n": 2}),
                GetOp(("a",), "none"),
            ]
        )
        assert results[1].value == {"n": 0}
        assert [type(hit) for hit in results[3]] == [SearchItem]
        assert results[4] == [("a",)]
        assert [results[n] for n in (0, 2, 5, 6, 7)] == [None] * 5
        assert (await store.aget(("a",), "k")).value == {"n": 2}
        assert (await store.aget(("b",), "new")).value == {"n": 9}

    async def test_the_last_delete_counts(self, store):
        await store.abatch([PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "k", None)])
        assert await store.aget(("a",), "k") is None

    async def test_a_large_batch(self, store):
        """There is no cap on writes nor on the pages that read them."""
        await store.abatch([PutOp(("a", str(n % 7)), f"{n:04}", {"n": n}) for n in range(1234)])
        assert len(await store.asearch(("a",), limit=5000)) == 1234
        pages = [await names(store, "a", limit=300, offset=at) for at in range(0, 1500, 300)]
        assert [len(page) for page in pages] == [300, 300, 300, 300, 34]
        assert len({key for page in pages for key in page}) == 1234
        assert await names(store, "a", filter={"n": 617}) == ["0617"]

    async def test_an_empty_batch(self, store):
        assert await store.abatch([]) == []


class TestSearch:
    async def test_a_prefix_leaks_nothing(self, store):
        """Neither into a label that goes on, nor into another case, nor through wildcards."""
        for label in ("foo", "foobar", "FOO", "fo", "f%o", "f_o", "*", "foo/bar", "foo:bar"):
            await store.aput((label, "x"), label, {"n": 1})
        assert await names(store, "foo") == ["foo"]
        assert await names(store, "f%o") == ["f%o"]
        assert await names(store, "f_o") == ["f_o"]
        assert await names(store, "*") == ["*"]
        assert await names(store, "fo", "x") == ["fo"]
        assert len(await names(store)) == 9

    async def test_the_newest_update_comes_first(self, store, clock):
        """Everywhere as well as below a prefix, page by page."""
        for n in range(12):
            clock.advance(1)
            await store.aput((f"r{n % 3}", str(n % 2)), f"k{n}", {"n": n})
        expected = [f"k{n}" for n in reversed(range(12))]
        assert await names(store, limit=20) == expected
        pages = [key for at in range(0, 15, 5) for key in await names(store, limit=5, offset=at)]
        assert pages == expected
        assert await names(store, "r1", offset=1) == ["k7", "k4", "k1"]
        assert await names(store, limit=0) == []

    async def test_a_query_without_an_index_finds_words(self, store):
        """In any script, whatever the case and the punctuation."""
        await store.aput(("a",), "1", {"text": "Green tea from the Café"}, index=False)
        await store.aput(("a",), "2", {"text": "quick brown foxes", "kind": "fox"})
        await store.aput(("b",), "3", {"text": "приве́т, чай"})
        assert await names(store, "a", query="what's a cafe?") == ["1"]
        assert await names(store, query="fox", filter={"kind": "fox"}) == ["2"]
        assert await names(store, query="Привет") == ["3"]
        assert await names(store, "a", query='"c++" (') == []
        [hit] = await store.asearch(("a",), query="tea")
        assert hit.score > 0
        assert [hit.score for hit in await store.asearch(("b",))] == [None]
        assert await names(store, "b", query="") == ["3"]


class TestFilters:
    @pytest.fixture
    async def store(self, store):
        values = {
            "one": {"n": 1, "s": "b", "tags": ["x"], "a": {"b": {"c": 5}, "d": 1}},
            "true": {"n": True, "s": "a", "a.b": 7},
            "text": {"n": "1", "a": {"b": None}, "x": {"0": "zero"}},
            "none": {"n": None, "a": [], "x": ["zero"]},
            "float": {"n": 2.5, "langgraph": "yes", "a": {"list": [{"k": 1, "l": 2}]}},
        }
        await store.abatch([PutOp(("f",), key, value) for key, value in values.items()])
        return store

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ({}, "float none one text true"),
            ({"n": 1}, "one"),
            ({"n": True}, "true"),
            ({"n": "1"}, "text"),
            ({"n": None}, "none"),
            ({"missing": None}, ""),
            ({"n": {"$eq": 1.0}}, "one"),
            ({"n": {"$ne": 1}}, "float none text true"),
            ({"missing": {"$ne": 1}}, "float none one text true"),
            ({"n": {"$gt": 1}}, "float"),
            ({"n": {"$gte": 1}}, "float one"),
            ({"n": {"$lt": 2.5}}, "one"),
            ({"n": {"$lte": 2.5, "$gt": 1}}, "float"),
            ({"s": {"$gt": "a"}}, "one"),
            ({"tags": ["x"]}, "one"),
            ({"tags": ("x",)}, "one"),
            ({"a": {"b": {"c": 5}}}, "one"),
            ({"a": {"b": {"c": {"$gte": 5}}, "d": 1}}, "one"),
            ({"a": {"b": {"c": {"$gt": 5}}}}, ""),
            ({"a": {"b": None}}, "text"),
            ({"a": {"b": {"$ne": None}}}, "float one"),
            ({"a": {"$eq": {"b": None}}}, "text"),
            ({"a": {}}, "float one text"),
            ({"a": {"list": [{"k": 1}]}}, "float"),
            ({"a": {"list": [{"k": 2}]}}, ""),
            ({"x": {"0": "zero"}}, "text"),
            ({"a.b": 7}, "true"),
            ({"a.b.c": 5}, "one"),
            ({"langgraph": "yes"}, "float"),
            ({"n": {"$in": [1, "1"]}}, "one text"),
            ({"$or": [{"n": 1}, {"a.b": 7}]}, "one true"),
            ({"$not": {"n": {"$exists": True}}}, ""),
            ({"$not": {"a": {}}}, "none true"),
            ({"$and": [{"a": {}}, {"n": 1}]}, "one"),
        ],
    )
    async def test_a_filter(self, store, condition, expected):
        assert sorted(await names(store, "f", filter=condition)) == expected.split()
        assert sorted(await names(store, filter=condition)) == expected.split()

    @pytest.mark.parametrize(
        "condition",
        [{"n": {"$regex": 1}}, {"$nor": []}, {"n": {"$gt": None}}, {"$or": {}}, {7: 1}, [1]],
    )
    async def test_what_is_no_filter(self, store, condition):
        """Nothing of the batch is done."""
        with pytest.raises(InvalidFilterError):
            await store.abatch([PutOp(("g",), "k", {}), SearchOp(("f",), condition)])
        assert await store.aget(("g",), "k") is None

    async def test_pages_of_what_the_database_cannot_filter(self, store):
        """They are exact, over any number of items that do not match."""
        await store.abatch(
            [PutOp(("g", str(n % 3)), f"{n:03}", {"a": [{"k": n % 4, "l": 0}]}) for n in range(400)]
        )
        every = await names(store, "g", filter={"a": [{"k": 1}]}, limit=1000)
        assert sorted(every) == [f"{n:03}" for n in range(1, 400, 4)]
        pages = [
            await names(store, "g", filter={"a": [{"k": 1}]}, limit=30, offset=at)
            for at in range(0, 120, 30)
        ]
        assert [key for page in pages for key in page] == every


class TestNamespaces:
    @pytest.fixture
    async def store(self, store):
        paths = ["a/b/c", "a/b/d/e", "a/b/d/i", "a/b/f", "a/c/f", "b/x/f", "users/1/v1", "users/2"]
        await store.abatch([PutOp(tuple(path.split("/")), "k", {}) for path in paths])
        return store

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, "a/b/c a/b/d/e a/b/d/i a/b/f a/c/f b/x/f users/1/v1 users/2"),
            ({"prefix": ("a", "b"), "max_depth": 3}, "a/b/c a/b/d a/b/f"),
            ({"prefix": ("a", "*", "f")}, "a/b/f a/c/f"),
            ({"suffix": ("f",)}, "a/b/f a/c/f b/x/f"),
            ({"suffix": ("*", "f"), "prefix": ("a",)}, "a/b/f a/c/f"),
            ({"suffix": ("x", "*")}, "b/x/f"),
            ({"prefix": ("user",)}, ""),
            ({"prefix": ("A",)}, ""),
            ({"max_depth": 1}, "a b users"),
            ({"max_depth": 1, "limit": 1, "offset": 1}, "b"),
            ({"limit": 2, "offset": 3}, "a/b/f a/c/f"),
            ({"offset": 7}, "users/2"),
            ({"limit": 0}, ""),
        ],
    )
    async def test_a_listing(self, store, options, expected):
        found = await store.alist_namespaces(**options)
        assert ["/".join(path) for path in found] == expected.split()

    async def test_more_conditions_than_one_of_a_kind(self, store):
        conditions = (
            MatchCondition("prefix", ("a",)),
            MatchCondition("prefix", ("*", "b")),
            MatchCondition("suffix", ("f",)),
            MatchCondition("prefix", ()),
        )
        [found] = await store.abatch([ListNamespacesOp(conditions, max_depth=1)])
        assert found == [("a",)]
        conditions += (MatchCondition("prefix", ("*", "c")),)
        assert await store.abatch([ListNamespacesOp(conditions, max_depth=1)]) == [[]]
        with pytest.raises(InvalidArgumentError):
            await store.abatch([ListNamespacesOp((MatchCondition("infix", ("a",)),))])

    async def test_pages_of_many(self, store):
        await store.abatch([PutOp(("many", f"{n:04}", "x"), "k", {}) for n in range(1100)])
        found = await store.alist_namespaces(prefix=("many",), limit=2000)
        assert len(found) == 1100
        assert await store.alist_namespaces(prefix=("many",), limit=9, offset=1095) == found[1095:]
        assert await store.alist_namespaces(prefix=("many",), max_depth=1) == [("many",)]


class TestTTL:
    async def test_it_is_in_minutes(self, store, clock):
        """Expired, an item is gone from every operation at once."""
        assert store.supports_ttl
        await store.aput(("a",), "short", {"n": 1}, ttl=1.5)
        await store.aput(("a",), "long", {"n": 2})
        clock.advance(89)
        assert (await store.aget(("a",), "short", refresh_ttl=False)).value == {"n": 1}
        clock.advance(2)
        assert await store.aget(("a",), "short") is None
        assert await names(store, "a") == ["long"]
        await store.adelete(("a",), "long")
        assert await store.alist_namespaces() == []

    async def test_a_read_starts_it_anew(self, store, clock):
        """By `get` and by `search`; the item looks as before."""
        await store.aput(("a",), "k", {"n": 1}, ttl=1)
        first = await store.aget(("a",), "k")
        for _ in range(3):
            clock.advance(50)
            assert await store.aget(("a",), "k") == first
            clock.advance(50)
            [hit] = await store.asearch(("a",))
            assert (hit.value, hit.updated_at) == (first.value, first.updated_at)
        clock.advance(50)
        await store.aget(("a",), "k", refresh_ttl=False)
        await store.asearch(("a",), refresh_ttl=False)
        clock.advance(11)
        assert await store.aget(("a",), "k") is None

    async def test_a_put_starts_or_ends_it(self, store, clock):
        await store.aput(("a",), "k", {"n": 1}, ttl=1)
        await store.aget(("a",), "k")
        clock.advance(10)
        await store.aput(("a",), "k", {"n": 2})
        clock.advance(10_000)
        item = await store.aget(("a",), "k")
        assert (item.updated_at - item.created_at).total_seconds() == 10

    async def test_the_defaults_of_its_configuration(self, ours, clock):
        """A TTL that is given wins, `None` included."""
        store = LocusStore(ours, ttl={"default_ttl": 1, "refresh_on_read": False})
        await store.aput(("a",), "default", {})
        await store.aput(("a",), "longer", {}, ttl=2)
        await store.aput(("a",), "never", {}, ttl=None)
        clock.advance(50)
        assert sorted(await names(store, "a")) == ["default", "longer", "never"]
        clock.advance(11)
        assert await store.aget(("a",), "longer", refresh_ttl=True)
        clock.advance(119)
        assert sorted(await names(store, "a")) == ["longer", "never"]

    async def test_a_put_meanwhile_is_not_undone(self, ours, clock):
        """Starting a TTL anew never writes an old value over a new one."""

        class Slow(StoreWrapper):
            async def get_item(self, namespace, key):
                item = await super().get_item(namespace, key)
                await self.inner.put(namespace, key, {"n": "new"})
                return item

        await LocusStore(ours).aput(("a",), "k", {"n": "old"}, ttl=1)
        assert (await LocusStore(Slow(ours)).aget(("a",), "k")).value == {"n": "old"}
        assert (await LocusStore(ours).aget(("a",), "k")).value == {"n": "new"}

    async def test_a_database_that_cannot_be_written_can_be_read(self, ours):
        """That the TTL did not start anew is reported."""

        class ReadOnly(StoreWrapper):
            async def put_batch(self, items):
                raise BackendWriteError("read-only")

        await LocusStore(ours).aput(("a",), "k", {"n": 1}, ttl=1)
        events = []
        unsubscribe = subscribe(events.append)
        try:
            assert await LocusStore(ReadOnly(ours)).aget(("a",), "k")
        finally:
            unsubscribe()
        assert [event.name for event in events] == ["langgraph.renewal_failed"]

    async def test_a_filter_does_not_see_what_is_noted(self, store):
        await store.aput(("a",), "k", {"langgraph": "yes"}, ttl=1)
        assert await names(store, "a", filter={"langgraph": "yes"}) == ["k"]
        assert await names(store, "a", filter={"langgraph": {"ttl": 1}}) == []

    async def test_what_others_note_is_theirs(self, ours, clock):
        """Metadata that only look like ours do no harm, and others' expiry stays as it is."""
        for n, noted in enumerate(["x", {"ttl": "x"}, {"ttl": True, "write": 1}, {"ttl": -1}]):
            await ours.put(("a",), str(n), {"n": n}, {"langgraph": noted}, ttl=60)
        store = LocusStore(ours)
        assert len(await store.asearch(("a",))) == 4
        clock.advance(61)
        assert await names(store, "a") == []

    async def test_there_is_nothing_to_sweep(self, store):
        """LangGraph's methods are there, for blocking and for asynchronous programs."""
        assert (store.sweep_ttl(), await store.sweep_ttl()) == (0, 0)
        assert store.start_ttl_sweeper(5).done()
        assert (await store.start_ttl_sweeper()).result() is None
        assert store.stop_ttl_sweeper(timeout=1)
        assert await store.stop_ttl_sweeper()


WITHOUT_LANGGRAPH = """
import sys
sys.modules["langgraph.checkpoint.base"] = sys.modules["langgraph.store.base"] = None
from locus_memory.integrations.langgraph import LocusStore
"""


def test_without_langgraph_it_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LANGGRAPH], capture_output=True, text=True, check=False
    )
    assert "MissingDriverError" in done.stderr
    assert install_command("langgraph") in done.stderr


def test_the_module_that_users_import_has_it():
    assert langgraph.LocusStore is LocusStore
    assert issubclass(langgraph.LocusStore, BaseStore)
    assert set(langgraph.__all__) >= {"LocusRetriever", "LocusSaver", "LocusStore"}


class TestUse:
    def test_it_blocks(self, tmp_path):
        with LocusStore(f"sqlite:{tmp_path / 'a.db'}") as store:
            store.put(("a",), "k", {"n": 1})
            assert store.get(("a",), "k").value == {"n": 1}
            assert [hit.key for hit in store.search(("a",), filter={"n": {"$gt": 0}})] == ["k"]
            assert store.list_namespaces() == [("a",)]
            store.delete(("a",), "k")
            assert store.get(("a",), "k") is None

    def test_many_threads_share_it(self, tmp_path):
        with LocusStore(f"sqlite:{tmp_path / 'a.db'}") as store, ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: store.put(("a",), str(n), {"n": n}), range(64)))
            assert len(store.search(("a",), limit=100)) == 64
            assert asyncio.run(store.aget(("a",), "7")).value == {"n": 7}

    async def test_inside_an_event_loop_it_refuses_to_block(self):
        async with LocusStore("memory") as store:
            with pytest.raises(BlockingCallError):
                store.get(("a",), "k")
            with pytest.raises(BlockingCallError):
                store.close()
            assert await asyncio.to_thread(store.get, ("a",), "k") is None

    async def test_it_closes_what_it_opened(self, tmp_path):
        """A store or a backend of somebody else's stays open."""
        async with open_backend(f"sqlite:{tmp_path / 'a.db'}") as backend:
            async with LocusStore(backend) as store:
                await store.aput(("a",), "k", {"n": 1})
            async with LocusStore(backend.store) as store:
                assert await store.aget(("a",), "k")
            assert await backend.store.get(("a",), "k") == {"n": 1}
        made = LocusStore(f"sqlite:{tmp_path / 'b.db'}")
        async with made:
            await made.aput(("a",), "k", {})
        with pytest.raises(BackendClosedError):
            await made.aget(("a",), "k")

    def test_what_it_cannot_be_made_of(self):
        for nothing in (None, 7, "file:./x", blocking(get_store("memory"))):
            with pytest.raises(ConfigurationError):
                LocusStore(nothing)
        with pytest.raises(ConfigurationError):
            LocusStore(NamespacedStore(get_store("memory"), ("a",)))

    async def test_a_wrapper_of_a_store(self, tmp_path):
        """Any store that keeps the contract will do."""
        async with get_store("memory") as inner:
            store = LocusStore(StoreWrapper(inner))
            await store.aput(("a",), "k", {"n": 1})
            assert await inner.get(("a",), "k") == {"n": 1}
            assert "StoreWrapper" in repr(store)


class TestBursts:
    async def test_many_calls_of_one_turn_are_few_batches(self, ours, store):
        """Each call has its own result, and its own error."""
        written = []

        class Counted(StoreWrapper):
            async def write_batch(self, operations):
                written.append(len(listed := list(operations)))
                return await super().write_batch(listed)

            async def put_batch(self, items):
                written.append(len(listed := list(items)))
                return await super().put_batch(listed)

        counted = LocusStore(Counted(ours))
        await store.aput(("a", "0"), "there", {"n": -1})
        puts = [counted.aput(("a", f"{n % 7}"), f"{n}", {"n": n}) for n in range(600)]
        gets = [counted.aget(("a", "0"), "there") for _ in range(50)]
        refused = counted.aput(("a", "0"), "bad", {"n": {1}})
        found = await asyncio.gather(*puts, *gets, counted.asearch(("a", "0"), limit=1))
        assert found[:600] == [None] * 600
        assert [item.value for item in found[600:650]] == [{"n": -1}] * 50
        assert len(found[650]) == 1
        assert sum(written) == 600
        assert len(written) <= 3
        assert len(await store.asearch(("a",), limit=1000)) == 601
        more = counted.aput(("a", "0"), "more", {"n": 1})
        answers = await asyncio.gather(refused, more, return_exceptions=True)
        assert isinstance(answers[0], ValueNotSerializableError)
        assert answers[1] is None
        assert (await store.aget(("a", "0"), "more")).value == {"n": 1}

    async def test_equal_reads_of_one_turn_are_one_and_share_nothing(self, ours):
        asked = []

        class Counted(StoreWrapper):
            async def get_item(self, namespace, key):
                asked.append(key)
                return await super().get_item(namespace, key)

            async def search(self, *arguments, **options):
                asked.append("search")
                return await super().search(*arguments, **options)

        store = LocusStore(Counted(ours))
        await store.aput(("a",), "k", {"deep": [1], "n": 1})
        gets = [store.aget(("a",), "k") for _ in range(40)]
        lists = [store.asearch(("a",), filter={"n": n}, limit=5) for n in (1, 1, 1, 2, 2)]
        names = [store.alist_namespaces(prefix=("a",)) for _ in range(5)]
        found = await asyncio.gather(*gets, *lists, *names, store.aget(("a",), "none"))
        assert sorted(asked) == ["k", "none", "search", "search"]
        assert [len(each) for each in found[40:45]] == [1, 1, 1, 0, 0]
        assert found[45:50] == [[("a",)]] * 5
        assert found[50] is None
        items = [*found[:40], *(each[0] for each in found[40:43])]
        assert {type(each).__name__ for each in items} == {"Item", "SearchItem"}
        assert all(each.dict() == items[0].dict() for each in items[:40])
        for each in items:
            assert each.value == {"deep": [1], "n": 1}
            each.value["deep"].append(2)

    async def test_of_many_calls_only_the_one_that_fails_has_its_error(self, ours):
        runs = []

        class Choosy(StoreWrapper):
            async def put_batch(self, items):
                runs.append(len(listed := list(items)))
                if any(each.key == "17" for each in listed):
                    raise BackendError("not this one")
                await super().put_batch(listed)

        store = LocusStore(Choosy(ours))
        calls = [store.aput(("a",), f"{n}", {"n": n}) for n in range(64)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [n for n, each in enumerate(answers) if each is not None] == [17]
        assert len(await store.asearch(("a",), limit=100)) == 63
        assert len(runs) <= 13

    async def test_a_read_that_fails_has_its_error_alone(self, store):
        """Its own batch writes nothing; the others have their results."""
        await store.aput(("a",), "k", {"n": 1})
        wrong = store.asearch(("a",), filter={"n": {"$near": 1}})
        with_put = [
            SearchOp(("a",), {"n": {"$near": 2}}),
            PutOp(("a",), "not written", {"n": 2}),
        ]
        answers = await asyncio.gather(
            store.aget(("a",), "k"),
            wrong,
            store.abatch(with_put),
            store.aput(("a",), "written", {"n": 3}),
            store.abatch([GetOp(("a",), "")]),
            store.abatch([GetOp((), "k")]),
            store.aget(("a",), "none"),
            return_exceptions=True,
        )
        assert answers[0].value == {"n": 1}
        assert [isinstance(each, InvalidFilterError) for each in answers[1:3]] == [True, True]
        assert answers[3] is None
        assert isinstance(answers[4], InvalidKeyError)
        assert answers[5:] == [[None], None]
        keys = {item.key for item in await store.asearch(("a",), limit=10)}
        assert keys == {"k", "written"}

    async def test_an_item_that_cannot_be_read_fails_alone(self, ours):
        """Whatever its error is: other calls of the turn read and write."""
        theirs = EncryptingStore(ours, EncryptionKeys({"theirs": b"t" * 32}, "theirs"))
        mine = EncryptingStore(ours, EncryptionKeys({"mine": b"m" * 32}, "mine"))
        await theirs.put(("a",), "theirs", {"n": 1})
        await mine.put(("a",), "mine", {"n": 2})
        store = LocusStore(mine)
        answers = await asyncio.gather(
            store.aget(("a",), "theirs"),
            store.aget(("a",), "mine"),
            store.aput(("a",), "new", {"n": 3}),
            return_exceptions=True,
        )
        assert isinstance(answers[0], EncryptionError)
        assert answers[1].value == {"n": 2}
        assert answers[2] is None
        assert await mine.get(("a",), "new") == {"n": 3}

    async def test_items_of_several_names_are_read_together(self, ours):
        """The full items, by their names; a name without an item is left out."""
        names = [(("a", f"{n % 3}"), f"ключ-{n}") for n in range(80)]
        await ours.put_batch([Put(namespace=s, key=k, value={"k": k}) for s, k in names])
        found = await read_together(ours, [*names, *names[:5], (("a", "0"), "none")])
        assert found == {name: await ours.get_item(*name) for name in names}
        assert await read_together(ours, []) == {}
        with pytest.raises(InvalidArgumentError):
            await read_together(ours, [names[0], ((), "k")])

    async def test_a_cancelled_call_takes_no_other_with_it(self, store):
        calls = [asyncio.create_task(store.aput(("a",), f"{n}", {"n": n})) for n in range(20)]
        await asyncio.sleep(0)
        calls[0].cancel()
        calls[7].cancel()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in answers].count(asyncio.CancelledError) == 2
        assert {f"{n}" for n in range(20)} - {"0", "7"} <= {
            item.key for item in await store.asearch(("a",), limit=50)
        }

    async def test_a_program_that_cancels_all_tasks_may_go_on(self, store):
        """A burst that was cancelled before it began stops no later call."""
        call = asyncio.create_task(store.aput(("a",), "k", {"n": 1}))
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        [answer] = await asyncio.gather(call, return_exceptions=True)
        assert isinstance(answer, asyncio.CancelledError)
        async with asyncio.timeout(30):
            await store.aput(("a",), "k", {"n": 2})
            assert (await store.aget(("a",), "k")).value == {"n": 2}

    async def test_of_two_puts_of_one_key_the_last_counts(self, store):
        await asyncio.gather(*(store.aput(("a",), "k", {"n": n}) for n in range(30)))
        assert (await store.aget(("a",), "k")).value == {"n": 29}

    async def test_a_database_that_does_not_answer_is_waited_for_once(self, ours):
        tries = []

        class Silent(StoreWrapper):
            async def put_batch(self, items):
                tries.append(len(list(items)))
                raise BackendUnavailableError("no answer in time")

            write_batch = put_batch

        store = LocusStore(Silent(ours))
        calls = [store.aput(("a",), f"{n}", {"n": n}) for n in range(20)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(each) for each in answers} == {BackendUnavailableError}
        assert tries == [20]
