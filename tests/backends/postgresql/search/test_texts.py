"""Words as `tsvector`s, and the ranking."""

from __future__ import annotations

import asyncio
import math
import random

import asyncpg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from locus_memory.backends.postgresql.search import texts
from locus_memory.backends.postgresql.search.words import any_of, index_words, query_stems
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.store.item import Put
from locus_memory.store.text import tokens
from locus_memory.testing.fakes import FakeClock

NS = ("texts",)
WORDS = ["boat", "keel", "sail", "mast", "harbour", "tide", "anchor", "rope"]


@pytest.fixture
async def store(url, schema):
    async with PostgreSQLStore(url, schema=schema) as store:
        yield store


@pytest.fixture(scope="module")
def ask(postgresql_server):
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(postgresql_server.url))
        yield lambda statement, *values: runner.run(connection.fetchval(statement, *values))
        runner.run(connection.close())


def keys(found):
    return [item.key for item in found]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.text() | st.lists(st.sampled_from(["a", "b", "é", "東京", "x" * 700])).map(" ".join))
@example("a" * 700 + " b" * 300)
@example("'quoted' back\\slash a:b & c | !d <-> (e) :* \x00")
def test_any_text_is_a_tsvector_that_each_of_its_words_finds(ask, text):
    literal, length = index_words(text, None)
    found = tokens(text.replace("\x00", " "))
    assert length == len(found)
    assert ask("SELECT length($1::text::tsvector)", literal) == len({w[:500] for w in found})
    for word in query_stems(text):
        one = any_of([word])
        count = ask(
            "SELECT ts_rank_cd('{1,1,1,1}', $1::text::tsvector, $2::text::tsquery)", literal, one
        )
        assert count == min(255, sum(each[:500] == word for each in found))


@pytest.mark.slow
async def test_whatever_a_text_holds_it_can_be_put(store):
    huge = " ".join(f"{n:x}é" for n in range(150_000))
    await store.put(NS, "huge", {"text": huge, "more": "walrus"}, text=f"walrus {huge}")
    await store.put(NS, "long", "a" * 100_000 + " walrus")
    assert sorted(keys(await store.search(NS, "walrus"))) == ["huge", "long"]
    assert keys(await store.search(NS, "a" * 100_000)) == ["long"]
    words = " ".join(f"nothing{n}" for n in range(1000))
    assert keys(await store.search(NS, f"{words[:1500]} walrus", 1)) == ["long"]


def bm25(documents, query):
    """Return the score of each document, by the formula of `search_text`."""
    split = [tokens(document) for document in documents]
    average = sum(map(len, split)) / len(split)
    rarities = {}
    for word in query_stems(query):
        holding = sum(word in each for each in split)
        rarities[word] = math.log(1 + (len(split) - holding + 0.5) / (holding + 0.5))
    scores = []
    for words in split:
        score = 0.0
        for word, rarity in rarities.items():
            times = words.count(word)
            share = 1.2 * (1 - 0.75 + 0.75 * len(words) / average)
            score += rarity * times * 2.2 / (times + share)
        scores.append(score)
    return scores


@pytest.mark.slow
@pytest.mark.parametrize("size", [40, 2500])
async def test_scores_are_those_of_the_formula(store, size):
    dice = random.Random(3)
    documents = [" ".join(dice.choices(WORDS, k=dice.randint(1, 30))) for _ in range(size)]
    await store.put_batch([(NS, f"{n}", text) for n, text in enumerate(documents)])
    await store.put_batch([(("other",), f"{n}", "boat") for n in range(50)])
    await store.put(NS, "silent", {"n": 1})
    for query in ("boat", "keel mast", "harbour tide rope"):
        expected = bm25(documents, query)
        found = await store.search(NS, query, size)
        assert len(found) == sum(score > 0 for score in expected)
        for item in found:
            assert item.score == pytest.approx(expected[int(item.key)])
        order = [(item.score, int(item.key)) for item in found]
        assert order == sorted(order, reverse=True)


@pytest.mark.slow
async def test_the_ranking_is_much_like_that_of_sqlite(store):
    dice = random.Random(5)
    names = [
        f"{a}{b}" for a in ("tea", "sun", "rain", "book") for b in ("pot", "day", "coat", "shop")
    ]
    written = [
        " ".join(dice.choices([*names, *WORDS, "day", "rain"], k=dice.randint(4, 40)))
        for _ in range(300)
    ]
    async with SQLiteStore(":memory:") as other:
        for each in (store, other):
            await each.put_batch([(NS, f"{n}", text) for n, text in enumerate(written)])
        shared = 0
        for _ in range(50):
            query = " ".join(dice.sample(names, 2))
            found = [{i.key for i in await each.search(NS, query, 5)} for each in (store, other)]
            shared += len(found[0] & found[1])
    assert shared / (5 * 50) > 0.85


@pytest.mark.parametrize("large", ["true", "false"])
@pytest.mark.parametrize("query", ["boat", "keel or mast", "harbour tide rope"])
async def test_both_ways_to_find_candidates_find_the_same(store, monkeypatch, large, query):
    dice = random.Random(3)
    await store.put_batch(
        [
            ((name,), f"{n}", " ".join(dice.choices(WORDS, k=6)), {"even": n % 2 == 0})
            for name, size in (("large", 300), ("small", 9))
            for n in range(size)
        ]
    )
    for name in ("large", "small"):
        expected = await store.search((name,), query, 50, filter={"even": True})
        below = await store.search((name,), query, 50, filter={"even": True}, recursive=True)
        with monkeypatch.context() as patch:
            patch.setattr("locus_memory.backends.postgresql.search.texts._IS_LARGE", large)
            found = await store.search((name,), query, 50, filter={"even": True})
        assert found
        assert found == expected == below


@pytest.fixture(scope="module")
def corpus(postgresql_server):
    """A store with texts that repeat words, some of them about to expire, and its event loop."""
    dice, clock = random.Random(11), FakeClock()
    common = [f"word{'x' * n}" for n in range(150)]
    weights = [1 / (n + 3) for n in range(len(common))]
    lengths = [*range(1, 13), 60, 300]
    with asyncio.Runner() as runner:
        store = PostgreSQLStore(postgresql_server.url, schema="t_texts_to_read", clock=clock)
        puts = [
            Put(
                namespace=(*NS, "below") if n % 3 else NS,
                key=f"{n}",
                value=" ".join(dice.choices(common, weights, k=dice.choice(lengths))),
                metadata={"n": n % 10},
                ttl=5 if n % 7 == 0 else None,
            )
            for n in range(1500)
        ]
        runner.run(store.put_batch(puts))
        clock.advance(6)
        yield runner, store, common
        runner.run(store.close())


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_page_of_bounded_work_is_that_of_all_matches(corpus, data):
    runner, store, common = corpus
    words = data.draw(
        st.lists(st.sampled_from(common), min_size=1, max_size=5) | st.just(common[:70])
    )
    limit, offset = data.draw(st.integers(1, 30)), data.draw(st.integers(0, 200))
    recursive, tried = data.draw(st.booleans()), data.draw(st.sampled_from([0, 3, 40, 500]))
    condition = data.draw(st.sampled_from([None, {"n": 3}, {"n": {"$gt": 4}}, {"n": 70}]))
    pages = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_TRIED", tried)
        for few in (10**9, -1):
            patch.setattr(texts, "_FEW", few)
            search = store.search(
                NS, " ".join(words), limit, filter=condition, offset=offset, recursive=recursive
            )
            pages.append(runner.run(search))
    assert pages[0] == pages[1]
    assert [item.score for item in pages[0]] == [item.score for item in pages[1]]


async def test_texts_of_one_length_that_repeat_other_words_are_all_found(store, monkeypatch):
    monkeypatch.setattr(texts, "_FEW", -1)
    written = ["boat keel sail mast", "boat keel sail sail", "boat sail sail sail"]
    await store.put_batch([(NS, f"{n}", written[n % 3]) for n in range(15)])
    for limit in (1, 6, 11, 15):
        found = await store.search(NS, "boat", limit)
        assert keys(found) == [f"{n}" for n in range(14, 14 - limit, -1)]
    await store.put(NS, "twice", "boat keel boat sail")
    assert keys(await store.search(NS, "boat", 2)) == ["twice", "14"]
