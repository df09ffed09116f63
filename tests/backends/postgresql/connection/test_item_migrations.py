"""A database that an earlier version made goes on with everything in it."""

from __future__ import annotations

import asyncio
from hashlib import blake2b

import asyncpg
import pytest

from locus_memory.backends.postgresql.items.documents import encode_document
from locus_memory.backends.postgresql.schema import MIGRATIONS, Names
from locus_memory.backends.postgresql.search.words import index_words
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.selection import path_of
from locus_memory.events import subscribe
from locus_memory.store.encoding import encode_text

pytestmark = pytest.mark.usefixtures("own_tables")

PLACES = [
    (("notes",), "a"),
    (("notes",), "b\x01\x00"),
    (("notes", "é\x02"), "k" * 598),
    (("notes", "x" * 590), "k"),
    (("notes", "x" * 700), "k" * 700),
    (("notes", "x" * 700), "k" * 700 + "é"),
]
ITEM = """
INSERT INTO {items} (id, scope, version, revision, created_at, updated_at, length, path, key,
  metadata, value, words)
VALUES ($1, $2, 7, nextval('{revisions}'), now(), now(), $3, $4, $5, '{"old": true}', $6, $7)
"""
VECTOR = """
INSERT INTO {vectors} (id, scope, revision, dimension, path, embedding)
SELECT id, scope, CASE WHEN $2 THEN -1 ELSE revision END, 2, path, '[0.6,0.8]'
FROM {items} WHERE id = $1
"""
INDEX = """
CREATE INDEX ON {vectors} USING hnsw
  ((embedding::{vector}.vector(2)) {vector}.vector_ip_ops) WHERE dimension = 2
"""
OLD_PARTS = {"core": 2, "vector": 1}
OLD_LINKS = (
    "ALTER TABLE {vectors} ADD FOREIGN KEY (id) REFERENCES {items} (id) ON DELETE CASCADE",
    "CREATE FUNCTION {write_items}() RETURNS integer LANGUAGE sql RETURN 1",
    "CREATE FUNCTION {write_vectors}() RETURNS integer LANGUAGE sql RETURN 1",
    INDEX,
)


def digest(text):
    return blake2b(text.encode(), digest_size=16).hexdigest()


@pytest.fixture
async def old(url, schema):
    """A connection to what version 2 of the tables, and 1 of those of vectors, looked like."""
    connection = await asyncpg.connect(url)
    names = Names(schema)
    await connection.execute(f"CREATE SCHEMA {schema}; CREATE EXTENSION IF NOT EXISTS vector")
    await connection.execute(
        names.fill("CREATE TABLE {migrations} (part text PRIMARY KEY, version int)")
    )
    for part, version in OLD_PARTS.items():
        for statement in (each for group in MIGRATIONS[part][:version] for each in group):
            await connection.execute(names.fill(statement))
        await connection.execute(
            names.fill("INSERT INTO {migrations} VALUES ($1, $2)"), part, version
        )
    for statement in OLD_LINKS:
        await connection.execute(names.fill(statement))
    for n, (namespace, key) in enumerate(PLACES):
        path, encoded = path_of(namespace), encode_text(key)
        name = digest(path + encoded)
        value = {"text": f"walrus {n}"}
        words, length = index_words(value, None)
        await connection.execute(
            names.fill(ITEM).replace("$7", "$7::text::tsvector"),
            *(name, digest(path), length, path, encoded, encode_document(value), words),
        )
        # The second is stale.
        await connection.execute(names.fill(VECTOR), name, n == 1)
    yield connection
    await connection.close()


@pytest.mark.slow
async def test_an_old_database_goes_on(old, url, schema):
    events = []
    stop = subscribe(events.append)
    stores = [PostgreSQLStore(url, schema=schema, pool_size=2) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    assert events == []
    store = stores[0]
    values = {place: {"text": f"walrus {n}"} for n, place in enumerate(PLACES)}
    assert await store.get_batch(PLACES) == values
    assert await store.list_keys(("notes",)) == ["a", "b\x01\x00"]
    assert await store.list_keys(PLACES[4][0]) == [PLACES[4][1], PLACES[5][1]]
    assert await store.list_namespaces() == sorted({namespace for namespace, _ in PLACES})
    assert len(await store.search(("notes",), "walrus", recursive=True)) == len(PLACES)
    hits = await store.search_by_embedding(("notes",), [0.6, 0.8], recursive=True)
    assert {(hit.item.namespace, hit.item.key) for hit in hits} == {*PLACES} - {PLACES[1]}
    item = await store.get_item(*PLACES[5])
    assert (item.version, item.metadata) == (7, {"old": True})
    assert await store.get_embedding(*PLACES[5]) == pytest.approx([0.6, 0.8])
    assert await store.put_batch([(*place, 1) for place in PLACES]) == [8] * len(PLACES)
    assert await store.get_embedding(*PLACES[5]) is None
    await store.put_with_embedding(*PLACES[5], 2, [1.0, 0.0], if_version=8)
    assert await store.clear_namespace(("notes",), recursive=True) == len(PLACES)
    for table in ("items", "vectors"):
        assert await old.fetchval(f'SELECT count(*) FROM "{schema}".locus_{table}') == 0
    keys = await old.fetch(
        "SELECT conrelid::regclass::text AS of, pg_get_constraintdef(oid) AS is FROM pg_constraint "
        "WHERE connamespace = $1::text::regnamespace AND contype IN ('p', 'f') "
        "AND conrelid::regclass::text LIKE ANY ('{%items,%vectors}') ORDER BY 1, contype",
        schema,
    )
    assert [row["is"].replace(f"{schema}.", "") for row in keys] == [
        "PRIMARY KEY (name) INCLUDE (length)",
        "FOREIGN KEY (name) REFERENCES locus_items(name) ON DELETE CASCADE",
        "PRIMARY KEY (name)",
    ]
    assert events == []
    stop()
    for each in stores:
        await each.close()


@pytest.mark.slow
async def test_the_statements_of_an_earlier_version_write_nothing(old, url, schema):
    names = Names(schema)
    update = names.fill("UPDATE {items} SET version = 1 WHERE id = $1::uuid")
    await old.fetch(update, digest("nothing"))
    async with PostgreSQLStore(url, schema=schema):
        with pytest.raises(asyncpg.PostgresError):
            await old.fetch(update, digest("nothing"))
        with pytest.raises(asyncpg.UndefinedFunctionError):
            await old.fetch(names.fill("SELECT {write_items}()"))


@pytest.mark.parametrize("has_rows", [True, False])
async def test_vectors_follow_when_the_extension_comes_back(old, url, schema, has_rows):
    names = Names(schema)
    if not has_rows:
        await old.execute(names.fill("DELETE FROM {vectors}"))
    async with old.transaction():
        for statement in (each for group in MIGRATIONS["core"][2:] for each in group):
            await old.execute(names.fill(statement))
    now = len(MIGRATIONS["core"])
    await old.execute(names.fill("UPDATE {migrations} SET version = $1 WHERE part = 'core'"), now)
    async with PostgreSQLStore(url, schema=schema) as store:
        found = await store.get_embedding(*PLACES[0])
        assert found == (pytest.approx([0.6, 0.8]) if has_rows else None)
        await store.put_with_embedding(*PLACES[0], "new", [1.0, 0.0])
        assert await store.get_embedding(*PLACES[0]) == [1.0, 0.0]
