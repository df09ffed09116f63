"""A schema that tests use one after the other is to each of them as a new one."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.postgresql.store import PostgreSQLStore


async def contents(connection, schema):
    """Return the rows of each table and each sequence of a schema, and its indexes."""
    of = "WHERE relnamespace = to_regnamespace($1)"
    tables = await connection.fetch(
        f"SELECT oid::regclass::text FROM pg_class {of}"
        " AND relkind IN ('r', 'S') AND relname NOT LIKE '%migrations' ORDER BY 1",
        schema,
    )
    # The row of a sequence has a number of what is in the log, which may differ.
    rows = {
        name: [{**row, "log_cnt": 0} for row in await connection.fetch(f"SELECT * FROM {name}")]
        for (name,) in tables
    }
    indexes = await connection.fetch(
        f"SELECT relname FROM pg_class {of} AND relkind = 'i' ORDER BY 1", schema
    )
    return rows, indexes


@pytest.fixture
def url(postgresql_server):
    return postgresql_server.url


@pytest.fixture
async def connections(url):
    made = [await asyncpg.connect(url) for _ in range(2)]
    yield made
    for each in made:
        each.terminate()
    await asyncio.sleep(0)


async def use(url, schema):
    async with PostgreSQLStore(url, schema=schema, exact_below=0) as store:
        await store.put_with_embedding(("a",), "k", 1, [1.0, 0.0], ttl=60)
        await store.search_by_embedding(("a",), [1.0, 0.0])
    async with PostgreSQLCheckpointer(url, schema=schema, state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "t", "one")


@pytest.mark.slow
async def test_nothing_of_a_test_is_left_to_the_next(url, connections, cleaner):
    connection, other = connections
    schema = "t_emptied"
    await use(url, schema)
    cleaner.empty(schema)
    new = await contents(connection, schema)
    assert {len(rows) for rows in new[0].values()} == {0, 1}

    await use(url, schema)
    used = await contents(connection, schema)
    assert not any(rows == new[0][name] for name, rows in used[0].items())
    assert len(used[1]) == len(new[1]) + 1

    # As of a test that was cancelled half-way.
    await other.execute(f"BEGIN; LOCK TABLE {schema}.locus_items")
    cleaner.end_the_unfinished()
    cleaner.empty(schema)
    assert await contents(connection, schema) == new


def test_a_folder_that_is_gone_leaves_its_schema_to_the_next(schema_of, tmp_path):
    first, second, third = (tmp_path / name for name in ("a", "b", "c"))
    for folder in (first, second, third):
        folder.mkdir()
    names = [schema_of(first), schema_of(second), schema_of(first)]
    assert names == ["t_used_0", "t_used_1", "t_used_0"]
    first.rmdir()
    assert schema_of(third) == "t_used_0"
    assert schema_of(second) == "t_used_1"
