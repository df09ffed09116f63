from __future__ import annotations

import json
from dataclasses import replace

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation import evaluate, load_sample
from locus_memory.evaluation.run import NAMESPACE
from locus_memory.retrieval.options import SearchOptions
from locus_memory.testing import FakeEmbedder


@pytest.fixture
async def store():
    async with SQLiteStore(":memory:") as made:
        yield made


def figures(report):
    return replace(report, median_ms=0.0).to_dict()


@pytest.mark.slow
async def test_the_numbers_do_not_get_worse(store):
    report = await evaluate(load_sample(), store)
    assert report.block_recall >= 0.84
    assert report.block_tokens <= 650
    overall = report.overall
    assert overall.recall[10] >= 0.66
    assert overall.recall[50] >= 0.81
    assert overall.ndcg >= 0.46
    assert overall.evidence_recall[500] >= 0.76


@pytest.mark.slow
async def test_each_part_that_is_on_is_worth_it(store):
    whole = await evaluate(load_sample(), store)
    bare = SearchOptions(word_weight=0, neighbour_weight=0, speaker_boost=1, date_boost=1)
    assert whole.overall.ndcg > (await evaluate(load_sample(), store, options=bare)).overall.ndcg


@pytest.mark.slow
async def test_backends_agree(store):
    by_file = (await evaluate(load_sample(), store)).overall
    in_memory = (await evaluate(load_sample(), InMemoryStore())).overall
    # One question of 43 may differ: the scores of two engines are not the same to the digit.
    assert in_memory.recall[10] == pytest.approx(by_file.recall[10], abs=1 / 42)


@pytest.mark.slow
async def test_the_same_again_is_the_same(store):
    embedder = FakeEmbedder()
    first = await evaluate(load_sample(), store, embedder)
    assert first.mode == "hybrid"
    assert first.embedder == "fake-64"
    assert figures(await evaluate(load_sample(), store, embedder)) == figures(first)


async def test_nothing_is_left_behind_and_neighbours_are_untouched(store):
    await store.put(("mine",), "k", 1)
    await store.put((*NAMESPACE, "from before"), "k", 1)
    await evaluate(load_sample()[:1], store)
    assert await store.list_namespaces() == [("mine",)]


async def test_progress_goes_to_the_end(store):
    steps = []
    sample = load_sample()[:1]
    await evaluate(sample, store, on_progress=lambda done, total: steps.append((done, total)))
    total = len(sample[0].sessions) + len(sample[0].questions)
    assert steps == [(done, total) for done in range(1, total + 1)]


@pytest.mark.slow
async def test_a_report_is_json(store):
    report = await evaluate(load_sample(), store)
    document = json.loads(json.dumps(report.to_dict()))
    assert document["overall"]["questions"] == 43
    assert sum(each["questions"] for each in document["categories"].values()) == 43
    assert set(document["overall"]["evidence_recall"]) == {"250", "500", "1000", "2000", "4000"}


async def test_without_questions_there_is_nothing_to_measure(store):
    silent = [replace(each, questions=()) for each in load_sample()]
    with pytest.raises(InvalidArgumentError):
        await evaluate(silent, store)


@pytest.mark.slow
async def test_other_searches_are_beside_the_hybrid_one(store):
    report = await evaluate(load_sample(), store, FakeEmbedder())
    assert set(report.sides) == {"bm25", "cosine", "rrf", "text", "vector"}
    alone = await evaluate(load_sample(), store)
    assert report.sides["text"].ndcg == pytest.approx(alone.overall.ndcg)
    assert report.sides["vector"].ndcg != report.overall.ndcg
    assert set(alone.sides) == {"bm25"}
    assert alone.sides["bm25"] == report.sides["bm25"]
    best = max(report.sides.values(), key=lambda each: each.ndcg)
    assert report.sides[report.margin.best] == best
    assert report.margin.ndcg.mean == pytest.approx(report.overall.ndcg - best.ndcg)
    assert report.margin.recall.low <= report.margin.recall.mean <= report.margin.recall.high
    assert json.loads(json.dumps(report.to_dict()))["margin"]["best"] == report.margin.best


async def test_with_a_reranker_the_search_without_it_is_beside_it(store):
    class Backwards:
        name = "backwards"

        async def rerank(self, query, texts):
            return [float(place) for place in range(len(texts))]

    sample = load_sample()[:1]
    report = await evaluate(sample, store, reranker=Backwards())
    assert report.sides["first"] == (await evaluate(sample, store)).overall
