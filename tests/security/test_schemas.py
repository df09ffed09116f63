"""What a stranger put into the schema of a file is named and refused, and can be left out."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.sqlite import backup, restore
from locus_memory.backends.sqlite.connection import strangers
from locus_memory.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS
from locus_memory.errors import BackendCorruptError
from locus_memory.registry import open_backend
from locus_memory.transfer import migrate

NS = ("users", "ada")
SPY = [
    "CREATE TABLE loot (value)",
    "CREATE TRIGGER spy AFTER INSERT ON items BEGIN INSERT INTO loot VALUES (new.value); END",
]
OWN = [
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, items TEXT UNIQUE, at REFERENCES items (id))",
    "CREATE INDEX orders_by_at ON orders (at)",
    "CREATE VIEW newest AS SELECT o.items, i.value FROM orders o JOIN items i ON i.id = o.at",
    "CREATE VIRTUAL TABLE notes USING fts5 (text)",
    "CREATE TRIGGER log AFTER UPDATE OF items ON orders BEGIN DELETE FROM orders WHERE id < 0; END",
    "INSERT INTO orders VALUES (1, 'a', 1)",
    "ANALYZE",
]
REFUSED = {
    "trigger 'spy'": SPY,
    "trigger 'quiet'": [
        "CREATE TRIGGER quiet BEFORE UPDATE OF value ON items BEGIN SELECT 1; END",
    ],
    "trigger 'shadow'": [
        "CREATE TRIGGER shadow AFTER INSERT ON texts_data BEGIN SELECT 1; END",
    ],
    "trigger 'instead'": [
        "CREATE TRIGGER instead INSTEAD OF INSERT ON searchable BEGIN SELECT 1; END",
    ],
    "index 'copies'": ["CREATE INDEX copies ON items (value)"],
    "view 'searchable'": [
        "DROP VIEW searchable",
        "CREATE VIEW searchable (id, scope, text) AS SELECT id, 'n1', value FROM items",
    ],
    "index 'items_by_revision'": [
        "DROP INDEX items_by_revision",
        "CREATE UNIQUE INDEX items_by_revision ON items (revision)",
    ],
    "table 'items'": ["ALTER TABLE items ADD COLUMN spy TEXT DEFAULT 'x'"],
    "view 'items'": [
        "ALTER TABLE items RENAME TO real",
        "CREATE VIEW items AS SELECT * FROM real",
    ],
    # No statement makes such a name.
    "trigger 'sqlite_spy'": [
        *SPY,
        "PRAGMA writable_schema = ON",
        """
        UPDATE sqlite_master SET name = 'sqlite_spy', sql = replace(sql, 'spy', 'sqlite_spy')
        WHERE name = 'spy'
        """,
    ],
}
LIES = {
    "table": [
        *SPY,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET type = 'table', tbl_name = 'spy' WHERE name = 'spy'",
    ],
    "hidden": [
        "CREATE TABLE mine (value)",
        "CREATE TRIGGER hidden AFTER DELETE ON/**/items BEGIN INSERT INTO mine VALUES (1); END",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET tbl_name = 'mine' WHERE name = 'hidden'",
    ],
}
"""Rows that lie about their table or their kind: SQLite itself opens no such file."""

UNDROPPED = {"table 'items'", "view 'items'"}
"""Our rows are not in a table of ours any more: nothing can be dropped to mend it."""


def change(path, statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for each in statements:
            connection.execute(each)


async def made(path):
    async with open_backend(f"sqlite:{path}") as backend:
        await backend.store.put(NS, "tea", {"likes": "oolong"})
        await backend.checkpointer.save({"n": 1}, "talk")
    return path


async def held(path):
    async with open_backend(f"sqlite:{path}") as backend:
        found = await backend.store.search(NS, "oolong", 5)
        return [each.value for each in found], await backend.checkpointer.load("talk")


KEPT = ([{"likes": "oolong"}], {"n": 1})


@pytest.mark.parametrize("name", REFUSED)
async def test_what_touches_our_tables_is_refused(tmp_path, name):
    path = await made(tmp_path / "a.db")
    change(path, REFUSED[name])
    with pytest.raises(BackendCorruptError, match=name):
        await held(path)
    with pytest.raises(BackendCorruptError, match=name):
        await migrate(f"sqlite:{path}", "memory")
    with pytest.raises(BackendCorruptError, match=name):
        await restore(path, tmp_path / "b.db")
    assert not (tmp_path / "b.db").exists()


@pytest.mark.parametrize("name", REFUSED)
async def test_strip_leaves_it_out(tmp_path, name):
    path = await made(tmp_path / "a.db")
    change(path, REFUSED[name])
    there = await made(tmp_path / "there.db")
    before = path.read_bytes()
    for target in (tmp_path / "b.db", there):
        if name in UNDROPPED:
            with pytest.raises(BackendCorruptError):
                await restore(path, target, overwrite=True, strip=True)
            continue
        await restore(path, target, overwrite=True, strip=True)
        assert await held(target) == KEPT
        assert b"loot" not in target.read_bytes()
    assert path.read_bytes() == before
    assert await held(there) == KEPT


async def test_strip_leaves_out_a_virtual_table_without_its_module(tmp_path):
    path = await made(tmp_path / "a.db")
    change(
        path,
        [
            "CREATE VIRTUAL TABLE places USING fts5 (name)",
            "INSERT INTO places VALUES ('loot')",
            "CREATE TRIGGER places AFTER INSERT ON items BEGIN SELECT 1; END",
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET sql = replace(sql, 'fts5', 'vec0') WHERE name = 'places'",
        ],
    )
    target = tmp_path / "b.db"
    await restore(path, target, strip=True)
    assert await held(target) == KEPT
    assert b"loot" not in target.read_bytes()


@pytest.mark.parametrize("name", LIES)
async def test_a_row_that_lies_is_refused(tmp_path, name):
    path = await made(tmp_path / "a.db")
    change(path, LIES[name])
    with pytest.raises(BackendCorruptError):
        await held(path)
    for is_stripped in (False, True):
        with pytest.raises(BackendCorruptError):
            await restore(path, tmp_path / "b.db", strip=is_stripped)
    assert not (tmp_path / "b.db").exists()


async def test_the_users_own_tables_go_on_working(tmp_path):
    path = await made(tmp_path / "a.db")
    change(path, OWN)
    assert await held(path) == KEPT
    await backup(path, tmp_path / "b.db")
    assert await held(tmp_path / "b.db") == KEPT
    with pytest.raises(BackendCorruptError, match=r"table 'orders'.* and \d more.*--strip"):
        await restore(tmp_path / "b.db", tmp_path / "c.db")
    await restore(tmp_path / "b.db", tmp_path / "c.db", strip=True)
    assert await held(tmp_path / "c.db") == KEPT
    with closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        found = {name for [name] in connection.execute("SELECT name FROM sqlite_master")}
    assert not found & {"orders", "orders_by_at", "newest", "notes", "notes_data", "log"}


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
async def test_a_file_is_checked_before_it_is_brought_up_to_date(tmp_path, version):
    def make(path, *more):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.create_function("locus_code", 1, bytes)
            for statements in MIGRATIONS[:version]:
                for each in statements:
                    connection.execute(each)
            for each in (f"application_id = {APPLICATION_ID}", f"user_version = {version}"):
                connection.execute(f"PRAGMA {each}")
            for each in more:
                connection.execute(each)

    make(tmp_path / "a.db", *SPY)
    with pytest.raises(BackendCorruptError, match="spy"):
        await held(tmp_path / "a.db")
    await restore(tmp_path / "a.db", tmp_path / "b.db", strip=True)
    assert await held(tmp_path / "b.db") == ([], None)
    make(tmp_path / "c.db", *OWN[:2])
    assert await held(tmp_path / "c.db") == ([], None)


NAMES = st.text(min_size=1, max_size=8).filter(
    lambda text: (
        "\0" not in text
        and text.isprintable()
        and not text.lower().startswith("sqlite_")
        and text.lower() not in strangers._ours(len(MIGRATIONS))
    )
)
EVENTS = st.sampled_from(["INSERT", "DELETE", "UPDATE", "UPDATE OF value", "UPDATE OF key, text"])


@settings(max_examples=30)
@given(
    table=st.sampled_from(["items", "threads", "checkpoints", "vectors", "namespaces", "mine"]),
    names=st.lists(NAMES, min_size=2, max_size=2, unique_by=str.lower),
    time=st.sampled_from(["BEFORE", "AFTER"]),
    event=EVENTS,
    gap=st.sampled_from([" ", "\n", "/**/", " -- items\n"]),
)
def test_every_trigger_on_a_table_of_ours_is_found(table, names, time, event, gap):
    """Whatever a trigger is called, and whatever it waits for."""
    name, loot = (f'"{each.replace(chr(34), chr(34) * 2)}"' for each in names)
    event = event if table == "items" else event.split()[0]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.create_function("locus_code", 1, bytes)
        for statements in MIGRATIONS:
            for each in statements:
                connection.execute(each)
        connection.execute("CREATE TABLE mine (items)")
        connection.execute(f"CREATE TABLE {loot} (value)")
        connection.execute(
            f"CREATE TRIGGER {name}{gap}{time}{gap}{event}{gap}ON{gap}{table} BEGIN"
            f" INSERT INTO {loot} VALUES (1); END"
        )
        version = len(MIGRATIONS)
        if table == "mine":
            strangers.check_schema(connection, "x", version)
        else:
            with pytest.raises(BackendCorruptError, match="trigger"):
                strangers.check_schema(connection, "x", version)
        with pytest.raises(BackendCorruptError):
            strangers.check_schema(connection, "x", version, allows_others=False)
        strangers.strip(connection, version)
        strangers.check_schema(connection, "x", version, allows_others=False)
