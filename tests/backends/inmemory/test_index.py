from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.backends.inmemory.index import Expiry, TextIndex, rank
from locus_memory.errors import VersionConflictError
from locus_memory.store.item import Put

documents = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.sampled_from(["fox", "dog", "owl"]), max_size=6)
)


def built(texts):
    index = TextIndex()
    for key, words in texts.items():
        index.add(key, Counter(words))
    return index


def bm25(texts, query):
    """Return the scores as the formula is printed, with k1 = 1.2 and b = 0.75."""
    mean = sum(map(len, texts.values())) / max(len(texts), 1)
    scores = {}
    for key, words in texts.items():
        for word in set(query) & set(words):
            having = sum(word in others for others in texts.values())
            weight = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            count = words.count(word)
            saturated = count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(words) / mean))
            scores[key] = scores.get(key, 0.0) + weight * saturated
    return scores


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(documents)
def test_scores_are_those_of_the_formula(texts):
    [scores] = rank([built(texts)], ["fox", "owl", "fox"])
    assert scores == pytest.approx(bm25(texts, ["fox", "owl"]))


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(documents, documents)
def test_several_indexes_score_as_one(texts, others):
    apart = rank([built(texts), built(others)], ["fox", "dog"])
    together = {(0, key): words for key, words in texts.items()}
    together |= {(1, key): words for key, words in others.items()}
    found = {(n, key): score for n, scores in enumerate(apart) for key, score in scores.items()}
    assert found == pytest.approx(bm25(together, ["fox", "dog"]))


def test_moments_that_were_replaced_are_bounded():
    expiry = Expiry()
    for n in range(10_000):
        expiry.set("k", 1e9 + n)
    assert len(expiry._heap) < 200
    expiry.set("soon", 1.0)
    assert list(expiry.due(1.0)) == ["soon"]
    assert list(expiry.due(2e9)) == ["k"]
    assert list(expiry.due(2e9)) == []


async def test_what_a_conflict_undoes_keeps_its_place_among_the_newest():
    async with InMemoryStore() as store:
        for key in "abc":
            await store.put(("n",), key, key)
        again = Put(namespace=("n",), key="a", value="new")
        with pytest.raises(VersionConflictError):
            await store.put_batch([again, Put(namespace=("n",), key="z", value=1, if_version=9)])
        assert [item.value for item in await store.search(("n",), None)] == ["c", "b", "a"]


async def test_pages_of_many_hits_are_in_order():
    async with InMemoryStore() as store:
        await store.put_batch(
            Put(
                namespace=("n", f"{n % 3}"),
                key=f"{n}",
                value="tea " * (n % 7 + 1),
                embedding=[1.0, n % 50],
            )
            for n in range(700)
        )
        where = {"recursive": True, "offset": 0}
        for search in (
            lambda limit, **more: store.search(("n",), "tea", limit, **more),
            lambda limit, **more: store.search_by_embedding(("n",), [1.0, 0.0], limit, **more),
        ):
            every = await search(700, **where)
            parts = [await search(90, recursive=True, offset=start) for start in range(0, 700, 90)]
            assert [each for part in parts for each in part] == every
            scores = [each.score for each in every]
            assert scores == sorted(scores, reverse=True)
            assert len(every) == 700
