"""Deleted data is in no byte of the database, and the report says where that was looked for."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress

import pytest

from locus_memory import AgentState, LLMMemoryManager, Memory, Message, StoreContext, forget
from locus_memory.backends.postgresql.backend import PostgreSQLBackend
from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.deletion import audit_deletion
from locus_memory.errors import InvalidArgumentError
from locus_memory.registry import open_backend
from locus_memory.testing.servers import RedisServer

WORDS = ["Xylophonist", "Zäpfchen"]
TEXT = "the xylophonist lost a zäpfchen"
KEYS = "k=" + "A" * 43 + "="


async def live(backend, users=("ada", "bob")):
    """Let users leave their data in every place; only ada has the words."""
    for user in users:
        words = TEXT if user == "ada" else "nothing to see"
        for turn in range(1, 30):
            said = tuple(Message.user(f"{n}: {words}") for n in range(turn))
            state = AgentState(messages=said, metadata={"user_id": user})
            await backend.checkpointer.save(state, f"thread-{user}", metadata={"user_id": user})
        with suppress(Exception):
            memories = LLMMemoryManager(backend.store).for_user(user)
            await memories.save([Memory("user", f"job-{words[:15]}", f"{user}: {words}")])
            context = StoreContext(backend.store, user)
            for number in range(60):
                await context.remember(f"k{number}", f"{words} {number} " + "and so on " * 20)


async def audited(backend):
    report = await audit_deletion(backend, WORDS)
    return {place.name: place.found for place in report.places if place.found}, report


async def erased(backend):
    """Erase ada, compact, and return the report."""
    await live(backend)
    found, report = await audited(backend)
    assert found.keys() >= {"checkpoints"}
    assert not report.is_proven
    await forget(backend, user_id="ada")
    await backend.compact()
    found, report = await audited(backend)
    assert found == {}
    threads = await backend.checkpointer.list_threads()
    assert threads == ["thread-bob"]
    return report


@pytest.mark.slow
@pytest.mark.parametrize("encryption", [None, KEYS])
async def test_sqlite(tmp_path, encryption):
    path = tmp_path / "agent.db"
    async with open_backend(f"sqlite:{path}", encryption=encryption) as backend:
        report = await erased(backend)
        assert report.is_proven
    names = [place.name for place in report.places]
    assert names == [
        "items",
        "checkpoints",
        str(path),
        f"{path} (free list)",
        f"{path}-wal",
        f"{path}-journal",
        "texts_data, texts_idx (FTS5)",
    ]
    assert report.places[2].bytes > 50_000


@pytest.mark.slow
async def test_each_place_of_sqlite_is_searched(tmp_path):
    """Without the compaction, the words are in the log; without secure deletion, in free pages."""
    path = tmp_path / "agent.db"
    async with open_backend(f"sqlite:{path}") as backend:
        await live(backend)
        await forget(backend, user_id="ada")
        await backend.store.put(("users", "x"), "k", TEXT)
        await backend.store.delete(("users", "x"), "k")
        found, _ = await audited(backend)
        assert f"{path}-wal" in found
        await backend.compact()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE old (text)")
        database.executemany("INSERT INTO old VALUES (?)", [(TEXT * 200,)] * 20)
        database.execute("DROP TABLE old")
    async with open_backend(f"sqlite:{path}") as backend:
        found, report = await audited(backend)
        assert str(path) in found
        [free] = [place for place in report.places if place.name.endswith("(free list)")]
        assert "free pages hold old data: run compact" in free.problem


async def test_a_checkpoint_in_a_free_page_is_found(tmp_path):
    """Its bytes are compressed, so a search for the word alone does not see it."""
    path = tmp_path / "agent.db"
    async with open_backend(f"sqlite:{path}") as backend:
        await backend.checkpointer.save({"text": TEXT * 3}, "t")
        [record] = await backend.checkpointer.storage.retrieve_chain("t")
        await backend.checkpointer.delete("t")
        await backend.compact()
        assert (await audited(backend))[0] == {}
    assert b"xylophonist" not in record.payload
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE old (text)")
        database.execute("INSERT INTO old VALUES (?)", (record.payload,))
        database.execute("DROP TABLE old")
    async with open_backend(f"sqlite:{path}") as backend:
        assert str(path) in (await audited(backend))[0]


@pytest.mark.slow
async def test_files(tmp_path):
    async with open_backend(f"file:{tmp_path}") as backend:
        report = await erased(backend)
    assert report.is_proven
    assert [place.name for place in report.places] == ["items", "checkpoints", str(tmp_path)]


@pytest.mark.slow
async def test_postgresql(postgresql_server, schema_of, tmp_path):
    schema = schema_of(tmp_path)
    async with PostgreSQLBackend(postgresql_server.url, schema=schema) as backend:
        report = await erased(backend)
    assert report.is_proven
    names = " ".join(place.name for place in report.places)
    for name in ("locus_items", "locus_checkpoints", "pg_toast", "locus_items_by_word", "pg_stats"):
        assert name in names
    assert [place.name for place in report.places if place.limit] == [
        "pg_wal, replicas and backups"
    ]


@pytest.mark.slow
async def test_a_vacuum_of_postgresql_is_not_enough(postgresql_server, schema_of, tmp_path):
    schema = schema_of(tmp_path)
    async with PostgreSQLBackend(postgresql_server.url, schema=schema) as backend:
        await live(backend)
        await forget(backend, user_id="ada")
        await backend.checkpointer.vacuum()
        found, _ = await audited(backend)
        assert any("locus_items" in name for name in found)


@pytest.mark.slow
async def test_redis_with_its_files():
    with RedisServer(save="3600 1") as server:
        async with RedisBackend(server.url) as backend:
            report = await erased(backend)
    assert report.is_proven
    names = [place.name.rpartition("/")[2] for place in report.places]
    assert names[:4] == ["items", "checkpoints", "keys", "dump.rdb"]
    assert [name for name in names if name.startswith("appendonly.aof")]
    assert all(place.bytes for place in report.places if place.name.endswith(".rdb"))


@pytest.mark.slow
async def test_the_append_only_file_of_redis_keeps_what_is_deleted():
    with RedisServer() as server:
        async with RedisBackend(server.url) as backend:
            await live(backend)
            await forget(backend, user_id="ada")
            found, _ = await audited(backend)
    assert found
    assert all(".aof" in name for name in found)


async def test_a_place_that_is_not_here_proves_nothing():
    async with open_backend("memory") as backend:
        report = await audit_deletion(backend, WORDS)
    assert [place.problem for place in report.places if place.problem]
    assert not report.is_proven


@pytest.mark.parametrize("words", [[], ["abc"], ["long enough", ""], ["Zoë"], ["李"]])
async def test_words_that_prove_nothing_are_refused(words):
    async with open_backend("memory") as backend:
        with pytest.raises(InvalidArgumentError, match="at least 4 characters") as caught:
            await audit_deletion(backend, words)
    assert all(repr(words[-1]) in str(caught.value) for _ in words)


@pytest.mark.parametrize("name", ["李明", "王小明", "김민", "Ия", "さくら", "आशा"])
async def test_a_short_name_of_any_script_is_proven_gone(tmp_path, name):
    async with open_backend(f"sqlite:{tmp_path / 'agent.db'}") as backend:
        for user, text in {"ada": f"{name} xyz", "bob": "nothing to see"}.items():
            manager = LLMMemoryManager(backend.store).for_user(user)
            await manager.save([Memory("user", "name", text)])
        found = {
            place.name for place in (await audit_deletion(backend, [name])).places if place.found
        }
        assert {"items", "texts_data, texts_idx (FTS5)"} <= found
        await forget(backend, user_id="ada")
        await backend.compact()
        assert (await audit_deletion(backend, [name])).is_proven
