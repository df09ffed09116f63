"""A memory store of Strands: what its memory manager finds, and what is refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from strands import Agent
from strands.memory import MemoryManager

from locus_memory import EncryptingStore
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError, ValueNotSerializableError
from locus_memory.events import collect
from locus_memory.integrations.strands import LocusMemoryStore
from locus_memory.testing import FakeEmbedder

PLACE = ("strands_memory", "notes")


def contents(found):
    return [each.content for each in found]


class TestRuns:
    async def test_an_agent_is_told_what_it_remembers(self, memories, model):
        await memories().add("Ada likes oolong tea.")
        said_by = model("Oolong.")
        manager = MemoryManager(stores=[memories()], add_tool_config=True)
        agent = Agent(said_by, memory_manager=manager, callback_handler=None)
        await agent.invoke_async("Which tea does Ada like?")
        assert "Ada likes oolong tea." in str(said_by.asked[0])
        assert {"search_memory", "add_memory"} <= set(agent.tool_names)
        await manager.add("Bob has a cat.")
        [found] = await manager.search("cat")
        assert (found.content, found.store_name) == ("Bob has a cat.", "notes")

    async def test_each_name_is_a_store(self, memories):
        await memories().add("Ada likes tea.")
        assert await memories("other").search("tea") == []


class TestSearch:
    async def test_the_best_comes_first(self, memories):
        store = memories()
        await store.add("The cat chased the dog in the park.", {"source": "diary"})
        await store.add("The cat sat on the mat.")
        first, second = await store.search("cat, dog or park")
        assert first.content.startswith("The cat chased")
        assert first.metadata["source"] == "diary"
        assert first.metadata["score"] > second.metadata["score"]
        assert len(await store.search("cat", {"max_search_results": 1})) == 1
        assert len(await memories(max_search_results=1).search("cat")) == 1
        assert await store.search("   ") == await store.search("...") == []

    async def test_an_embedder_searches_encrypted_memories(self):
        inner = EncryptingStore(InMemoryStore(), {"k": b"0" * 32}, active="k")
        store = LocusMemoryStore("notes", inner, embedder=FakeEmbedder())
        await store.add("Ada likes oolong tea.")
        assert contents(await store.search("oolong tea")) == ["Ada likes oolong tea."]


class TestAdding:
    async def test_the_same_content_is_stored_once(self, memories):
        store = memories()
        first = await store.add("Ada likes tea.", {"source": "a"})
        assert await memories().add(" Ada likes tea. ", {"source": "b"}) == first
        [found] = await store.search("tea")
        assert found.metadata["source"] == "b"

    def test_two_processes_lose_nothing(self, tmp_path):
        where = f"sqlite:{tmp_path / 'test.db'}"
        writers = [subprocess.Popen([sys.executable, "-c", WRITER, where, name]) for name in "ab"]
        assert [each.wait(120) for each in writers] == [0, 0]

        async def read():
            async with LocusMemoryStore("notes", where) as store:
                return contents(await store.search("tea", {"max_search_results": 100}))

        expected = {f"{name} likes tea number {number}." for name in "ab" for number in range(20)}
        assert set(asyncio.run(read())) == expected


WRITER = """
import asyncio, sys
from locus_memory.integrations.strands import LocusMemoryStore

async def main(where, name):
    async with LocusMemoryStore("notes", where) as store:
        for number in range(20):
            await store.add(f"{name} likes tea number {number}.")

asyncio.run(main(*sys.argv[1:]))
"""


class TestDamage:
    async def test_a_memory_of_another_form_is_left_out_and_told(self, memories):
        store = memories()
        key = await store.add("Ada likes tea.")
        await store.add("Bob likes tea.")
        for damaged in ("Ada tea", {"content": ["tea"], "metadata": {}}, {"content": "tea"}):
            await store.store.put(PLACE, key, damaged)
            with collect() as events:
                assert contents(await store.search("tea")) == ["Bob likes tea."]
            assert ("integrations.item_unreadable", key) in {
                (each.name, each.attributes.get("key")) for each in events
            }
        await store.add("Ada likes tea.")
        assert len(await store.search("tea")) == 2


class TestRefusals:
    async def test_what_cannot_be_added(self):
        store = LocusMemoryStore("notes", "memory")
        for content in ("", "  ", None, 7, "\ud800"):
            with pytest.raises(InvalidArgumentError, match="content"):
                await store.add(content)
        with pytest.raises(ValueNotSerializableError, match=r"metadata\.score"):
            await store.add("tea", {"score": float("nan")})
        with pytest.raises(InvalidArgumentError, match="not writable"):
            await LocusMemoryStore("notes", "memory", writable=False).add("tea")
        assert await store.store.list_namespaces() == []

    @pytest.mark.parametrize("count", [0, -1, True, "1"])
    async def test_a_number_of_results(self, count):
        with pytest.raises(InvalidArgumentError, match="max_search_results"):
            LocusMemoryStore("notes", "memory", max_search_results=count)
        with pytest.raises(InvalidArgumentError, match="max_search_results"):
            await LocusMemoryStore("notes", "memory").search("tea", {"max_search_results": count})

    def test_a_name(self):
        with pytest.raises(InvalidArgumentError, match="name"):
            LocusMemoryStore("", "memory")
        assert "notes" in repr(LocusMemoryStore("notes", "memory"))
