from __future__ import annotations

import inspect

import pytest

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.errors import InvalidArgumentError, InvalidNamespaceError, VersionConflictError
from locus_memory.store.base import BaseStore
from locus_memory.store.view import NamespacedStore, StoreContext

# A view cannot be closed; an operation and a restored item name their namespaces themselves.
NOT_IN_A_VIEW = {"write_batch", "restore", "list_namespaces", "clear_namespace", "compact"}


@pytest.fixture
def store():
    return InMemoryStore()


@pytest.fixture
def view(store):
    return NamespacedStore(store, ("users", "ada"))


def test_a_view_has_the_verbs_of_a_store():
    for name, verb in vars(BaseStore).items():
        if name.startswith("_") or not inspect.iscoroutinefunction(verb) or name in NOT_IN_A_VIEW:
            continue
        of_store = list(inspect.signature(verb).parameters.values())
        of_view = list(inspect.signature(getattr(NamespacedStore, name)).parameters.values())
        if of_store[1].name == "namespace":
            del of_store[1]
        assert [(p.name, p.kind, p.default) for p in of_view] == [
            (p.name, p.kind, p.default) for p in of_store
        ], name


async def test_one_item(store, view):
    assert await view.put("k", 1, {"m": 1}, ttl=60, text="fox") == 1
    assert await store.get(("users", "ada"), "k") == await view.get("k") == 1
    item = await view.get_item("k")
    assert item.metadata == {"m": 1}
    assert item.expires_at is not None
    assert await view.exists("k")
    with pytest.raises(VersionConflictError):
        await view.put("k", 2, if_version=0)
    with pytest.raises(VersionConflictError):
        await view.delete("k", if_version=2)
    assert [found.key for found in await view.search("fox")] == ["k"]
    assert await view.delete("k", if_version=1)
    assert not await view.exists("k")


async def test_listing_and_batches(store, view):
    await store.put(("users",), "other", 1)
    assert await view.put_batch([("a", 1), ("b", 2, {"m": 2}), ("c", 3)]) == [1, 1, 1]
    assert await view.get_batch(["a", "c", "x"]) == {"a": 1, "c": 3}
    assert await view.list_keys(2, after="a") == ["b", "c"]
    assert await view.list_keys(prefix="b") == ["b"]
    assert [item.value for item in await view.scan(2, descending=True)] == [3, 2]
    assert [item.key for item in await view.search(filter={"m": 2})] == ["b"]
    assert await view.delete_batch(["a", "x"]) == 1
    assert await view.clear() == 2
    assert await store.exists(("users",), "other")


async def test_vectors(view):
    await view.put_with_embedding("near", 1, [1.0, 0.0], {"kind": "a"})
    await view.put_with_embedding("far", 2, [0.0, 1.0], {"kind": "b"})
    assert await view.get_embedding("near") == [1.0, 0.0]
    hits = await view.search_by_embedding([1.0, 0.1], 1)
    assert [hit.item.key for hit in hits] == ["near"]
    hits = await view.search_by_embedding([1.0, 0.1], metadata_filter={"kind": "b"})
    assert [hit.item.key for hit in hits] == ["far"]
    assert await view.search_by_embedding([1.0, 0.0], threshold=0.5, offset=1) == []


async def test_a_scope_is_a_namespace_below(store, view):
    notes = view.scoped("notes", "2026")
    assert notes == NamespacedStore(store, ("users", "ada", "notes", "2026"))
    await notes.put("k", "fox")
    assert await view.list_keys() == []
    assert [item.key for item in await view.search("fox", recursive=True)] == ["k"]
    assert await view.clear(recursive=True) == 1


@pytest.mark.parametrize("namespace", ["users", (), ["users"], ("",)], ids=repr)
def test_a_view_needs_a_namespace(store, namespace):
    with pytest.raises(InvalidNamespaceError):
        NamespacedStore(store, namespace)


async def test_the_memories_of_a_user(store):
    ada, bob = (StoreContext(store, user_id=name) for name in ("ada", "bob"))
    assert await ada.remember("drink", "green tea", {"source": "chat"}) == 1
    assert await ada.get_user_memory("drink") == "green tea"
    assert await store.get(("users", "ada", "memories"), "drink") == "green tea"
    assert await bob.get_user_memory("drink") is None
    assert [item.key for item in await ada.search_memories("tea")] == ["drink"]
    assert [item.key for item in await ada.search_memories(filter={"source": "chat"})] == ["drink"]
    assert await bob.search_memories() == []
    assert not await bob.forget("drink")
    assert await ada.forget("drink")
    assert await ada.get_user_memory("drink") is None


async def test_semantic_memories(store):
    ada = StoreContext(store, user_id="ada")
    await ada.remember_with_embedding("tea", "likes tea", [1.0, 0.0], {"kind": "taste"})
    await ada.remember_with_embedding("bike", "rides a bike", [0.0, 1.0])
    hits = await ada.search_memories_semantic([1.0, 0.1], 1)
    assert [hit.item.key for hit in hits] == ["tea"]
    hits = await ada.search_memories_semantic([0.0, 1.0], threshold=0.5)
    assert [hit.item.key for hit in hits] == ["bike"]
    hits = await ada.search_memories_semantic([0.0, 1.0], metadata_filter={"kind": "taste"})
    assert [hit.item.key for hit in hits] == ["tea"]


async def test_users_sessions_and_everybody(store):
    context = StoreContext(store, user_id="ada", session_id="s1")
    assert context.for_user().namespace == ("users", "ada")
    assert context.for_user("bob").namespace == ("users", "bob")
    assert context.for_session().namespace == ("sessions", "s1")
    assert context.for_session("s2").namespace == ("sessions", "s2")
    assert await context.set_global("motd", "hello", {"by": "ops"}) == 1
    assert await StoreContext(store).get_global("motd") == "hello"
    assert await store.get(("global",), "motd") == "hello"
    assert await context.get_global("missing") is None


async def test_a_context_without_a_user_says_so(store):
    context = StoreContext(store)
    with pytest.raises(InvalidArgumentError, match="no user_id"):
        context.for_user()
    with pytest.raises(InvalidArgumentError, match="no session_id"):
        context.for_session()
    for call in (
        context.remember("k", 1),
        context.get_user_memory("k"),
        context.forget("k"),
        context.search_memories(),
        context.remember_with_embedding("k", 1, [1.0]),
        context.search_memories_semantic([1.0]),
    ):
        with pytest.raises(InvalidArgumentError, match="no user_id"):
            await call
    with pytest.raises(InvalidNamespaceError):
        StoreContext(store, user_id="").for_user()
