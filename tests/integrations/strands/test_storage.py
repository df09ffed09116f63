"""A storage of Strands: the answers and errors of its own storage in memory, on any database."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strands import Agent
from strands.session import SnapshotSessionManager
from strands.storage import InMemoryStorage, Storage
from strands.storage.storage import _NAMESPACED
from strands.types.exceptions import StorageError
from strands.vended_memory_stores.file_memory_store import FileMemoryStore

from locus_memory import get_store
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.events import collect
from locus_memory.integrations.strands import LocusStorage
from locus_memory.store.wrappers.base import StoreWrapper

PLACE = ("strands_storage",)


class TestRuns:
    async def test_an_agent_finds_its_snapshot_again(self, storages, model):
        for turn in range(2):
            said_by = model("Yes.")
            agent = Agent(
                said_by,
                agent_id="a",
                storage=storages(),
                session_manager=SnapshotSessionManager("ada"),
                callback_handler=None,
            )
            await agent.invoke_async("And then?")
            assert len(said_by.asked[0]) == 1 + 2 * turn
        [key] = await storages().list("session/ada/")
        assert key.endswith(".json")

    async def test_a_memory_store_of_the_framework(self, storages):
        notes = FileMemoryStore(name="notes", storage=storages())
        await notes.add("# Tea\nAda likes oolong.")
        await FileMemoryStore(name="other", storage=storages()).add("# Tea\nNo tea.")
        [found] = await FileMemoryStore(name="notes", storage=storages()).search("which oolong?")
        assert found.content == "# Tea\nAda likes oolong."
        assert await storages().list() == ["memory/notes/tea.md", "memory/other/tea.md"]

    def test_the_framework_takes_it_for_a_storage(self):
        storage = LocusStorage("memory")
        assert isinstance(storage, Storage)
        assert "InMemoryStore" in repr(storage)
        scoped = storage.namespace("a").namespace("b/")
        assert isinstance(scoped, LocusStorage)
        assert scoped._namespaced is _NAMESPACED
        assert not hasattr(storage, "_namespaced")


KEYS = st.sampled_from(
    ["a", "a/b", "/a//b/", "b.md", "é", "", "/", "../a", "a\\b", "a/..b", "c/oolong.md", "*"]
)
CALLS = st.one_of(
    st.tuples(st.just("write"), KEYS, st.binary(max_size=4) | st.just(b"tea oolong")),
    st.tuples(st.just("read"), KEYS),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("list"), KEYS),
    st.tuples(st.just("search"), st.sampled_from(["", "the", "oolong tea", "a md"])),
)
PREFIXES = st.sampled_from([None, "a", "c/", "//a/b", "../a"])


@settings(max_examples=150, deadline=None)
@given(calls=st.lists(st.tuples(PREFIXES, CALLS), max_size=12))
def test_it_answers_as_the_storage_of_the_framework(calls):
    async def answer(storage, prefix, name, arguments):
        try:
            scoped = storage if prefix is None else storage.namespace(prefix)
            return await getattr(scoped, name)(*arguments)
        except StorageError as error:
            return str(error)

    async def both():
        ours, theirs = LocusStorage("memory"), InMemoryStorage()
        for prefix, (name, *arguments) in calls:
            answers = [await answer(each, prefix, name, arguments) for each in (ours, theirs)]
            if name == "search" and isinstance(answers[0], list):
                # They put hits of one score in the order of the writes or of the keys.
                for each in answers:
                    each.sort(key=lambda hit: (-hit.score, hit.key))
            assert answers[0] == answers[1]
        await ours.close()

    asyncio.run(both())


class Indexed:
    """A search strategy that notes what it is given."""

    def __init__(self):
        self.indexed = []

    async def index(self, storage, key, data):
        if key == "refused":
            raise ValueError(key)
        self.indexed.append((key, data))

    async def search(self, storage, query):
        return [query]


class TestSearch:
    async def test_a_strategy_indexes_and_searches(self, storages):
        strategy = Indexed()
        storage = storages(search_strategy=strategy).namespace("folder")
        await storage.write("/a", b"1")
        assert strategy.indexed == [("a", b"1")]
        assert await storage.search("query") == ["query"]
        with pytest.raises(StorageError, match="indexing failed"):
            await storage.write("refused", b"1")

    async def test_a_search_is_few_queries(self):
        class Counting(StoreWrapper):
            queries = 0

            async def scan(self, *args, **kwargs):
                self.queries += 1
                return await super().scan(*args, **kwargs)

        store = Counting(InMemoryStore())
        storage = LocusStorage(store)
        for number in range(600):
            await storage.write(f"{number}", b"tea")
        assert len(await storage.search("tea")) == 600
        assert store.queries == 2


class TestDamage:
    async def test_a_damaged_value_is_missing_and_told(self, storages):
        storage = storages()
        await storage.write("a", b"tea")
        await storage.write("b", b"tea")
        for damaged in (1, {}, {"text": 1}, {"base64": "="}, {"text": None}):
            await storage.store.put(PLACE, "a", damaged)
            with collect() as events:
                assert await storage.read("a") is None
                assert [each.key for each in await storage.search("tea")] == ["b"]
            assert [(each.name, each.attributes["key"]) for each in events] == [
                ("integrations.item_unreadable", "a")
            ] * 2
        await storage.write("a", b"new")
        assert await storage.read("a") == b"new"


class TestRefusals:
    async def test_what_is_no_bytes_or_no_key(self, storages):
        storage = storages()
        for data in ("text", 5, None, [1]):
            with pytest.raises(StorageError, match="data is bytes"):
                await storage.write("a", data)
        with pytest.raises(StorageError, match="key"):
            await storage.write("\ud800", b"1")
        assert await storage.list() == []

    async def test_a_changed_buffer_changes_nothing(self, storages):
        storage = storages()
        data = bytearray(b"mutable")
        await storage.write("a", data)
        data[0] = 0xFF
        assert await storage.read("a") == b"mutable"
        await storage.write("a", memoryview(data))
        assert await storage.read("a") == bytes(data)

    async def test_a_closed_store(self, tmp_path):
        store = get_store(f"sqlite:{tmp_path / 'test.db'}")
        async with store:
            async with LocusStorage(store).namespace("a") as storage:
                await storage.write("a", b"1")
            assert await storage.read("a") == b"1"
        for call in (
            storage.read("a"),
            storage.write("a", b"1"),
            storage.list(),
            storage.delete("a"),
        ):
            with pytest.raises(StorageError, match=r"used after close\(\)"):
                await call

    async def test_it_closes_what_it_opened(self, tmp_path):
        async with LocusStorage(f"sqlite:{tmp_path / 'test.db'}") as storage:
            async with storage.namespace("a") as scoped:
                await scoped.write("b", b"1")
            assert await storage.list() == ["a/b"]
