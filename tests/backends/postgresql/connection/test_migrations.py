"""Databases that an earlier locus_memory made."""

from __future__ import annotations

from uuid import UUID, uuid4

import asyncpg
import pytest

from locus_memory.backends.postgresql.checkpoints import (
    PostgreSQLCheckpointer,
    PostgreSQLDeltaStorage,
)
from locus_memory.backends.postgresql.items.documents import encode_document
from locus_memory.backends.postgresql.schema import FUNCTIONS, MIGRATIONS, Names
from locus_memory.backends.record_rows import digest_of
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.store.encoding import encode_text

pytestmark = pytest.mark.usefixtures("own_tables")

ODD = ["a/b", "UPPER-" + str(UUID(int=7)).upper(), "a\0b", "\U0001f9e0" * 300]
FORMER_COLUMNS = """
sequence, thread, revision, base, created_at, size, seal, level, digest, checkpoint_id, metadata,
payload
"""


@pytest.fixture
async def connection(url):
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


@pytest.fixture
def place(schema):
    return Names(schema=schema)


async def make_former(connection, place, version):
    """Make the tables as they were at a version."""
    await connection.execute(place.fill("CREATE SCHEMA {schema}"))
    await connection.execute(
        place.fill("CREATE TABLE {migrations} (part text PRIMARY KEY, version integer NOT NULL)")
    )
    for group in MIGRATIONS["core"][:version]:
        for statement in group:
            await connection.execute(place.fill(statement))
    await connection.execute(place.fill(FUNCTIONS["core"]))
    await connection.execute(place.fill("INSERT INTO {migrations} VALUES ('core', $1)"), version)


async def fill_former(connection, place, storage):
    """Write the records of another storage as they were written before checkpoints were compact."""
    for number, thread_id in enumerate(await storage.list_threads(), 1):
        heads = (await storage.list_checkpoints(thread_id, None))[::-1]
        await connection.execute(
            place.fill(
                "INSERT INTO {threads} (id, digest, newest, thread_id)"
                " OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4)"
            ),
            number,
            digest_of(thread_id),
            digest_of(heads[-1].checkpoint_id),
            encode_text(thread_id),
        )
        for head in heads:
            record = await storage.retrieve(thread_id, head.checkpoint_id)
            await connection.execute(
                place.fill(
                    f"INSERT INTO {{checkpoints}} ({FORMER_COLUMNS}) OVERRIDING SYSTEM VALUE"
                    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::json, $12)"
                ),
                record.sequence,
                number,
                record.revision,
                record.base,
                record.created_at,
                record.size,
                record.seal(),
                record.level,
                digest_of(record.checkpoint_id),
                encode_text(record.checkpoint_id),
                encode_document(record.metadata),
                record.payload,
            )
    for table, column in (("{checkpoints}", "sequence"), ("{threads}", "id")):
        top = f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), 1000)"
        await connection.execute(place.fill(top))


async def converse(checkpointer, thread_id, checkpoint_ids):
    """Save a growing state under each of the names; returns the states by name."""
    states, said = {}, []
    for number, name in enumerate(checkpoint_ids):
        said = [*said, {"role": "user", "content": f"what was said at {number}"}]
        states[name] = {"messages": said, "of": thread_id}
        await checkpointer.save(states[name], thread_id, name, {"number": number})
    return states


async def heads(storage, thread_id):
    found = await storage.list_checkpoints(thread_id, None)
    return [(head.revision, head.base, head.level, head.info()) for head in found]


@pytest.mark.slow
async def test_checkpoints_of_before_are_all_there_and_go_on(connection, place, url):
    before = DeltaCheckpointer(state_type=None)
    threads = {"uuids": [str(uuid4()) for _ in range(150)], "odd": ODD, "one": [str(uuid4())]}
    states = {t: await converse(before, t, given) for t, given in threads.items()}
    await make_former(connection, place, 2)
    await fill_former(connection, place, before.storage)
    await connection.execute(place.fill("GRANT SELECT ON {checkpoints} TO public"))
    storage = PostgreSQLDeltaStorage(url, schema=place.schema)
    async with DeltaCheckpointer(storage, state_type=None) as checkpointer:
        for thread_id, given in threads.items():
            assert await checkpointer.list_checkpoints(thread_id, 1000) == given[::-1]
            for name in given:
                assert await checkpointer.load(thread_id, name) == states[thread_id][name]
                assert (await checkpointer.get_metadata(thread_id, name)) is not None
            assert await heads(storage, thread_id) == await heads(before.storage, thread_id)
        newest = threads["uuids"][-1]
        added = await checkpointer.save({"new": 1}, "uuids", expected_parent=newest)
        assert (await checkpointer.list_checkpoints("uuids", 2)) == [added, newest]
        assert (await storage.find("uuids")).sequence > 1000
        assert await checkpointer.copy_thread("uuids", "copy") == 151
        assert await checkpointer.prune("uuids", keep_last=1) == 150
        for name in threads["uuids"]:
            assert await checkpointer.load("copy", name) == states["uuids"][name]
        assert await checkpointer.load("uuids") == {"new": 1}
    granted = "SELECT has_table_privilege('public', $1, 'SELECT')"
    assert await connection.fetchval(granted, place.fill("{checkpoints}"))


@pytest.mark.slow
async def test_a_new_database_and_a_migrated_one_have_the_same_tables(connection, place, url):
    new = Names(schema=f"{place.schema}_new")
    await make_former(connection, place, 2)
    for names in (place, new):
        async with PostgreSQLCheckpointer(url, schema=names.schema) as checkpointer:
            await checkpointer.open()
    columns = """
        SELECT table_name, column_name, data_type, is_nullable, ordinal_position
        FROM information_schema.columns WHERE table_schema = $1 ORDER BY 1, 5"""
    indexes = """
        SELECT replace(indexdef, $1, '') FROM pg_indexes WHERE schemaname = $1 ORDER BY 1"""
    for query in (columns, indexes):
        found = [await connection.fetch(query, names.schema) for names in (place, new)]
        assert found[0] == found[1]
