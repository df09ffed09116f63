"""Text search by postings finds what FTS5 finds in any language, of any version's items."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.sqlite.search import caches
from locus_memory.backends.sqlite.search.postings import PostedSearch
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.store import text as texts
from locus_memory.testing.fakes import FakeClock

_WORDS = """
running boats naïve café 2023 42nd 😀 x_y the and
ich die Kinder spielen Häuser und nicht Straße
我喜欢喝茶 东京 上海的天气 茶
東京で寿司 食べました ラーメン 京都
मैं दिल्ली में रहता हूँ चाय
أنا أسكن في القاهرة الشاي
Я живу в Москве книги
"""
WORDS = _WORDS.split()
LARGE, BELOW = ("n",), ("n", "below")
_HALF = 0.45
PLACES = (
    {},
    {"recursive": True},
    {"recursive": True, "filter": {"even": True}},
    {"recursive": True, "offset": 3},
)


def as_before(patch):
    """Index items as before words had variants."""
    patch.setattr(texts, "pairs", lambda run: f" {' '.join(run)} ")
    patch.setattr(texts, "variants", lambda *_: [])


async def fill(store, clock, chance, common):
    """Put items in both ways; some change, expire or are deleted."""
    for is_old in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if is_old:
                as_before(patch)
            for _ in range(60):
                space, key = chance.choice((LARGE, LARGE, BELOW)), f"{chance.randint(0, 90)}"
                chosen = [word for word in common if chance.random() < _HALF]
                chosen += chance.choices(WORDS, k=chance.randint(0, 5))
                chance.shuffle(chosen)
                ttl = chance.choice((None, None, None, 5.0))
                value = {"even": int(key) % 2 == 0, "text": " ".join(chosen)}
                await store.put(space, key, value, metadata=value, ttl=ttl)
    clock.advance(6)
    for number in range(0, 90, 7):
        await store.delete(LARGE, f"{number}")


async def found_by(store, query, capacity, where):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(caches, "_UNCOUNTED", 0)
        patch.setattr(caches, "_MANY", -1)
        used = vars(store).setdefault("posted", PostedSearch(capacity))
        store._caches.last.posted = used if capacity else None
        hits = await store.search(LARGE, query, 4, **where)
        return [(hit.key, hit.version, pytest.approx(hit.score, rel=1e-9)) for hit in hits]


async def test_words_of_many_deleted_items_weigh_as_if_these_had_never_been():
    """Also where a search before has counted them."""
    async with SQLiteStore(":memory:") as store:
        texts = [f"{'boat' if n % 2 else 'keel'} sail" for n in range(400)]
        texts += ["boat tide gale", "tide gale"] * 9
        await store.put_batch([(LARGE, f"{n}", text) for n, text in enumerate(texts)])
        await found_by(store, "boat tide gale", 2**20, {})
        for n in range(1, 400, 2):
            await store.delete(LARGE, f"{n}")
        found = await found_by(store, "boat tide gale", 2**20, {})
        assert found == await found_by(store, "boat tide gale", 0, {})
        assert {int(key) % 2 for key, _, _ in found} == {0}


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    st.randoms(use_true_random=False),
    st.lists(st.sampled_from(WORDS), min_size=4, max_size=7, unique=True),
)
def test_the_hits_are_those_of_fts5_in_the_same_order(chance, words):
    async def run():
        clock = FakeClock()
        async with SQLiteStore(":memory:", clock=clock) as store:
            await fill(store, clock, chance, words[:2])
            for where in PLACES:
                found = await found_by(store, " ".join(words), 2**20, where)
                assert found == await found_by(store, " ".join(words), 0, where)

    asyncio.run(run())
