"""Our stores where the SDK wants one of its own."""

from __future__ import annotations

import pytest
from locus.memory.manager import LLMMemoryManager, Memory, MemoryType
from locus.memory.store import (
    BaseStore,
    NamespacedStore,
    StoreCapabilities,
    StoreCapabilityError,
    StoreContext,
    StoreItem,
)

from locus_memory import InMemoryStore, open_backend
from locus_memory.errors import BackendClosedError, InvalidNamespaceError
from locus_memory.integrations.locus import LocusStore


class FourVerbs(InMemoryStore):
    """A store that cannot search."""

    async def search(self, namespace, query=None, limit=10, **options):
        self._unsupported("search", "choose another one")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    where = "memory" if request.param == "memory" else f"sqlite:{tmp_path}/agent.db"
    store = LocusStore(where)
    yield store
    await store.close()


async def test_it_is_a_store_of_the_sdk(store):
    assert isinstance(store, BaseStore)
    assert store.capabilities == StoreCapabilities(
        search=True,
        semantic_search=True,
        ttl=True,
        list_namespaces=True,
        batch_operations=True,
        transactions=True,
    )


async def test_values_and_items(store):
    await store.put(("a",), "k", {"n": 1}, {"m": 2})
    await store.put(("a",), "k", {"n": 2})
    await store.put(("a",), "none", None)
    item = await store.get_item(("a",), "k")
    assert isinstance(item, StoreItem)
    assert (item.value, item.metadata, item.version) == ({"n": 2}, {}, 2)
    assert StoreItem.from_dict(item.to_dict()) == item
    assert item.created_at <= item.updated_at
    assert await store.get(("a",), "missing") is None
    assert await store.get_item(("a",), "missing") is None
    assert await store.exists(("a",), "none")
    assert await store.list_keys(("a",)) == ["k", "none"]
    assert await store.list_keys(("a",), limit=1) == ["k"]
    assert await store.delete(("a",), "k")
    assert not await store.delete(("a",), "k")
    with pytest.raises(InvalidNamespaceError):
        await store.put(["a"], "k", 1)


async def test_batches_and_namespaces(store):
    await store.put_batch([(("a", "b"), "1", 1, None), (("a:b",), "2", 2, {"m": 1})])
    assert await store.get_batch([(("a", "b"), "1"), (("a:b",), "2"), (("x",), "3")]) == {
        (("a", "b"), "1"): 1,
        (("a:b",), "2"): 2,
    }
    assert await store.list_namespaces() == [("a", "b"), ("a:b",)]
    assert await store.list_namespaces(("a",)) == [("a", "b")]
    assert await store.clear_namespace(("a", "b")) == 1
    assert await store.get(("a:b",), "2") == 2


async def test_searches(store):
    await store.put(("a",), "one", {"text": "a cat on a mat"})
    await store.put(("b",), "two", {"text": "cats and dogs"})
    assert [item.key for item in await store.search(("a",), "cats")] == ["one"]
    assert [item.key for item in await store.search(("a",))] == ["one"]
    found = await store.search_many([("a",), ("b",), ("c",)], "cat", 5)
    assert [[item.key for item in each] for each in found] == [["one"], ["two"], []]


async def test_vectors(store):
    await store.put_with_embedding(("v",), "x", "x", [1.0, 0.0], {"kind": "a"})
    await store.put_with_embedding(("v",), "y", "y", [0.0, 1.0], {"kind": "b"})
    (best, _) = await store.search_by_embedding(("v",), [1.0, 0.1])
    assert best.item.key == "x"
    assert best.score == pytest.approx(1 - best.distance)
    (only,) = await store.search_by_embedding(("v",), [1.0, 0.1], 5, None, {"kind": "b"})
    assert only.item.key == "y"
    assert await store.search_by_embedding(("v",), [1.0, 0.0], 5, 0.9) != []
    assert await store.get_embedding(("v",), "x") == [1.0, 0.0]


async def test_what_a_store_cannot_do():
    async with FourVerbs() as ours:
        with pytest.raises(StoreCapabilityError, match="choose another one") as told:
            await LocusStore(ours).search(("a",), "words")
        assert (told.value.capability, told.value.store_class) == ("search", "FourVerbs")


async def test_the_views_of_the_sdk(store):
    view = NamespacedStore(store, ("users",)).scoped("ada")
    await view.put("theme", "dark", {"m": 1})
    assert await view.get("theme") == "dark"
    assert await view.list_keys() == ["theme"]
    assert await view.clear() == 1
    context = StoreContext(store, user_id="ada")
    await context.remember("topic", {"topic": "python"})
    assert [item.key for item in await context.search_memories("python")] == ["topic"]
    assert await context.get_user_memory("topic") == {"topic": "python"}


@pytest.mark.parametrize("as_it_is", [False, True], ids=["adapter", "as it is"])
async def test_under_the_memory_manager_of_the_sdk(make_agent, as_it_is):
    async def extract(messages):
        return [Memory(MemoryType.USER, "home", "The user lives in Berlin.")]

    async with InMemoryStore() as ours:
        where = ours if as_it_is else LocusStore(ours)
        manager = LLMMemoryManager(store=where, extract_fn=extract)
        agent = make_agent(memory_manager=manager)
        await agent.arun("I live in Berlin.")
        await agent.arun("Where do I live?")
        last = agent.model.received_messages[-1]
        assert any("The user lives in Berlin." in (message.content or "") for message in last)


async def test_what_was_passed_in_is_never_closed():
    async with open_backend("memory") as backend:
        await LocusStore(backend).close()
        await backend.store.put(("a",), "k", 1)
    owned = LocusStore("memory")
    await owned.close()
    with pytest.raises(BackendClosedError):
        await owned.get(("a",), "k")
