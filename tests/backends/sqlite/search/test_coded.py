"""Vector search by codes finds what the exact search finds."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.selection import Page
from locus_memory.backends.sqlite.connection import opening
from locus_memory.backends.sqlite.connection.problems import find_problems
from locus_memory.backends.sqlite.items import Scope
from locus_memory.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS
from locus_memory.backends.sqlite.search import code_blocks, code_cache, coded, codes
from locus_memory.backends.sqlite.search.vectors import VectorCache, VectorQuery, search_vectors
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import BackendCorruptError, BackendWriteError
from locus_memory.store.filters import parse_filter
from locus_memory.store.item import Put
from locus_memory.testing.fakes import FakeClock

NS, OTHER = ("n",), ("n", "below")
QUERY = [1.0, 0.3, -0.2]


def unit(rows):
    made = np.asarray(rows, np.float64)
    return (made / np.linalg.norm(made, axis=-1, keepdims=True)).astype("<f4")


@pytest.mark.parametrize("dimension", [1, 3, 64, 100, 384, 1536])
def test_estimates_are_as_near_as_they_say(dimension):
    chance = np.random.default_rng(dimension)
    rows, query = unit(chance.normal(size=(400, dimension))), unit(chance.normal(size=dimension))
    block = code_blocks.block_of(
        np.arange(400), 1, [each.tobytes() for each in codes.encode(rows)], dimension
    )
    target, places = codes.Target.of(query.tobytes()), np.arange(400)
    found = code_blocks.CodeRows((block,))
    sums, _ = found.by_signs(target, places)
    wrong = found.by_sizes(target, places, sums) - rows @ query
    spread = max(codes.error(dimension, 0.0), 0.002)
    assert np.abs(wrong.mean()) < spread
    if dimension >= 64:
        assert wrong.std() < 1.4 * spread
        distances = found.distances(target)
        assert distances[(rows @ query).argmax()] < np.median(distances)


def test_the_format_of_codes_never_changes():
    vector = unit(np.sin(np.arange(1.0, 101.0)))
    code = codes.code_of(vector.tobytes())
    expected = bytes.fromhex(CODE_OF_A_SINE)
    assert len(code) == len(expected) == codes.code_bytes(100)
    # Rounding differs from machine to machine, by a bit or two.
    assert sum((a ^ b).bit_count() for a, b in zip(code[:48], expected[:48], strict=True)) <= 2
    assert np.allclose(np.frombuffer(code[48:], "<f4"), np.frombuffer(expected[48:], "<f4"))


def clustered(count, dimension, seed):
    """Return vectors of topics of very different sizes, about a common direction."""
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(5).normal(size=(200, dimension))
    weights = 1 / (np.arange(200) + 1.0)
    topics = chance.choice(200, count, p=weights / weights.sum())
    noise = 0.6 * chance.normal(size=(count, dimension))
    return unit(1.5 * np.ones(dimension) + centres[topics] + noise)


def near_twins(count, dimension, seed):
    """Return vectors of which 20 each are nearly the same."""
    chance = np.random.default_rng(seed)
    bases = np.random.default_rng(6).normal(size=(count // 20, dimension))
    rows = bases[chance.integers(0, len(bases), count)]
    return unit(rows + 0.02 * chance.normal(size=rows.shape))


def sparse(count, dimension, seed):
    """Return vectors of few words each, none of them negative."""
    chance = np.random.default_rng(seed)
    rows = np.zeros((count, dimension))
    for _ in range(12):
        rows[np.arange(count), (chance.random(count) ** 2 * dimension).astype(int)] += 1
    return unit(rows)


@pytest.mark.slow
@pytest.mark.parametrize("made", [clustered, near_twins, sparse])
def test_recall(made):
    """Of 30,000 vectors, of data that are hard for codes."""
    rows, queries = made(30_000, 128, 1), made(40, 128, 2)
    ids = np.arange(1, len(rows) + 1)
    found = code_blocks.CodeRows()
    for start in range(0, len(rows), 4_000):
        part = slice(start, start + 4_000)
        made_codes = [each.tobytes() for each in codes.encode(rows[part])]
        found = found.extended(code_blocks.block_of(ids[part], 1, made_codes, 128))
    read = []

    def exact(wanted, _):
        chosen = np.array(wanted)
        read.append(len(chosen))
        return chosen, (rows[chosen - 1] @ query).astype(float)

    shares = []
    for query in queries:
        search = coded.CodedSearch(
            None,
            code_cache.Codes(found, {}),
            query.tobytes(),
            parse_filter(None),
            np.empty(0, np.int64),
            10,
        )
        best, cosines = search.best(exact)
        last = np.partition(rows @ query, -10)[-10]
        shares.append(min(10, int((cosines >= last - 1e-6).sum())) / 10)
        assert len(best) == len(cosines)
    assert np.mean(shares) >= 0.99
    assert sum(read) / len(queries) < 2_200


keys = st.sampled_from("abcdef")
spaces = st.sampled_from([NS, OTHER])
numbers = st.lists(st.sampled_from([0.0, 0.5, 1.0, -1.0]), min_size=3, max_size=3).filter(any)
steps = st.one_of(
    st.tuples(st.just("put"), spaces, keys, numbers | st.none(), st.none() | st.just(5.0)),
    st.tuples(st.just("delete"), spaces, keys),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 6.0])),
    st.tuples(st.just("clear"), spaces),
    st.tuples(st.just("conflict"), spaces, keys, numbers),
)


def only_codes(store):
    """Search by codes, however few vectors there are."""
    store._caches.last.vectors._exact = 0
    return store


async def take(store, clock, what, *given):
    if what == "put":
        namespace, key, vector, ttl = given
        value = {"even": len(key) % 2 == 0, "first": key < "c"}
        await store.put_batch(
            [Put(namespace=namespace, key=key, value=value, ttl=ttl, embedding=vector)]
        )
    elif what == "delete":
        await store.delete(*given)
    elif what == "clear":
        await store.clear_namespace(*given)
    elif what == "conflict":
        namespace, key, vector = given
        again = Put(namespace=namespace, key=key, value=1, embedding=vector)
        await store.put_batch([again, Put(namespace=NS, key="z", value=1, if_version=99)])
    else:
        clock.advance(*given)


def plain(hits):
    return [(hit.item.namespace, hit.item.key, hit.item.version, hit.score) for hit in hits]


async def agree(store, judge):
    for where in (
        {},
        {"recursive": True},
        {"recursive": True, "metadata_filter": {"first": True}, "offset": 1},
        {"metadata_filter": {"first": False}},
    ):
        found = await store.search_by_embedding(NS, QUERY, 3, **where)
        assert plain(found) == plain(await judge.search_by_embedding(NS, QUERY, 3, **where))


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), steps), max_size=30))
def test_any_sequence_of_changes_leaves_the_hits_of_the_exact_search(sequence):
    """By this connection or by another one."""

    async def run(path):
        clock = FakeClock()
        async with (
            SQLiteStore(path, clock=clock) as store,
            SQLiteStore(path, clock=clock) as other,
            SQLiteStore(path, clock=clock, vector_cache_bytes=0) as judge,
        ):
            only_codes(store)
            only_codes(other)
            for elsewhere, step in sequence:
                writer = other if elsewhere else store
                await asyncio.gather(take(writer, clock, *step), return_exceptions=True)
                await agree(store, judge)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "store.db"))


@pytest.fixture
async def store(tmp_path):
    async with SQLiteStore(tmp_path / "store.db") as store:
        yield only_codes(store)


async def test_an_older_snapshot_is_served_as_it_was(store, tmp_path):
    for n in range(6):
        await store.put_with_embedding(NS, f"{n}", {"n": n}, [1.0, n])
    cache = VectorCache(2**20)
    cache._exact = 0
    target, scope = unit([1.0, 0.0]).tobytes(), Scope.of(NS, 0.0, recursive=False)

    def search(connection, condition):
        query = VectorQuery(target, None, parse_filter(condition))
        return [hit.item.key for hit in search_vectors(connection, cache, scope, query, Page(9))]

    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(path)) as new:
        for connection in (old, new):
            opening.register_functions(connection)
        old.execute("BEGIN")
        for condition in (None, {"n": {"$lt": 100}}):
            assert search(old, condition) == ["0", "1", "2", "3", "4", "5"]
        await store.delete(NS, "2")
        await store.put_with_embedding(NS, "3", {"n": 3}, [1.0, 9.0])
        await store.put_with_embedding(NS, "new", {"n": 1}, [1.0, 0.5])
        for condition in (None, {"n": {"$lt": 100}}, {"n": {"$lt": 99}}):
            for _ in range(2):
                assert search(new, condition) == ["0", "new", "1", "4", "5", "3"]
                assert search(old, condition) == ["0", "1", "2", "3", "4", "5"]


async def test_a_filter_that_a_newer_snapshot_evaluated_hides_nothing_from_an_older_one(
    store, tmp_path
):
    """Few of many vectors are deleted, so that their codes stay in memory for a while."""
    puts = [Put(namespace=NS, key=f"{n:02}", value={"n": n}, embedding=[1, n]) for n in range(40)]
    await store.put_batch(puts)
    cache = VectorCache(2**20)
    cache._exact = 0
    target, scope = unit([1.0, 0.0]).tobytes(), Scope.of(NS, 0.0, recursive=False)

    def search(connection, condition):
        query = VectorQuery(target, None, parse_filter(condition))
        return [hit.item.key for hit in search_vectors(connection, cache, scope, query, Page(3))]

    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(path)) as new:
        for connection in (old, new):
            opening.register_functions(connection)
        old.execute("BEGIN")
        assert search(old, None) == ["00", "01", "02"]
        await store.delete(NS, "01")
        for condition in (None, {"n": {"$lt": 100}}):
            for _ in range(2):
                assert search(new, condition) == ["00", "02", "03"]
                assert search(old, condition) == ["00", "01", "02"]


async def test_what_nobody_has_read_before_it_was_deleted_is_found_in_an_older_snapshot(
    store, tmp_path
):
    puts = [Put(namespace=NS, key=f"{n}", value=n, embedding=[1, n + 1]) for n in range(20)]
    await store.put_batch(puts)
    cache = VectorCache(2**20)
    cache._exact = 0
    target, scope = unit([1.0, 0.0]).tobytes(), Scope.of(NS, 0.0, recursive=False)

    def search(connection):
        query = VectorQuery(target, None, parse_filter(None))
        return [hit.item.key for hit in search_vectors(connection, cache, scope, query, Page(2))]

    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(path)) as new:
        for connection in (old, new):
            opening.register_functions(connection)
        assert search(new) == ["0", "1"]
        await store.put_with_embedding(NS, "short", 1, [1.0, 0.0])
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM vectors").fetchone()
        await store.delete(NS, "short")
        assert search(new) == ["0", "1"]
        assert search(old) == ["short", "0"]


async def test_a_namespace_that_comes_and_goes_is_never_found_twice(store, tmp_path):
    """Its items stay, and its vectors are of another dimension for a while."""
    others = [Put(namespace=NS, key=f"{n:03}", value=n, embedding=[-1, n]) for n in range(200)]
    few = [Put(namespace=OTHER, key=f"{n}", value=n, embedding=[1, n]) for n in range(4)]
    await store.put_batch([*others, *few])
    cache = VectorCache(2**20)
    cache._exact = 0
    target, scope = unit([1.0, 0.0]).tobytes(), Scope.of(NS, 0.0, recursive=True)

    def search(connection):
        query = VectorQuery(target, None, parse_filter(None))
        return [hit.item.key for hit in search_vectors(connection, cache, scope, query, Page(4))]

    path = tmp_path / "store.db"
    with (
        closing(sqlite3.connect(path)) as first,
        closing(sqlite3.connect(path)) as second,
        closing(sqlite3.connect(path)) as new,
    ):
        for connection in (first, second, new):
            opening.register_functions(connection)
        first.execute("BEGIN")
        assert search(first) == ["0", "1", "2", "3"]
        await store.put_batch([Put(namespace=OTHER, key="0", value=0, embedding=[1, 9.0])])
        second.execute("BEGIN")
        assert search(second) == ["1", "2", "3", "0"]
        for n in range(4):
            await store.put(OTHER, f"{n}", n)
        assert search(new)[0] == "199"
        assert search(second) == ["1", "2", "3", "0"]
        assert search(first) == ["0", "1", "2", "3"]
        await store.put_batch([Put(namespace=OTHER, key="2", value=0, embedding=[1, 1.0])])
        assert search(new)[0] == "2"
        for connection, keys in ((second, ["1", "2", "3", "0"]), (first, ["0", "1", "2", "3"])):
            assert search(connection) == keys
            assert search(connection) == keys


@pytest.mark.slow
async def test_many_deletes_are_noticed(store, monkeypatch):
    monkeypatch.setattr("locus_memory.backends.sqlite.queries.LOST_KEPT", 1_024)
    puts = [Put(namespace=NS, key=f"{n:04}", value=n, embedding=[1.0, n]) for n in range(1_300)]
    await store.put_batch(puts)
    assert len(await store.search_by_embedding(NS, [1.0, 0.0], 5)) == 5
    for n in range(1_200):
        await store.delete(NS, f"{n:04}")
    found = await store.search_by_embedding(NS, [1.0, 0.0], 3)
    assert [hit.item.value for hit in found] == [1_200, 1_201, 1_202]
    rows = await store._connection.read(
        lambda c: c.execute("SELECT count(*) FROM lost_vectors").fetchone()
    )
    assert rows == (1_024,)
    await store.clear_namespace(NS)
    for table in ("lost_vectors", "codes", "vectors"):
        query = f"SELECT count(*) FROM {table}"
        assert await store._connection.read(lambda c, q=query: c.execute(q).fetchone()) == (0,)


def test_the_size_of_the_cache_is_read_while_others_change_it():
    cache = code_cache.CodeCache(2**20)

    class Changing(code_blocks.CodeRows):
        @property
        def size(self):
            cache._held["other", False, 2] = code_cache.Codes(code_blocks.CodeRows(), {})
            return 1

    for name in "ab":
        cache._held[name, False, 2] = code_cache.Codes(Changing(), {})
    assert cache.size == 2


async def test_a_damaged_code_is_an_error(store, tmp_path):
    await store.put_with_embedding(NS, "a", 1, [1.0, 0.0])
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("UPDATE codes SET code = x'00'")
    with pytest.raises(BackendCorruptError, match="code"):
        await store.search_by_embedding(NS, [1.0, 0.0])


async def test_a_code_that_an_earlier_version_left_is_a_problem_and_no_hit(store, tmp_path):
    """An earlier version that has the file open clears a namespace and knows of no codes."""
    await store.put_with_embedding(NS, "a", 1, [1.0, 0.0])
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        for table in ("vectors", "items", "namespaces"):
            connection.execute(f"DELETE FROM {table}")
    await store.put_with_embedding(NS, "b", 1, [1.0, 0.0])
    found = await store.search_by_embedding(NS, [1.0, 0.0])
    assert [hit.item.key for hit in found] == ["b"]
    assert "sqlite: codes without their vector: 1" in await find_problems(store._connection)


def before_codes(path, current):
    """Write the file that `current` has become as it was before it had codes."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in (*MIGRATIONS[0], *MIGRATIONS[1]):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 2")
        connection.execute("DELETE FROM revisions")
        connection.execute("ATTACH ? AS current", (str(current),))
        connection.execute("INSERT INTO revisions SELECT * FROM current.revisions")
        for table in ("namespaces", "items", "vectors"):
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM current.{table}")
        connection.execute(
            "INSERT INTO texts (rowid, scope, text) SELECT id, scope, text FROM searchable"
        )


async def test_a_file_without_codes_gets_them_however_often_that_is_interrupted(
    tmp_path, monkeypatch
):
    current, path = tmp_path / "current.db", tmp_path / "former.db"
    chance = np.random.default_rng(3)
    vectors = chance.normal(size=(30, 8)).tolist()
    async with SQLiteStore(current) as store:
        for n, vector in enumerate(vectors):
            await store.put_with_embedding(NS, f"{n}", n, vector)
    before_codes(path, current)
    left = [12]
    whole = opening._code

    def interrupted(vector):
        left[0] -= 1
        if left[0] < 0:
            raise OSError
        return whole(vector)

    monkeypatch.setattr(opening, "_code", interrupted)
    store = SQLiteStore(path)
    with pytest.raises(Exception, match="user-defined function"):
        await store.get(NS, "1")
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    monkeypatch.setattr(opening, "_code", whole)
    async with SQLiteStore(path) as store, SQLiteStore(current) as judge:
        only_codes(store)
        for vector in vectors[:5]:
            found = await store.search_by_embedding(NS, vector, 5)
            assert plain(found) == plain(await judge.search_by_embedding(NS, vector, 5))
        stored = "SELECT id, code FROM codes ORDER BY id"
        assert await store._connection.read(
            lambda c: c.execute(stored).fetchall()
        ) == await judge._connection.read(lambda c: c.execute(stored).fetchall())


async def test_a_file_without_codes_that_is_read_only_says_what_to_do(tmp_path):
    current, path = tmp_path / "current.db", tmp_path / "former.db"
    async with SQLiteStore(current) as store:
        await store.put_with_embedding(NS, "a", 1, [1.0, 0.0])
    before_codes(path, current)
    with pytest.raises(BackendWriteError, match=r"schema 2, .* open a copy"):
        opening.Settings(str(path), 1.0, "normal")._prepared(f"{path.as_uri()}?mode=ro")


@pytest.mark.slow
@pytest.mark.parametrize("left_open", [True, False])
async def test_all_who_open_a_file_without_codes_at_once_find_everything(tmp_path, left_open):
    """Threads and stores that open it while one of them makes the codes."""
    current, path = tmp_path / "current.db", tmp_path / "former.db"
    async with SQLiteStore(current) as store:
        puts = [Put(namespace=NS, key=f"{n}", value=n, embedding=[1.0, n]) for n in range(300)]
        await store.put_batch(puts)
    before_codes(path, current)
    with closing(sqlite3.connect(path)) as former:
        if left_open:
            assert former.execute("SELECT latest FROM revisions").fetchone() == (300,)
        stores = [only_codes(SQLiteStore(path)) for _ in range(4)]
        writes = [each.put_with_embedding(NS, "new", 0, [1.0, 0.0]) for each in stores]
        reads = [each.search_by_embedding(NS, [1.0, 7.0], 3) for each in stores for _ in range(2)]
        found = await asyncio.gather(*writes, *reads)
        assert all(hits[0].item.key == "7" for hits in found[4:])
        for each in stores:
            hits = await each.search_by_embedding(NS, [1.0, 0.0], 2)
            assert {hit.item.key for hit in hits} == {"new", "0"}
            await each.close()
        with pytest.raises(sqlite3.OperationalError, match="latest"):
            former.execute("UPDATE revisions SET latest = latest + 1")


CODE_OF_A_SINE = (
    "04f23669b86b3399d7bd2b0cd68f37a05bacd9b617fc7066332ad493"
    "a964be1fc3593b525d19f6e4bc76d5e23f7460596546e43d55de553d"
)
