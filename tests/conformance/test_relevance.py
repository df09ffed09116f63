"""The relevance of a hit is the same on every backend."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.redis.store import RedisStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.turns import Turn, index_turns
from locus_memory.store.base import has_semantic_search
from locus_memory.testing import FakeEmbedder

PLACE = ("relevance",)
SAID = [
    "I adopted a grey cat called Figaro",
    "How lovely, is he shy?",
    "The ferry to Roscoff was late",
    "We ate soup by the harbour, and the cat of the café slept",
    "My sister moved to Trieste last year",
    *(f"Entry {number} of the log of the ferry" for number in range(40)),
]
QUERIES = [
    "Which cat did Ana adopt?",
    "was the ferry late at the harbour",
    "Where does my sister live?",
    "How do transistors amplify a signal?",
]


@pytest.fixture(params=["sqlite", "postgresql", "redis", "valkey"])
async def store(request, tmp_path, schema_of):
    kind = request.param
    if kind == "sqlite":
        made = SQLiteStore(tmp_path / "store.db")
    else:
        url = request.getfixturevalue(f"{kind}_server").url
        prefix = blake2b(bytes(tmp_path), digest_size=8).hexdigest()
        made = (
            PostgreSQLStore(url, schema=schema_of(tmp_path))
            if kind == "postgresql"
            else RedisStore(url, key_prefix=f"t{prefix}:")
        )
    async with made:
        yield made


async def relevances(store, embedder):
    turns = [Turn(text=text, speaker="Ana") for text in SAID]
    await store.put_batch(await index_turns(PLACE, turns, embedder, words=0))
    search = HybridSearch(store, embedder)
    return [
        {hit.item.key: hit.relevance for hit in await search.search(PLACE, query, 50)}
        for query in QUERIES
    ]


async def check_relevances(store, embedder=None):
    """Compare the relevances of all hits with those of the store in memory."""
    async with InMemoryStore() as plain:
        expected = await relevances(plain, embedder)
    found = await relevances(store, embedder)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-5)
    assert max(expected[0].values()) > 0.8
    assert all(0 <= each <= 1 for query in found for each in query.values())


async def test_the_relevance_by_words_is_that_of_the_store_in_memory(store):
    await check_relevances(store)


async def test_the_relevance_with_vectors_is_that_of_the_store_in_memory(store):
    if not await has_semantic_search(store):
        pytest.skip("this store has no vectors")
    await check_relevances(store, FakeEmbedder())
