"""Strings and backends wherever a store is taken, and who closes what."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.backends.base import ComposedBackend
from locus_memory.errors import BackendClosedError, ConfigurationError
from locus_memory.registry import get_store, open_backend, register_store
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.reembed import reembed
from locus_memory.store.view import NamespacedStore, StoreContext
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.store.wrappers.embedding import EmbeddingStore
from locus_memory.store.wrappers.encrypting import EncryptingStore
from locus_memory.sync import blocking
from locus_memory.testing.fakes import FakeEmbedder

NS = ("opening",)
EMBEDDER = FakeEmbedder()

MAKERS = {
    "NamespacedStore": lambda where: NamespacedStore(where, NS),
    "StoreContext": lambda where: StoreContext(where, "ada"),
    "HybridSearch": HybridSearch,
    "StoreWrapper": StoreWrapper,
    "EmbeddingStore": lambda where: EmbeddingStore(where, EMBEDDER),
    "EncryptingStore": lambda where: EncryptingStore(where, {"k": b"k" * 16}, active="k"),
}

WRAPPERS = {"StoreWrapper", "EmbeddingStore", "EncryptingStore"}


def store_in(made):
    if not isinstance(made, StoreWrapper):
        return made.store
    # The store that encrypts has one that seals names between.
    while isinstance(made, StoreWrapper):
        made = made.inner
    return made


async def is_closed(store):
    try:
        await store.get(NS, "k")
    except BackendClosedError:
        return True
    return False


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


async def test_what_a_string_made_is_closed_with_it(make, tmp_path):
    async with make(f"sqlite:{tmp_path / 'a.db'}") as made:
        store = store_in(made)
        assert await store.put(NS, "k", 1) == 1
    assert await is_closed(store)
    await made.close()


@pytest.mark.parametrize("composed", [False, True])
async def test_the_store_of_a_backend_is_closed_by_the_backend(make, composed):
    inner = get_store("memory")
    backend = ComposedBackend("mine", inner) if composed else open_backend("memory")
    async with backend:
        async with make(backend) as made:
            assert store_in(made) is backend.store
        assert not await is_closed(backend.store)
    assert await is_closed(backend.store)


async def test_a_store_is_closed_by_whoever_made_it_or_its_wrapper(make, request):
    name = request.node.callspec.params["make"]
    async with get_store("memory") as store:
        async with make(store) as made:
            assert store_in(made) is store
        assert await is_closed(store) is (name in WRAPPERS)


@pytest.mark.parametrize("bad", [None, 5, object(), "nobody-knows-it", b"memory"])
def test_anything_else_is_refused(make, bad):
    with pytest.raises(ConfigurationError):
        make(bad)


async def test_a_view_of_a_view_closes_nothing():
    async with NamespacedStore("memory", NS) as notes:
        async with notes.scoped("more") as more:
            await more.put("k", 1)
        async with StoreContext(notes.store, "ada").for_user() as memories:
            await memories.put("k", 1)
        assert await notes.store.get((*NS, "more"), "k") == 1
        assert await notes.scoped("more").get("k") == 1


async def test_reembed_closes_what_it_opened(tmp_path):
    where = f"sqlite:{tmp_path / 'a.db'}"
    async with get_store(where) as store:
        await store.put(NS, "k", "words")
    opened = []
    unregister = register_store("mine", lambda hint: opened.append(get_store(hint)) or opened[0])
    report = await reembed(f"mine:{where}", NS, EMBEDDER, include_unmarked=True)
    unregister()
    assert report.embedded == 1
    assert await is_closed(opened[0])
    async with open_backend(where) as backend:
        report = await reembed(backend, NS, EMBEDDER, include_unmarked=True)
        assert report.current == 1
        assert not await is_closed(backend.store)


async def test_blocking_takes_a_string(tmp_path):
    def work():
        with blocking(f"sqlite:{tmp_path / 'a.db'}") as store:
            return store.put(NS, "k", 1), store.get(NS, "k")

    assert await asyncio.to_thread(work) == (1, 1)
