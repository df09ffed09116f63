"""What a `StoreContext` finds of a user's memories: by words, and by meaning as well."""

from __future__ import annotations

import pytest

from locus_memory.errors import (
    ConfigurationError,
    StoreCapabilityError,
    ValueNotSerializableError,
)
from locus_memory.events import subscribe
from locus_memory.registry import get_store
from locus_memory.retrieval.embedders.marks import MARK, EmbeddingMark, mark_of
from locus_memory.retrieval.reembed import reembed
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.view import StoreContext
from locus_memory.store.wrappers import EncryptingStore, StoreWrapper
from locus_memory.testing import FakeClock, FakeEmbedder

SPACE = ("users", "ada", "memories")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def store(provider, clock):
    url, options = provider
    async with get_store(url, clock=clock, **options) as made:
        yield made


@pytest.fixture
def events():
    seen = []
    unsubscribe = subscribe(seen.append)
    yield seen
    unsubscribe()


@pytest.fixture(params=[None, FakeEmbedder()], ids=["words", "vectors"])
def ada(request, store):
    return StoreContext(store, "ada", embedder=request.param)


class Wordless(StoreWrapper):
    """A store that searches by meaning alone."""

    @property
    def capabilities(self):
        return StoreCapabilities(semantic_search=self.inner.capabilities.semantic_search)


class Plain(StoreWrapper):
    """A store that cannot search."""

    capabilities = StoreCapabilities()


class Broken(FakeEmbedder):
    async def embed(self, texts, *, kind="document"):
        raise RuntimeError("no model")


async def keys(context, *args, **options):
    return [item.key for item in await context.search_memories(*args, **options)]


async def remember_some(context, clock):
    for number in range(20):
        await context.remember(f"k{number}", f"Fact number {number}", {"even": number % 2 == 0})
        clock.advance(60)
    await context.remember("drink", "Likes green tea in the morning")
    await context.remember("city", {"name": "Graz", "since": 2020}, {"even": True})
    clock.advance(60)
    await context.remember("note", "Anything else")


async def test_the_best_come_first_with_their_scores(ada, clock):
    await remember_some(ada, clock)
    found = await ada.search_memories("Which tea in the morning?", 5)
    assert found[0].key == "drink"
    assert found[0].value == "Likes green tea in the morning"
    scores = [item.score for item in found]
    assert scores == sorted(scores, reverse=True)
    assert None not in scores
    assert (await keys(ada, "Graz"))[0] == "city"


async def test_without_a_query_the_newest_come_first(ada, clock):
    await remember_some(ada, clock)
    assert await keys(ada, limit=1) == ["note"]
    assert len(await ada.search_memories(limit=99)) == 23
    assert await keys(ada, filter={"even": True}, limit=1) == ["city"]


async def test_a_filter_holds_in_every_search(ada, clock):
    await remember_some(ada, clock)
    found = await ada.search_memories("fact number", 99, filter={"even": True})
    assert {item.key for item in found} - {"city"} == {f"k{n}" for n in range(0, 20, 2)}


async def test_nobody_else_is_found(ada, store, clock):
    await remember_some(ada, clock)
    bob = StoreContext(store, "bob", embedder=ada.embedder)
    assert await bob.search_memories("tea") == []


async def test_meaning_finds_what_words_do_not(store, clock):
    ada = StoreContext(store, "ada", embedder=FakeEmbedder())
    await remember_some(ada, clock)
    wordless = StoreContext(Wordless(store), "ada", embedder=FakeEmbedder())
    assert await keys(wordless, "green tea", 1) == ["drink"]


async def test_a_mark_is_stored_and_never_shown(store):
    embedder = FakeEmbedder()
    ada = StoreContext(store, "ada", None, embedder)
    assert await ada.remember("drink", "green tea", {"source": "chat"}, ttl=3600) == 1
    assert await ada.remember("drink", "green tea", {"source": "chat"}) == 2
    item = await store.get_item(SPACE, "drink")
    assert mark_of(item.metadata) == EmbeddingMark("fake-64", 64)
    [vector] = await embedder.embed(["green tea"], kind="query")
    shown = [
        *await ada.search_memories("tea"),
        *await ada.search_memories(),
        *[hit.item for hit in await ada.search_memories_semantic(vector)],
    ]
    assert [item.metadata for item in shown] == [{"source": "chat"}] * 3
    assert MARK not in repr(shown)


@pytest.mark.parametrize("value", [5, None, True, "", "  ", [], {"n": 1.5}], ids=repr)
async def test_a_value_without_text_has_no_vector(store, value):
    embedder = FakeEmbedder()
    ada = StoreContext(store, "ada", embedder=embedder)
    await ada.remember("k", value)
    assert await ada.get_user_memory("k") == value
    assert await store.get_embedding(SPACE, "k") is None
    assert embedder.calls == []


async def test_what_cannot_be_stored_is_refused_unembedded(store):
    embedder = FakeEmbedder()
    ada = StoreContext(store, "ada", embedder=embedder)
    with pytest.raises(ValueNotSerializableError):
        await ada.remember("k", {"tea": {1, 2}})
    assert embedder.calls == []


async def test_a_failing_embedder_is_reported_and_words_must_do(store, events):
    ada = StoreContext(store, "ada", embedder=Broken())
    assert await ada.remember("drink", "green tea") == 1
    assert await keys(ada, "tea") == ["drink"]
    assert [event.name for event in events] == ["memory.embed_failed", "retrieval.degraded"]


async def test_without_an_embedder_nothing_is_degraded(store, events):
    ada = StoreContext(store, "ada")
    await ada.remember("drink", "green tea")
    assert await keys(ada, "tea") == ["drink"]
    assert events == []
    assert await store.get_embedding(SPACE, "drink") is None


async def test_another_model_is_refused_until_its_vectors_are_there(store):
    await StoreContext(store, "ada", embedder=FakeEmbedder()).remember("drink", "green tea")
    other = FakeEmbedder(32)
    ada = StoreContext(store, "ada", embedder=other)
    with pytest.raises(ConfigurationError, match=r"fake-64.*fake-32.*reembed"):
        await ada.search_memories("tea")
    assert (await reembed(store, SPACE, other)).embedded == 1
    assert await keys(ada, "tea") == ["drink"]
    assert await keys(StoreContext(Wordless(store), "ada", embedder=other), "tea") == ["drink"]


async def test_an_encrypted_memory_is_found_by_meaning_and_stays_secret(store, clock):
    sealed = EncryptingStore(store, {"k": b"k" * 16}, active="k", clock=clock)
    ada = StoreContext(sealed, "ada", embedder=FakeEmbedder())
    await remember_some(ada, clock)
    assert await keys(ada, "green tea", 1) == ["drink"]
    assert "green tea" not in repr(await store.scan(SPACE))


async def test_a_store_that_cannot_search_says_so(store):
    ada = StoreContext(Plain(store), "ada", embedder=FakeEmbedder())
    assert await ada.remember("drink", "green tea") == 1
    with pytest.raises(StoreCapabilityError):
        await ada.search_memories("tea")
    assert await keys(ada) == ["drink"]
