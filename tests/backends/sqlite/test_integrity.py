"""An item of a SQLite file that is damaged is an error, and never another item."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from locus_memory.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import BackendCorruptError, LocusMemoryError

HERE = ("users", "ada/b")
SECRET = "the secret of Ada"


def vector(seed):
    chance = random.Random(seed)
    return [chance.uniform(-1, 1) for _ in range(8)]


async def fill(path, count=100):
    async with SQLiteStore(path, clock=lambda: 1_000.0) as store:
        for number in range(count):
            value = {"n": number, "text": f"what was said at {number} " * (1 + number % 9)}
            place = HERE, f"k{number:03}", value
            if number % 3:
                await store.put(*place, {"step": number})
            else:
                await store.put_with_embedding(*place, vector(number), {"step": number})
    async with SQLiteStore(path, clock=lambda: 1_001.0) as store:
        items = {item.key: item for item in await store.scan(HERE, 1_000)}
        return items, {key: await store.get_embedding(HERE, key) for key in items}


async def believed(store, items, vectors):
    """Return what the store tells that was never written."""
    found = []

    async def look(call, expected):
        with suppress(LocusMemoryError):
            got = await call
            # That there is nothing cannot be known to be wrong; `verify` finds it.
            if got is not None and got != expected:
                found.append((got, expected))

    for key, item in items.items():
        await look(store.get_item(HERE, key), item)
        await look(store.get_embedding(HERE, key), vectors[key])
    for call in (
        store.scan(HERE, 1_000),
        store.search(HERE, "said", 1_000),
        store.search(HERE, None, 1_000),
    ):
        with suppress(LocusMemoryError):
            found += [i for i in await call if replace(i, score=None) != items.get(i.key)]
    return found


@pytest.mark.parametrize("seed", range(40))
async def test_no_flip_makes_an_item_another(tmp_path, seed):
    path = tmp_path / "memory.db"
    items, vectors = await fill(path)
    chance = random.Random(seed)
    damaged = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 8))):
        place = chance.randrange(100, len(damaged))
        damaged[place] = chance.choice((0, 255, damaged[place] ^ 1 << chance.randrange(8)))
    path.write_bytes(damaged)
    store = SQLiteStore(path, clock=lambda: 1_001.0)
    assert await believed(store, items, vectors) == []
    with suppress(LocusMemoryError):
        await store.close()


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


@pytest.mark.parametrize(
    "damage",
    [
        """value = '{"n":3,"text":"other"}'""",
        "value = replace(value, ':0', ':1')",
        "value = x'ff'",
        "value = 7",
        "value = '['",
        """metadata = '{"step":1}'""",
        "metadata = CAST(x'7bff7d' AS TEXT)",
        "key = 'k001'",
        "key = CAST(x'ff' AS TEXT)",
        "key = char(2, 9)",
        "version = 2",
        "version = 'text'",
        "created_at = created_at - 1",
        "created_at = 1e300",
        "updated_at = 'text'",
        "expires_at = 5000.0",
        "checksum = checksum + 1",
        "checksum = checksum + 2",
        "checksum = 'text'",
        "namespace = 2",
    ],
)
async def test_a_damaged_row_is_named_and_not_quoted(tmp_path, damage):
    path = tmp_path / "memory.db"
    async with SQLiteStore(path, clock=lambda: 1_000.0) as store:
        await store.put(HERE, "k000", {"n": 0, "text": SECRET}, {"step": 0})
        await store.put(("other",), "k000 2", {"n": 2})
    change(path, f"UPDATE items SET {damage} WHERE id = 1")
    async with SQLiteStore(path, clock=lambda: 1_000.0) as store:
        for where in (HERE, ("other",)):
            for read in (store.scan(where), store.search(where)):
                with suppress(BackendCorruptError):
                    assert [item.key for item in await read] in ([], ["k000 2"])
        with pytest.raises(BackendCorruptError) as caught:
            await store.search(("other",) if "namespace" in damage else HERE)
        assert SECRET not in str(caught.value)
        assert "item" in str(caught.value)
        assert await store.get(("other",), "k000 2") == {"n": 2}


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.scan(HERE),
        lambda store: store.search(HERE, limit=100),
        lambda store: store.search(HERE[:1], limit=100, recursive=True),
        lambda store: store.search(HERE, "said"),
        lambda store: store.get_batch([(HERE, f"k{number:03}") for number in range(100)]),
    ],
)
async def test_reads_after_a_damaged_row_see_later_writes(tmp_path, read):
    """An error that the caller still has holds no snapshot of the file."""
    path = tmp_path / "memory.db"
    await fill(path)
    for number in range(40, 60):
        change(path, f"UPDATE items SET checksum = checksum + 1 WHERE id = {number}")
    async with SQLiteStore(path, clock=lambda: 1_000.0) as store:
        with pytest.raises(BackendCorruptError) as caught:
            await read(store)
        for number in range(20):
            await store.put(("new",), f"{number}", {"n": number})
            assert await store.get(("new",), f"{number}") == {"n": number}
        assert caught.value.__traceback__ is not None


async def test_the_error_names_the_namespace_and_the_key(tmp_path):
    path = tmp_path / "memory.db"
    async with SQLiteStore(path) as store:
        await store.put(HERE, "k\x00", SECRET)
    change(path, "UPDATE items SET value = '1'")
    async with SQLiteStore(path) as store:
        named = r"the item 'k\\x00' of \('users', 'ada/b'\) is damaged"
        for call in (
            store.get(HERE, "k\x00"),
            store.get_item(HERE, "k\x00"),
            store.get_batch([(HERE, "k\x00")]),
            store.scan(HERE),
            store.search(HERE),
            store.search(HERE, "secret"),
        ):
            with pytest.raises(BackendCorruptError, match=named):
                await call


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET vector = zeroblob(32)",
        "UPDATE vectors SET vector = x'00'",
        "UPDATE vectors SET vector = 'text'",
        "UPDATE vectors SET checksum = checksum + 1",
        "UPDATE vectors SET checksum = NULL",
        "UPDATE vectors SET id = 77",
        "DELETE FROM vectors",
    ],
)
async def test_a_damaged_or_lost_vector_is_noticed(tmp_path, damage):
    path = tmp_path / "memory.db"
    async with SQLiteStore(path) as store:
        await store.put_with_embedding(HERE, "k", {"n": 1}, vector(1))
    change(path, damage)
    async with SQLiteStore(path) as store:
        with pytest.raises(BackendCorruptError, match="vector of the item 'k'"):
            await store.get_embedding(HERE, "k")
        with suppress(BackendCorruptError):
            assert await store.search_by_embedding(HERE, vector(1)) == []
        assert await store.get(HERE, "k") == {"n": 1}
        await store.put(HERE, "k", {"n": 2})
        assert await store.get_embedding(HERE, "k") is None


async def test_vectors_that_changed_places_are_noticed(tmp_path):
    path = tmp_path / "memory.db"
    async with SQLiteStore(path) as store:
        for number in (1, 2):
            await store.put_with_embedding(HERE, f"k{number}", {"n": number}, vector(number))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE vectors SET id = id + 100")
        connection.execute("UPDATE vectors SET id = 103 - id, item = 3 - item")
    async with SQLiteStore(path) as store:
        for read in (
            store.get_embedding(HERE, "k1"),
            store.search_by_embedding(HERE, vector(1)),
        ):
            with pytest.raises(BackendCorruptError, match="vector"):
                await read


async def former(path, current):
    """Write the file that `current` has become as the first version of the tables had it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute("DELETE FROM revisions")
        connection.execute("ATTACH ? AS current", (str(current),))
        connection.execute("INSERT INTO revisions SELECT * FROM current.revisions")
        for table in ("namespaces", "items", "vectors", "threads", "checkpoints"):
            rows = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
            columns = ", ".join(row[1] for row in rows)
            named = columns.replace("vector_deletes", "lost_vectors")
            connection.execute(
                f"INSERT INTO main.{table} ({columns}) SELECT {named} FROM current.{table}"
            )
        connection.execute(
            "INSERT INTO texts (rowid, scope, text) SELECT id, scope, text FROM searchable"
        )


async def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path):
    current, path = tmp_path / "current.db", tmp_path / "former.db"
    items, vectors = await fill(current, 12)
    await former(path, current)
    async with SQLiteStore(path, clock=lambda: 1_001.0) as store:
        assert await believed(store, items, vectors) == []
        assert await store.scan(HERE) == list(items.values())
        assert {key: await store.get_embedding(HERE, key) for key in items} == vectors
        hits = await store.search_by_embedding(HERE, vector(3), 1)
        assert hits[0].item.key == "k003"
        assert (await store.search(HERE, "said", 3))[0].key in items
        # From its next write on, an item has a checksum.
        await store.put(HERE, "k001", {"n": 1})
        await store.put_with_embedding(HERE, "k002", {"n": 2}, vector(2))
    change(path, "UPDATE items SET value = '{}' WHERE key = 'k001'")
    change(path, "UPDATE items SET value = '{}' WHERE key = 'k004'")
    async with SQLiteStore(path, clock=lambda: 1_001.0) as store:
        with pytest.raises(BackendCorruptError, match="'k001'"):
            await store.get(HERE, "k001")
        assert await store.get(HERE, "k004") == {}
        assert await store.get_embedding(HERE, "k002") is not None


async def test_a_process_of_before_cannot_put(tmp_path):
    """It would leave the checksum of the value before."""
    path = tmp_path / "memory.db"
    async with SQLiteStore(path) as store:
        await store.put(HERE, "k", 1)
        with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.OperationalError):
            connection.execute("UPDATE revisions SET last = last + 1 WHERE id = 0")
        assert await store.get(HERE, "k") == 1


@pytest.mark.parametrize("version", [0, 1])
async def test_tables_of_another_version_than_the_file_says(tmp_path, version):
    path = tmp_path / "memory.db"
    async with SQLiteStore(path) as store:
        await store.put(HERE, "k", SECRET)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    store = SQLiteStore(path)
    with pytest.raises(BackendCorruptError, match="version"):
        await store.get(HERE, "k")
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    async with SQLiteStore(path) as store:
        assert await store.get(HERE, "k") == SECRET
