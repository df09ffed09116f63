"""Vector search by codes finds what the exact search finds."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections import OrderedDict
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.selection import Page, VectorQuery
from locus_memory.backends.sqlite.connection import opening
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.items import OutdatedError, Scope
from locus_memory.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS
from locus_memory.backends.sqlite.search import codes, vectors
from locus_memory.backends.sqlite.search.vectors import VectorCache, search_vectors
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.backends.sqlite.upkeep.problems import find_problems
from locus_memory.errors import BackendCorruptError, BackendWriteError
from locus_memory.store.filters import parse_filter
from locus_memory.store.item import Delete, Put
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
    held = codes.CodeRows(500, dimension)
    held.set(slice(0, 400), [each.tobytes() for each in codes.encode(rows)])
    coded = codes.CodedQuery(query.tobytes(), held, 400)
    places, estimates = coded.nearest(np.zeros(400, np.bool_), 10)
    assert sorted(places.tolist()) == list(range(400))
    wrong = estimates - rows[places] @ query
    spread = max(codes.error(dimension, 0.0), 0.002)
    assert np.abs(wrong.mean()) < spread
    if dimension >= 64:
        assert wrong.std() < 1.4 * spread
        assert (places == (rows @ query).argmax()).argmax() < 40


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
def test_recall(made, monkeypatch):
    """Of 30,000 vectors, of data that are hard for codes."""
    rows, queries = made(30_000, 128, 1), made(40, 128, 2)
    held = codes.CodeRows(len(rows), 128)
    held.set(slice(0, len(rows)), [each.tobytes() for each in codes.encode(rows)])
    ids, read, shares = np.arange(1, len(rows) + 1), [], []

    def examined(search, places):
        read.append(len(places))
        return ids[places], (rows[places] @ query).astype(float)

    monkeypatch.setattr(vectors._Search, "_examined", examined)
    for query in queries:
        asked = VectorQuery(query.tobytes(), parse_filter(None))
        gone = np.zeros(len(rows), np.bool_)
        whole = vectors._Rows(1, 1, len(rows), 0, ids, held, gone, OrderedDict())
        near = held.query(asked.vector, len(rows))
        best, cosines = vectors._Search(None, asked, 0.0, 10, whole, near).best()
        last = np.partition(rows @ query, -10)[-10]
        shares.append(min(10, int((cosines >= last - 1e-6).sum())) / 10)
        assert len(best) == len(cosines)
    assert np.mean(shares) >= 0.99
    assert sum(read) / len(queries) < 2_400


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


@pytest.mark.parametrize("is_coded", [True, False])
async def test_a_snapshot_that_is_older_than_the_cache_is_refused(store, tmp_path, is_coded):
    """It would miss what was replaced in between; the store begins again with a later one."""
    for n in range(6):
        await store.put_with_embedding(NS, f"{n}", {"n": n}, [1.0, n])
    cache = VectorCache(2**20)
    cache._exact = 0 if is_coded else cache._exact
    target, scope = unit([1.0, 0.0]).tobytes(), Scope.of(NS, 0.0, recursive=False)

    def search(connection, condition):
        query = VectorQuery(target, parse_filter(condition))
        return [hit.item.key for hit in search_vectors(connection, cache, scope, query, Page(9))]

    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(path)) as new:
        for connection in (old, new):
            opening.register_functions(connection)
        old.execute("BEGIN")
        for condition in (None, {"n": {"$lt": 100}}):
            assert search(old, condition) == ["0", "1", "2", "3", "4", "5"]
        await store.delete(NS, "2")
        assert search(old, None) == ["0", "1", "2", "3", "4", "5"]
        await store.put_with_embedding(NS, "3", {"n": 3}, [1.0, 9.0])
        await store.put_with_embedding(NS, "new", {"n": 1}, [1.0, 0.5])
        for condition in (None, {"n": {"$lt": 100}}, {"n": {"$lt": 99}}):
            for _ in range(2):
                assert search(new, condition) == ["0", "new", "1", "4", "5", "3"]
                with pytest.raises(OutdatedError):
                    search(old, condition)
        old.execute("ROLLBACK")
        assert search(old, None) == ["0", "new", "1", "4", "5", "3"]


@pytest.mark.parametrize("cached", [2**20, 0])
async def test_what_is_always_there_is_found_whatever_others_write_and_search(tmp_path, cached):
    """Each put takes the vector away and adds it again, and searches see both or one of them."""
    path = tmp_path / "store.db"
    async with SQLiteStore(
        database=SQLiteDatabase(path, readers=4), vector_cache_bytes=cached
    ) as store:
        only_codes(store)
        puts = [Put(namespace=NS, key=f"{n}", value=n, embedding=[1, n]) for n in range(40)]
        await store.put_batch(puts)
        done = False

        async def write():
            nonlocal done
            for n in range(120):
                await store.put_batch([puts[n % 4]])
            done = True

        async def search():
            while not done:
                found = await store.search_by_embedding(NS, [1.0, 0.0], 4)
                assert [hit.item.key for hit in found] == ["0", "1", "2", "3"]

        await asyncio.gather(write(), *(search() for _ in range(6)))
        await store._connection.close()


@pytest.mark.parametrize("coded", [True, False])
async def test_writes_elsewhere_do_not_read_all_again(store, coded):
    if not coded:
        store._caches.last.vectors._exact = 2**20
    puts = [Put(namespace=NS, key=f"{n}", value=n, embedding=[1.0, n]) for n in range(90)]
    await store.put_batch(puts)

    async def found():
        hits = await store.search_by_embedding(NS, [1.0, 0.0], 3)
        [rows] = store._caches.last.vectors._held.all().values()
        return [hit.item.key for hit in hits], rows

    before = (await found())[1]
    await store.put_batch([(("elsewhere",), f"{n}", n) for n in range(300)])
    await store.put_with_embedding(NS, "new", 1, [1.0, 0.5])
    keys, rows = await found()
    assert keys == ["0", "new", "1"]
    assert rows.buffer is before.buffer
    assert rows.since == 391
    # Many of its own are deleted, or there is no room for more.
    await store.write_batch([Delete(namespace=NS, key=f"{n}") for n in range(80)])
    keys, rows = await found()
    assert keys == ["new", "80", "81"]
    assert (rows.count, rows.buffer is before.buffer) == (11, False)
    await store.put_batch(puts)
    assert (await found())[0] == ["0", "new", "1"]


@pytest.mark.slow
async def test_of_many_deleted_ones_that_are_nearest_the_others_are_found(store, monkeypatch):
    """More of them than codes are estimated at once, and with a filter that few satisfy."""
    monkeypatch.setattr(vectors, "_WORN", 1)
    chance = np.random.default_rng(4)
    near = unit(np.eye(8)[0] + 0.3 * chance.normal(size=(12_000, 8))).tolist()
    far = unit(chance.normal(size=(9_000, 8))).tolist()
    puts = [
        Put(namespace=NS, key=f"{n}", value={"n": n}, embedding=vector)
        for n, vector in enumerate([*near, *far])
    ]
    for start in range(0, len(puts), 4_000):
        await store.put_batch(puts[start : start + 4_000])
    query = np.eye(8)[0].tolist()
    assert len(await store.search_by_embedding(NS, query, 10)) == 10
    await store.write_batch([Delete(namespace=NS, key=f"{n}") for n in range(10_000)])
    order = np.argsort(-np.array([*near, *far])[:, 0])
    order = order[order >= 10_000]
    for condition, rows in ((None, order), ({"n": {"$gt": 20_980}}, order[order > 20_980])):
        found = await store.search_by_embedding(NS, query, 5, metadata_filter=condition)
        # Codes may miss one of them.
        assert len({hit.item.value["n"] for hit in found} & set(rows[:5].tolist())) >= 4


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
