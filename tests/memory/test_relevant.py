from __future__ import annotations

from pathlib import Path

import pytest

from locus_memory.errors import BackendUnavailableError, InvalidArgumentError, InvalidFilterError
from locus_memory.memory.blend import Blend
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.embedders.models.files import find_model
from locus_memory.retrieval.embedders.registry import get_embedder
from locus_memory.testing import FakeClock, FakeEmbedder

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
BLENDS = ["hybrid", "recency", "trust"]
DAY = 86_400


def fact(key, content, kind=MemoryType.USER, **metadata):
    return Memory(kind, key, content, metadata)


async def fill(manager, clock):
    await manager.save([fact("drink", "Likes green tea in the morning")])
    clock.advance(60 * DAY)
    await manager.save([fact("pet", "Has a grey cat called Figaro", importance=0.9)])
    await manager.save([fact("deadline", "The tea shop opens in May", MemoryType.PROJECT)])


async def keys(manager, *arguments, **options):
    return [memory.key for memory in await manager.retrieve(*arguments, **options)]


async def test_min_score_does_not_fill_up_with_the_newest(make, store, clock):
    manager = make()
    await fill(manager, clock)
    assert len(await keys(manager, "green tea")) == 3
    found = await keys(manager, "green tea", min_score=0.6)
    assert found == (["drink"] if store.capabilities.search else [])
    assert await keys(manager, "How do transistors amplify?", min_score=0.1) == []


@pytest.mark.parametrize("embedder", [None, FakeEmbedder()])
async def test_what_has_nothing_to_do_with_a_query_is_not_found(make, store, clock, embedder):
    """Neither by vectors, nor on a store without any search, where the newest are looked at."""
    manager = make(embedder=embedder)
    await fill(manager, clock)
    found = await manager.search("green tea")
    assert "Likes green tea in the morning" in [each.content for each in found]
    assert all(0.02 <= each.score <= 1 for each in found)
    assert not await manager.search("How do transistors amplify?")
    if store.capabilities.search and embedder is None:
        # By words alone, each has one of the query, here in its key.
        (found,) = await manager.search("deadline")
        assert found.content == "The tea shop opens in May"


@pytest.mark.parametrize("least", [-0.1, 2, "much", True])
async def test_a_bad_min_score_is_refused(make, least):
    with pytest.raises(InvalidArgumentError, match="min_score"):
        await make().retrieve("tea", min_score=least)


@pytest.mark.parametrize("query", ["tea", None])
async def test_only_memories_of_a_type(make, clock, query):
    manager = make()
    await fill(manager, clock)
    assert await keys(manager, query, type="project") == ["deadline"]
    assert set(await keys(manager, query, type=MemoryType.USER)) == {"drink", "pet"}
    assert await keys(manager, query, type="feedback") == []
    with pytest.raises(InvalidArgumentError, match="type"):
        await manager.retrieve(query, type="music")


@pytest.mark.parametrize("query", ["tea", None])
async def test_only_memories_that_match_a_filter(make, clock, query):
    manager = make()
    await fill(manager, clock)
    important = {"metadata.importance": {"$gte": 0.5}}
    assert await keys(manager, query, filter=important) == ["pet"]
    assert await keys(manager, query, filter=important, type="project") == []
    assert await keys(manager, query, filter={"key": "drink"}, limit=5) == ["drink"]
    for options in ({}, {"min_score": 0.5} if query else {}):
        with pytest.raises(InvalidFilterError):
            await manager.retrieve(query, filter={"a": {"$near": 1}}, **options)


async def test_a_memory_without_a_type_in_its_value_has_that_of_its_key(make, store):
    manager = make()
    await store.put((*manager.namespace, "current"), "user:pet", {"content": "Has a grey cat"})
    assert await keys(manager, type="user") == ["pet"]
    assert await keys(manager, type="project") == []


@pytest.mark.parametrize("blend", ["recency", "trust"])
async def test_a_blend_finds_what_is_relevant_and_no_more(make, store, clock, blend):
    manager = make(blend=blend, embedder=FakeEmbedder(256))
    await fill(manager, clock)
    found = await keys(manager, "green tea in the morning")
    able = store.capabilities.search or store.capabilities.semantic_search
    assert found == (["drink"] if able else [])
    assert await keys(manager, "How do transistors amplify?") == []
    # Without a query, the newest come first as ever.
    assert len(await keys(manager)) == 3


async def test_words_alone_need_one_in_common(make, store, clock):
    manager = make(blend="recency")
    await fill(manager, clock)
    found = await keys(manager, "Would you like a cup of tea before the football match begins?")
    assert set(found) == ({"drink", "deadline"} if store.capabilities.search else set())
    assert await keys(manager, "How do transistors amplify?") == []


async def test_of_equally_relevant_memories_the_newer_comes_first(make, store, clock):
    if not store.capabilities.search:
        pytest.skip("the store has no text search")
    for blend in ("recency", "trust"):
        manager = make(blend=blend)
        await manager.save([fact("b", "Likes tea with milk")])
        clock.advance(40 * DAY)
        await manager.save([fact("a", "Likes tea with lemon")])
        clock.advance(40 * DAY)
        assert await keys(manager, "tea") == ["a", "b"]


async def test_trust_decides_where_the_rest_is_equal(make, store, clock):
    if not store.capabilities.search:
        pytest.skip("the store has no text search")
    manager = make()
    await manager.save([fact("a", "Likes tea with milk"), fact("b", "Likes tea with lemon")])
    recall, scope = Recall(store, clock=clock), Scope(manager.namespace)
    for day, trusted in enumerate(("a", "b"), 1):
        moments = [f"2026-01-0{day}T0{hour}" for hour in range(day)]
        uses = {f"user:{trusted}": lambda _, vitals, moments=moments: used(vitals, moments)}
        await VitalsBook(store).change(scope, uses)
        found = await recall.find(scope, 5, "tea", blend=Blend(name="trust"))
        assert found[0].key == trusted


def used(vitals, moments):
    for thread, moment in enumerate(moments):
        vitals = vitals.used(moment, f"thread{thread}")
    return vitals


async def test_a_search_that_fails_leaves_nothing_to_compare(make, store, clock, events):
    class NoQuery(type(store)):
        async def search(self, namespace, query=None, limit=10, **options):
            if query is not None:
                raise BackendUnavailableError("no index")
            return await super().search(namespace, None, limit, **options)

    manager = make()
    await fill(manager, clock)
    store.__class__ = NoQuery
    assert await keys(manager, "tea", min_score=0.1) == []
    assert ("memory.search_failed" in events.names) is store.capabilities.search


def lines(name):
    return (BENCHMARKS / name).read_text(encoding="utf-8").splitlines()


@pytest.fixture
def bge():
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    if find_model("bge-small-en-v1.5") is None:
        pytest.skip("the model is not here: locus-memory models fetch local")
    return get_embedder("local")


@pytest.mark.parametrize("url", ["memory", "sqlite::memory:"])
async def test_with_bge_unrelated_queries_find_nothing(bge, url):
    facts = [line.split("\t") for line in lines("paraphrases.tsv")]
    clock = FakeClock()
    options = {"blend": "recency", "embedder": bge, "max_memories": 100, "clock": clock}
    async with LLMMemoryManager(url, **options) as manager:
        await manager.save([fact(f"f{n:02}", told) for n, (_, told) in enumerate(facts)])
        found = [await manager.retrieve(query) for query in lines("unrelated.txt")]
        assert len(found) == 200
        assert sum(not each for each in found) >= 190
        best = [await keys(manager, query, 1) for query, _ in facts]
        assert sum(each == [f"f{n:02}"] for n, each in enumerate(best)) >= 0.9 * len(facts)
