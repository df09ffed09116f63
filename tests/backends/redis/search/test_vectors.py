"""Vector search: nothing is lost to filters, expiry or the graph, with vector sets or without."""

from __future__ import annotations

import numpy as np
import pytest

from locus_memory.backends.redis.search import vectors as vectors_module
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import InvalidEmbeddingError
from locus_memory.store.item import Put
from locus_memory.testing.fakes import FakeClock

NS = ("vectors",)
DIMENSION = 32


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=["redis_server", "valkey_server"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
async def store(server, prefix, clock):
    async with RedisStore(server.url, key_prefix=prefix, clock=clock) as opened:
        yield opened


@pytest.fixture
def client(raw, server):
    return raw(server)


@pytest.fixture
def graph_only(monkeypatch):
    """Let the graph answer for small sets too, as it does for large ones."""
    monkeypatch.setattr(vectors_module, "_EXACT", 0)
    monkeypatch.setattr(vectors_module, "_FIRST", 16)


def clustered(count, seed):
    numbers = np.random.default_rng(seed)
    centres = numbers.normal(size=(12, DIMENSION))
    points = centres[numbers.integers(12, size=count)]
    return points + 0.5 * numbers.normal(size=(count, DIMENSION))


async def fill(store, namespace, points, **options):
    await store.put_batch(
        [
            Put(
                namespace=namespace,
                key=f"{n}",
                value=n,
                metadata={"odd": n % 2 == 1, "rare": n % 97 == 5},
                embedding=point.tolist(),
                text="",
                **options,
            )
            for n, point in enumerate(points)
        ]
    )


def exact(points, query, wanted, limit=10):
    chosen = np.flatnonzero(wanted)
    cosines = points[chosen] @ query / np.linalg.norm(points[chosen], axis=1)
    return {f"{n}" for n in chosen[np.argsort(-cosines)[:limit]]}


@pytest.mark.slow
@pytest.mark.parametrize("condition", [None, {"odd": True}, {"rare": True}], ids=str)
async def test_recall_of_the_graph_in_each_namespace(store, graph_only, condition):
    for place, count in enumerate((200, 1500)):
        points = clustered(count, seed=place)
        await fill(store, (*NS, f"{place}"), points)
        numbers = np.arange(count)
        wanted = {None: numbers >= 0, "odd": numbers % 2 == 1, "rare": numbers % 97 == 5}
        mask = wanted[next(iter(condition or [None]))]
        found = total = 0
        for query in clustered(20, seed=9):
            hits = await store.search_by_embedding(
                (*NS, f"{place}"), query.tolist(), 10, metadata_filter=condition
            )
            best = exact(points, query, mask)
            assert len(hits) == len(best)
            assert [hit.distance for hit in hits] == sorted(hit.distance for hit in hits)
            found += len(best & {hit.item.key for hit in hits})
            total += len(best)
        assert found / total >= 0.95


async def test_the_best_of_several_namespaces(store, graph_only):
    points = clustered(600, seed=1)
    for part in range(3):
        await fill(store, (*NS, f"{part}"), points[part::3])
    query = clustered(1, seed=2)[0]
    hits = await store.search_by_embedding(
        NS, query.tolist(), 10, metadata_filter={"rare": True}, recursive=True
    )
    rare = [n for n in range(200) if n % 97 == 5]
    cosines = {
        (f"{part}", f"{n}"): points[3 * n + part] @ query / np.linalg.norm(points[3 * n + part])
        for part in range(3)
        for n in rare
    }
    wanted = sorted(cosines, key=cosines.get, reverse=True)[:10]
    assert [(hit.item.namespace[-1], hit.item.key) for hit in hits] == wanted


async def test_scores_are_those_of_the_whole_numbers(store):
    points = clustered(50, seed=3)
    await fill(store, NS, points)
    query = clustered(1, seed=4)[0]
    for hit in await store.search_by_embedding(NS, query.tolist(), 50):
        point = points[hit.item.value]
        cosine = point @ query / np.linalg.norm(point) / np.linalg.norm(query)
        assert 1.0 - hit.distance == pytest.approx(cosine, abs=1e-6)


@pytest.mark.parametrize("server_side", [False, True])
@pytest.mark.usefixtures("graph_only")
async def test_what_is_gone_takes_nobodys_place(store, client, prefix, clock, *, server_side):
    points = clustered(300, seed=5)
    await fill(store, NS, points[:250], ttl=10)
    for n in range(250, 300):
        await store.put_with_embedding(NS, f"{n}", n, points[n].tolist())
    if server_side:
        for name in client.keys(f"{prefix}store:*:i:*"):
            if client.pttl(name) > 0:
                client.pexpire(name, 0)
    else:
        clock.advance(10)
    query = points[3]
    hits = await store.search_by_embedding(NS, query.tolist(), 10)
    assert {hit.item.key for hit in hits} == exact(points, query, np.arange(300) >= 250)
    assert len(await store.search_by_embedding(NS, query.tolist(), 99)) == 50
    (vectors,) = client.keys(f"{prefix}store:*:v*")
    how = "HLEN" if client.type(vectors) == b"hash" else "VCARD"
    assert client.execute_command(how, vectors) == 50


async def test_any_key_is_an_element(store):
    for key in ("\x00", "a b", "é🦊", "k" * 5000, "1", "NOQUANT"):
        await store.put_with_embedding(NS, key, key, [0.6, 0.8])
        assert await store.get_embedding(NS, key) == pytest.approx([0.6, 0.8])
    assert len(await store.search_by_embedding(NS, [1.0, 0.0])) == 6


async def test_dimensions_live_side_by_side(store):
    await store.put_with_embedding(NS, "a", 1, [1.0, 0.0])
    await store.put_with_embedding(NS, "b", 1, [1.0, 0.0, 0.0])
    for vector in ([1.0, 0.0], [1.0, 0.0, 0.0]):
        assert len(await store.search_by_embedding(NS, vector)) == 1
    await store.put_with_embedding(NS, "a", 2, [0.0, 0.0, 1.0])
    assert len(await store.search_by_embedding(NS, [1.0, 0.0, 0.0])) == 2
    with pytest.raises(InvalidEmbeddingError, match="2 dimensions, the stored embeddings have 3"):
        await store.search_by_embedding(NS, [1.0, 0.0])


async def test_a_fixed_dimension(redis_server, prefix):
    async with RedisStore(redis_server.url, key_prefix=prefix, embedding_dimension=2) as store:
        with pytest.raises(InvalidEmbeddingError, match="the store holds 2"):
            await store.put_with_embedding(NS, "k", 1, [1.0])
        assert await store.search_by_embedding(NS, [1.0, 0.0]) == []


async def test_vectors_stay_where_they_are_on_a_newer_server(
    valkey_server, redis_server, raw, prefix
):
    """Those of a hash are found next to those of a vector set, and changed and deleted there."""
    old, new = raw(valkey_server), raw(redis_server)
    async with RedisStore(valkey_server.url, key_prefix=prefix) as store:
        await store.put_with_embedding((*NS, "old"), "a", 1, [1.0, 0.0])
        await store.put_with_embedding((*NS, "old"), "b", 2, [0.6, 0.8])
    for name in old.keys(f"{prefix}*"):
        kind, pairs = old.type(name), None
        if kind == b"hash":
            new.hset(name, mapping=old.hgetall(name))
        else:
            pairs = dict(old.zrange(name, 0, -1, withscores=True))
            new.zadd(name, pairs)
    async with RedisStore(redis_server.url, key_prefix=prefix) as store:
        await store.put_with_embedding((*NS, "new"), "c", 3, [0.8, 0.6])
        await store.put_with_embedding((*NS, "old"), "d", 4, [0.0, 1.0])
        hits = await store.search_by_embedding(NS, [1.0, 0.0], recursive=True)
        assert [hit.item.key for hit in hits] == ["a", "c", "b", "d"]
        hits = await store.search_by_embedding(NS, [1.0, 0.0], 1, recursive=True, offset=2)
        assert [hit.item.key for hit in hits] == ["b"]
        await store.put((*NS, "old"), "a", 1)
        await store.delete((*NS, "old"), "b")
        hits = await store.search_by_embedding(NS, [1.0, 0.0], recursive=True, threshold=0.1)
        assert [hit.item.key for hit in hits] == ["c"]
        assert await store.clear_namespace(NS, recursive=True) == 3
    assert new.keys(f"{prefix}*") == []


async def test_thousands_of_vectors_of_a_hash(valkey_server, prefix, monkeypatch):
    monkeypatch.setattr(vectors_module, "_READ", 20)
    points = clustered(500, seed=8)
    async with RedisStore(valkey_server.url, key_prefix=prefix) as store:
        await fill(store, NS, points)
        for query in clustered(5, seed=9):
            for condition in (None, {"odd": True}):
                hits = await store.search_by_embedding(
                    NS, query.tolist(), 10, metadata_filter=condition
                )
                wanted = np.arange(500) % 2 >= (condition is not None)
                assert {hit.item.key for hit in hits} == exact(points, query, wanted)
