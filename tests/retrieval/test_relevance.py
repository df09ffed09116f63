from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.embedders import register_scale
from locus_memory.retrieval.embedders.marks import embedded_put
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.options import SearchOptions
from locus_memory.store.item import Put
from locus_memory.testing import FakeEmbedder

PLACE = ("notes",)
TEXTS = ["I adopted a grey cat", "How lovely", "The ferry was late", "We ate soup by the harbour"]
WORDS = ["grey", "cats", "ferry", "soup", "harbour", "late", "Ana", "café", "bridge"]

sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request):
    async with {"memory": InMemoryStore, "sqlite": lambda: SQLiteStore(":memory:")}[
        request.param
    ]() as made:
        yield made


async def fill(store, texts=TEXTS, embedder=None, place=PLACE):
    puts = [
        Put(namespace=place, key=f"{number:03}", value={"text": text})
        for number, text in enumerate(texts)
    ]
    if embedder is not None:
        vectors = await embedder.embed(texts)
        puts = [
            embedded_put(put, vector, embedder) for put, vector in zip(puts, vectors, strict=True)
        ]
    await store.put_batch(puts)


def relevances(result):
    return {hit.item.key: hit.relevance for hit in result}


@pytest.mark.parametrize("has_vectors", [False, True])
async def test_a_perfect_hit_alone_is_1_and_an_unrelated_query_finds_nothing(store, has_vectors):
    embedder = FakeEmbedder(256) if has_vectors else None
    await fill(store, ["I adopted a grey cat"], embedder)
    search = HybridSearch(store, embedder)
    (hit,) = await search.search(PLACE, "I adopted a grey cat")
    assert hit.relevance == pytest.approx(1, abs=1e-6)
    unrelated = await search.search(PLACE, "How do transistors amplify?")
    assert all(hit.relevance < 0.1 for hit in unrelated)
    assert len(await search.search(PLACE, "How do transistors amplify?", min_score=0.1)) == 0


@pytest.mark.parametrize("has_vectors", [False, True])
async def test_the_relevance_hardly_depends_on_the_size(store, has_vectors):
    embedder = FakeEmbedder(256) if has_vectors else None
    found = []
    for many in (0, 10, 300):
        place = ("sizes", str(many))
        texts = ["I adopted a grey cat", *(f"Entry {number}" for number in range(many))]
        await fill(store, texts, embedder, place)
        result = await HybridSearch(store, embedder).search(place, "a grey cat and a red dog")
        found.append(result[0].relevance)
    assert max(found) - min(found) < 0.1
    assert min(found) > 0.4


async def test_min_score_leaves_out_and_keeps_the_order(store):
    embedder = FakeEmbedder()
    await fill(store, embedder=embedder)
    search = HybridSearch(store, embedder)
    every = await search.search(PLACE, "was the grey cat on the ferry?")
    assert len(every) == 4
    for least in (0, 0.1, 0.3, 0.5, 0.9, 1):
        kept = await search.search(PLACE, "was the grey cat on the ferry?", min_score=least)
        expected = [hit.item.key for hit in every if hit.relevance >= least]
        assert [hit.item.key for hit in kept] == expected
    assert [hit.score for hit in every] == sorted((hit.score for hit in every), reverse=True)


@pytest.mark.parametrize("least", [-1, 1.5, "0.5", True, float("nan")])
async def test_a_bad_min_score_is_refused(store, least):
    with pytest.raises(InvalidArgumentError, match="min_score"):
        await HybridSearch(store).search(PLACE, "cat", min_score=least)


@pytest.mark.parametrize("has_vectors", [False, True])
async def test_pages_with_a_min_score_are_those_of_one_long_page(store, has_vectors):
    embedder = FakeEmbedder() if has_vectors else None
    texts = [f"grey {'cat ' * (n % 3 == 0)}{'ferry ' * (n % 5 == 0)}{n}" for n in range(90)]
    await fill(store, texts, embedder)
    search = HybridSearch(store, embedder, options=SearchOptions(depth=10))
    query, options = "the grey cat of the ferry", {"min_score": 0.5}
    whole = [hit.item.key for hit in await search.search(PLACE, query, 90, **options)]
    paged = []
    for offset in range(0, 91, 7):
        page = await search.search(PLACE, query, 7, offset=offset, **options)
        paged += [hit.item.key for hit in page]
    assert paged == whole
    assert 10 < len(whole) < 90


async def test_a_successor_is_as_relevant_as_the_item_it_supersedes(store):
    await store.put(PLACE, "1", {"text": "Ada lives in Vienna, near the river."})
    await store.put(PLACE, "2", {"text": "Ada lives in Graz."}, {"supersedes": "1"})
    query = "Does Ada live in Vienna by the river?"
    found = await HybridSearch(store).search(PLACE, query, min_score=0.9)
    assert [hit.item.key for hit in found] == ["2", "1"]


class Reranker:
    def __init__(self, name, scores):
        self.name = name
        self.scores = scores

    async def rerank(self, query, texts):
        return [self.scores[text] for text in texts]


async def test_a_measured_reranker_decides_the_relevance(store):
    await fill(store, ["grey cat", "grey ferry"])
    scores = {"grey cat": 0.0, "grey ferry": 5.0}
    unknown = HybridSearch(store, reranker=Reranker("unknown", scores))
    before = relevances(await HybridSearch(store).search(PLACE, "grey cat"))
    assert relevances(await unknown.search(PLACE, "grey cat")) == before
    restore = register_scale("measured", unrelated=0, paraphrase=10)
    try:
        search = HybridSearch(store, reranker=Reranker("measured", scores))
        assert relevances(await search.search(PLACE, "grey cat")) == {"000": 0, "001": 0.5}
        assert len(await search.search(PLACE, "grey cat", min_score=0.5)) == 1
        # Whatever the page, the reranker's scores decide.
        assert len(await search.search(PLACE, "grey cat", offset=60, min_score=0.5)) == 0
    finally:
        restore()


async def test_an_embedder_that_fails_leaves_the_words(store):
    class Broken(FakeEmbedder):
        async def embed(self, texts, *, kind="document"):
            if kind == "query":
                raise OSError("no network")
            return await super().embed(texts)

    embedder = Broken()
    await fill(store, embedder=embedder)
    result = await HybridSearch(store, embedder).search(PLACE, "grey cat")
    assert (result.mode, result[0].relevance) == ("text", 1)


async def test_an_item_without_a_vector_is_compared_by_its_words(store):
    embedder = FakeEmbedder()
    await fill(store, embedder=embedder)
    await store.put(PLACE, "plain", {"text": "A red dog"})
    result = await HybridSearch(store, embedder).search(PLACE, "red dog")
    assert relevances(result)["plain"] == pytest.approx(1)
    assert not any(hit.by_chance for hit in result if hit.item.key == "plain")


class Placed(FakeEmbedder):
    """A text about the sky has one cosine to each question, and any other text another one."""

    def __init__(self, sky, other):
        super().__init__(2)
        self.sky, self.other = sky, other

    async def embed(self, texts, *, kind="document"):
        cosines = [self.sky if "sky" in each else self.other for each in texts]
        if kind == "query":
            cosines = [1.0] * len(texts)
        return [[cosine, (1 - cosine**2) ** 0.5] for cosine in cosines]


@pytest.mark.parametrize(
    ("sky", "other", "expected"),
    [(0.45, 0.45, True), (0.45, 0.35, False), (0.6, 0.6, False), (0.45, 0.7, True)],
)
async def test_words_are_by_chance_if_the_vector_is_neither_near_nor_apart(
    store, sky, other, expected
):
    texts = ["The sky is blue", *[f"Note {number}" for number in range(30)]]
    embedder = Placed(sky, other)
    await fill(store, texts, embedder)

    async def by_chance(*given, **options):
        search = HybridSearch(store, *given, **options)
        best = (await search.search(PLACE, "Why is the sky blue?", 40))[0]
        assert best.item.key == "000"
        return best.by_chance

    assert await by_chance(embedder) is expected
    assert not await by_chance()
    reranker = Reranker("unknown", dict.fromkeys(texts, 0.0))
    assert not await by_chance(embedder, reranker=reranker)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(sentences, min_size=1, max_size=25), sentences, st.booleans())
def test_memory_and_sqlite_agree(texts, query, has_vectors):
    async def found(made):
        embedder = FakeEmbedder() if has_vectors else None
        async with made as store:
            await fill(store, texts, embedder)
            return relevances(await HybridSearch(store, embedder).search(PLACE, query, 50))

    async def both():
        return await found(InMemoryStore()), await found(SQLiteStore(":memory:"))

    one, other = asyncio.run(both())
    assert one == pytest.approx(other, abs=1e-5)
    assert all(0 <= each <= 1 for each in one.values())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(sentences, min_size=1, max_size=25), sentences, st.data())
def test_one_more_word_of_the_query_never_lowers_the_relevance(texts, query, data):
    place = data.draw(st.integers(0, len(texts) - 1))
    word = data.draw(st.sampled_from(query.split()))

    async def relevance(changed):
        async with InMemoryStore() as store:
            await fill(store, changed)
            found = relevances(await HybridSearch(store).search(PLACE, query, 50))
            return found.get(f"{place:03}", 0.0)

    before = asyncio.run(relevance(texts))
    texts[place] += f" {word}"
    # The number of candidates changes only if it was none of them before.
    assert asyncio.run(relevance(texts)) >= before - 1e-9
