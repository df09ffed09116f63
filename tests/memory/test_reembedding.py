"""Vectors say whose they are: another model is refused, and made welcome by `reembed`."""

from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import ConfigurationError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.messages import Message
from locus_memory.retrieval.embedders.marks import MARK, EmbeddingMark, mark_of
from locus_memory.retrieval.reembed import reembed
from locus_memory.state import AgentState
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.wrappers import EncryptingStore, StoreWrapper
from locus_memory.testing import FakeEmbedder

CURRENT = ("locus_memory", "current")
NAMES = {"tea": "Likes green tea", "city": "Lives in Graz", "sport": "Plays tennis"}


class Wordless(StoreWrapper):
    """A store that searches by meaning alone."""

    @property
    def capabilities(self):
        inner = self.inner.capabilities
        return StoreCapabilities(
            semantic_search=inner.semantic_search,
            embedding_dimension=inner.embedding_dimension,
            transactions=inner.transactions,
        )


class Renamed(FakeEmbedder):
    """Another model whose vectors are as long."""

    def __init__(self):
        super().__init__()
        self.name = "renamed"


@pytest.fixture(params=[lambda: FakeEmbedder(32), Renamed], ids=["shorter", "as long"])
def other(request):
    return request.param()


@pytest.fixture
def make(searching, clock, scripted):
    def manager(embedder, store=searching, **options):
        options = {"extract_fn": scripted(), "clock": clock, **options}
        return LLMMemoryManager(store, embedder=embedder, **options)

    return manager


async def fill(manager):
    await manager.save([Memory("user", key, content) for key, content in NAMES.items()])


async def test_a_vector_is_stored_with_its_mark(make, searching):
    manager = make(FakeEmbedder())
    await fill(manager)
    item = await searching.get_item(CURRENT, "user:city")
    assert mark_of(item.metadata) == EmbeddingMark(
        "fake-64", 64, text="city\nLives in Graz", source="Lives in Graz"
    )


async def test_nobody_sees_a_mark(make):
    manager = make(FakeEmbedder())
    await fill(manager)
    await manager.save(Memory("user", "city", "Lives in Linz"))
    seen = [
        *await manager.retrieve(),
        *await manager.retrieve(query="green tea"),
        *await manager.history("city"),
        *[memory async for memory in manager.memories()],
    ]
    assert len(seen) == 11
    assert MARK not in repr(seen)


async def test_another_model_is_refused_until_its_vectors_are_there(make, searching, other):
    await fill(make(FakeEmbedder()))
    manager = make(other)
    with pytest.raises(ConfigurationError, match=f"fake-64.*{other.name}.*reembed"):
        await manager.retrieve(query="Where in Graz?")
    assert len(await manager.retrieve()) == 3
    report = await reembed(searching, CURRENT, other)
    assert report.embedded == 3
    # Words cannot have found it.
    [memory] = await make(other, Wordless(searching)).retrieve(1, "Where in Graz?")
    assert memory.content == "Lives in Graz"
    [memory] = await manager.retrieve(1, "Which city?")
    assert memory.key == "city"
    with pytest.raises(ConfigurationError, match=f"{other.name}.*fake-64"):
        await make(FakeEmbedder()).retrieve(query="Where in Graz?")


async def test_a_run_reports_another_model_and_goes_by_words(make, events, other):
    await fill(make(FakeEmbedder()))
    manager = make(other)
    state = AgentState(messages=(Message.user("Where is my flat in Graz?"),))
    started = await manager.on_session_start(state)
    assert "Lives in Graz" in started.messages[0].content
    [failed] = events.of("memory.search_failed")
    assert "reembed" in str(failed.error)
    assert "memory.retrieve_failed" not in events.names


async def test_what_a_run_says_is_kept_under_another_model(make, searching, scripted, other):
    await fill(make(FakeEmbedder()))
    pet = Memory("user", "pet", "Has a dog")
    manager = make(other, extract_fn=scripted([pet]))
    await manager.on_session_end(AgentState(messages=(Message.user("I have got a dog"),)))
    item = await searching.get_item(CURRENT, "user:pet")
    assert mark_of(item.metadata).model == other.name
    report = await reembed(searching, CURRENT, other)
    assert (report.embedded, report.current) == (3, 1)
    assert (await manager.retrieve(1, "Any dog?"))[0].key == "pet"


async def test_the_past_of_a_memory_is_searched_after_a_change_of_model(make, searching, other):
    first = make(FakeEmbedder())
    await fill(first)
    await first.save(Memory("user", "city", "Lives in Linz"))
    await reembed(searching, ("locus_memory",), other, recursive=True)
    [item] = await searching.search(CURRENT, "Graz")
    assert item.value["content"] == "Lives in Linz"
    manager = make(other)
    assert (await manager.undo("city")).content == "Lives in Graz"
    assert (await manager.retrieve(1, "Graz"))[0].content == "Lives in Graz"


async def test_an_encrypted_memory_is_embedded_anew_and_stays_secret(make, searching, clock, other):
    store = EncryptingStore(searching, {"k": b"k" * 16}, active="k", clock=clock)
    await fill(make(FakeEmbedder(), store))

    async def assert_secret():
        assert "Graz" not in repr(await searching.scan(CURRENT))

    await assert_secret()
    with pytest.raises(ConfigurationError, match=other.name):
        await make(other, store).retrieve(query="Where in Graz?")
    await reembed(store, CURRENT, other, text_of=lambda value: value["content"])
    await assert_secret()
    assert (await make(other, store).retrieve(1, "Where in Graz?"))[0].key == "city"


async def test_a_vector_that_the_store_cannot_hold_costs_no_memory(make, clock, events):
    store = InMemoryStore(embedding_dimension=64, clock=clock)
    manager = make(FakeEmbedder(32), store)
    await fill(manager)
    assert "memory.embed_failed" in events.names
    assert (await manager.retrieve(1, "Graz"))[0].key == "city"
