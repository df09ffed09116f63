"""Tables of the version before: their statements and their rows, as the driver returned them.

`archive.json` was written on Oracle's protocol, not on Oracle Database: it holds what the library
wrote, and nothing of how the database stores it. Its tables have the prefix `OLD_`.
"""

from __future__ import annotations

import json
from array import array
from base64 import b64decode
from pathlib import Path

import pytest

from locus_memory.backends.oracle import OracleBackend, OraclePool
from locus_memory.backends.oracle.schema import Names

ARCHIVE = json.loads((Path(__file__).parent / "archive.json").read_text("utf-8"))
NAMES = Names(None, "OLD_")
ORDER = ("threads", "checkpoints", "items", "words", "vectors", "migrations")
SEQUENCES = {"sequences": ("checkpoints", "SEQUENCE"), "revisions": ("items", "REVISION")}


def value(stored):
    """Return a value as the driver takes it."""
    if not isinstance(stored, dict):
        return stored
    [(kind, content)] = stored.items()
    if kind == "bytes":
        return b64decode(content)
    return array("f", content) if kind == "vector" else json.dumps(content)


async def load(session):
    """Create the tables of the archive, and write its rows."""
    for statement in ARCHIVE["statements"]:
        await session.execute(NAMES.fill(statement), {})
    for table in ORDER:
        columns, rows = (ARCHIVE["tables"][table][part] for part in ("columns", "rows"))
        names = ", ".join(f'"{column}"' for column in columns)
        binds = ", ".join(f":c{number}" for number in range(len(columns)))
        statement = NAMES.fill(f"INSERT INTO {{{table}}} ({names}) VALUES ({binds})")
        if table == "checkpoints":
            rows = sorted(rows, key=lambda row: row[columns.index("SEQUENCE")])
        for row in rows:
            await session.execute(statement, {f"c{n}": value(each) for n, each in enumerate(row)})
    for sequence, (table, column) in SEQUENCES.items():
        found = ARCHIVE["tables"][table]
        last = max(row[found["columns"].index(column)] for row in found["rows"])
        taken = 0
        while taken < last:
            statement = NAMES.fill(f"SELECT {{{sequence}}}.NEXTVAL FROM DUAL")
            [[taken]] = await session.fetch(statement, {})
    await session.commit()


@pytest.fixture
async def archive(oracle_tables, tmp_path):
    """The URL of a database with the tables of the version before."""
    prefix = oracle_tables.prefix(tmp_path, tmp_path)
    async with OraclePool(oracle_tables.url, table_prefix=prefix) as pool:
        await pool.transact(load)
        yield oracle_tables.url
        for table in (*reversed(ORDER[:-1]), "migrations"):
            drop = NAMES.fill(f"DROP TABLE {{{table}}} PURGE")
            await pool.transact(lambda session, drop=drop: session.execute(drop, {}))
        for sequence in SEQUENCES:
            drop = NAMES.fill(f"DROP SEQUENCE {{{sequence}}}")
            await pool.transact(lambda session, drop=drop: session.execute(drop, {}))
    await oracle_tables.empty()


async def test_tables_of_the_version_before_open_and_go_on(archive):
    async with OracleBackend(archive, table_prefix="OLD_") as backend:
        store, checkpointer = backend.store, backend.checkpointer
        assert await backend.outdated() == []
        assert await backend.problems() == []
        item = await store.get_item(("users", "ada"), "diet")
        assert (item.value["n"], item.metadata, item.version) == (2, {"kind": "fact"}, 2)
        assert await store.get(("users", "ada"), "k" * 2500) == ["long", 1.5, None]
        assert await store.list_namespaces() == [("users", "ada"), ("users", "bob")]
        found = await store.search(("users",), "meat", filter={"n": 2}, recursive=True)
        assert [each.key for each in found] == ["diet"]
        nearest = await store.search_by_embedding(("users", "bob"), [1.0, 0.1, 0.0])
        assert [hit.item.key for hit in nearest] == ["東京", "b"]
        assert await store.get(("users", "bob"), "b") == {"big": 2**53 + 1}
        assert await store.put(("users", "ada"), "diet", {"n": 3}) == 3

        state = {"messages": [f"step {n}" for n in range(5)], "n": 5}
        assert await checkpointer.list_threads() == ["fork", "thread", "t" * 2500]
        for thread in ("thread", "fork"):
            assert await checkpointer.load(thread) == state
            assert await checkpointer.load(thread, "c2") == {
                "messages": ["step 0", "step 1"],
                "n": 2,
            }
        assert await checkpointer.load("t" * 2500) == {"n": 0}
        await checkpointer.save({"n": 6}, "thread", "c6", expected_parent="c5")
        assert await checkpointer.load("thread") == {"n": 6}
        assert await checkpointer.delete("thread", "c0")
        assert await checkpointer.load("thread", "c5") == state
