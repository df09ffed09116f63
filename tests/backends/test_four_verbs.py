"""A store that keeps values alone, in the four verbs of the Locus SDK, has the whole contract."""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import dataclass, field

import pytest

from locus_memory.agent import Agent
from locus_memory.backends.four_verbs import FourVerbStore, whole
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import BackendCorruptError, InvalidArgumentError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.registry import as_store
from locus_memory.store.base import BaseStore
from locus_memory.store.item import StoreCapabilities
from locus_memory.testing import StoreConformance
from locus_memory.testing.model import FakeModel


class DictStore(BaseStore):
    """As the Locus SDK's pages write one: no versions, no moments, no keywords."""

    def __init__(self):
        self.values = {}

    async def put(self, namespace, key, value, metadata=None):
        self.values[namespace, key] = value

    async def get(self, namespace, key):
        return self.values.get((namespace, key))

    async def delete(self, namespace, key):
        return self.values.pop((namespace, key), None) is not None

    async def list_keys(self, namespace, limit=100):
        return [key for space, key in self.values if space == namespace][:limit]


class TestFourVerbStore(StoreConformance):
    def make_store(self, clock, tmp_path):
        return FourVerbStore(DictStore(), clock=clock)


async def test_the_four_verbs_are_enough():
    store = DictStore()
    for key in ("b", "a", "c"):
        await store.put(("n",), key, {"is": key})
    assert (await store.get_item(("n",), "a")).value == {"is": "a"}
    assert await store.get_item(("n",), "x") is None
    assert await store.exists(("n",), "b")
    assert [each.key for each in await store.scan(("n",), 2)] == ["a", "b"]
    found = await store.scan(("n",), descending=True, after="c", prefix="")
    assert [each.key for each in found] == ["b", "a"]
    assert await store.get_batch([(("n",), "a"), (("n",), "x")]) == {(("n",), "a"): {"is": "a"}}
    assert await store.clear_namespace(("n",)) == 3
    assert store.capabilities == StoreCapabilities()


def test_a_store_without_them_cannot_be_made():
    class Lacking(BaseStore):
        async def put(self, namespace, key, value, metadata=None): ...

        async def get(self, namespace, key): ...

    with pytest.raises(TypeError, match="delete"):
        Lacking()


async def test_a_memory_is_kept_in_it():
    store = DictStore()
    manager = LLMMemoryManager(store)
    await manager.save([Memory(MemoryType.USER, "home", "The user lives in Graz.")])
    await manager.save([Memory(MemoryType.USER, "home", "The user lives in Linz.")])
    [memory] = await LLMMemoryManager(store).retrieve()
    assert memory.content == "The user lives in Linz."
    assert len(await manager.history("home")) == 2
    assert (await manager.undo("home")).content == "The user lives in Graz."


async def test_an_agent_remembers_with_it():
    store = DictStore()
    async with Agent(FakeModel(["Noted."]), memory_manager=LLMMemoryManager(store)) as agent:
        await agent.run("My name is Ada.", thread_id="t", user_id="u")
    model = FakeModel(["Ada."])
    async with Agent(model, memory_manager=LLMMemoryManager(store)) as agent:
        await agent.run("What is my name?", thread_id="other", user_id="u")
    assert "name is Ada" in str(model.calls[-1])


async def test_what_was_put_past_it_is_read():
    store = DictStore()
    await store.put(("n",), "a", {"mine": 1})
    seen = whole(store)
    item = await seen.get_item(("n",), "a")
    assert (item.value, item.version) == ({"mine": 1}, 1)
    assert await seen.put(("n",), "a", 2, if_version=1) == 2
    assert whole(store) is seen
    plain = InMemoryStore()
    assert whole(plain) is plain


async def test_those_who_share_a_store_share_the_versions():
    class Slow(DictStore):
        async def get(self, namespace, key):
            await asyncio.sleep(0)
            return await super().get(namespace, key)

    store = Slow()
    seen = [FourVerbStore(store) for _ in range(5)]
    versions = await asyncio.gather(*(each.put(("n",), "k", 1) for each in seen))
    assert sorted(versions) == [1, 2, 3, 4, 5]


def test_a_store_that_nobody_uses_any_more_is_let_go():
    store = DictStore()
    seen, held = as_store(store)[0], weakref.ref(store)
    assert isinstance(seen, FourVerbStore)
    del seen, store
    gc.collect()
    assert held() is None


async def test_a_store_may_be_a_dataclass():
    @dataclass
    class Fields(DictStore):
        values: dict = field(default_factory=dict)

    store, _ = as_store(Fields())
    assert await store.put(("n",), "k", 1) == 1


async def test_nothing_is_put_where_it_keeps_the_namespaces():
    store = FourVerbStore(DictStore())
    await store.put(("n",), "k", 1)
    with pytest.raises(InvalidArgumentError, match="keeps its namespaces"):
        await store.put(("locus_memory.namespaces",), "k", 1)
    with pytest.raises(InvalidArgumentError, match="keeps its namespaces"):
        await store.delete(("locus_memory.namespaces",), '["n"]')
    assert await store.list_namespaces() == [("n",)]


@pytest.mark.parametrize("item", [None, 5, {}, {"key": "k"}, {"created_at": "soon"}])
async def test_a_damaged_envelope_is_told(item):
    store = DictStore()
    await store.put(("n",), "k", {"locus_memory.item": item})
    with pytest.raises(BackendCorruptError, match="damaged"):
        await whole(store).get(("n",), "k")
