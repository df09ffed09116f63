"""Memories of mem0, imported: each with its user, its past versions and their moments."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import pytest

from locus_memory import open_backend
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.integrations.mem0.export import read_export
from locus_memory.integrations.mem0.history import open_history
from locus_memory.integrations.mem0.importing import MemorySource, import_memories
from locus_memory.memory.manager import LLMMemoryManager

# `mem0/memory/storage.py` of mem0ai 2.2.1, `_create_history_table` and `_create_messages_table`.
SCHEMA = """
    CREATE TABLE IF NOT EXISTS history (
        id           TEXT PRIMARY KEY,
        memory_id    TEXT,
        old_memory   TEXT,
        new_memory   TEXT,
        event        TEXT,
        created_at   DATETIME,
        updated_at   DATETIME,
        is_deleted   INTEGER,
        actor_id     TEXT,
        role         TEXT
    );
    CREATE TABLE IF NOT EXISTS messages (
        id TEXT PRIMARY KEY,
        session_scope TEXT,
        role TEXT,
        content TEXT,
        name TEXT,
        created_at DATETIME
    );
"""
TEA, CAT, BOAT, GONE = (str(uuid4()) for _ in range(4))


def day(number, hour=10):
    return f"2025-03-{number:02}T{hour:02}:00:00.123456+00:00"


def change(name, event, old, new, *moments):
    """A row as `add_history` of mem0 writes it."""
    at, since = (*moments, None, None)[:2]
    created, updated = (at, None) if event == "ADD" else (since, at)
    is_deleted = int(event == "DELETE")
    return str(uuid4()), name, old, new, event, created, updated, is_deleted, None, None


ROWS = [
    change(TEA, "ADD", None, "Ada drinks tea.", day(1)),
    change(CAT, "ADD", None, "Ada has a cat named Mia.", day(2)),
    change(TEA, "UPDATE", "Ada drinks tea.", "Ada drinks oolong.", day(3), day(1)),
    change(GONE, "ADD", None, "Ada rows on Mondays.", day(3, 11)),
    change(TEA, "UPDATE", "Ada drinks oolong.", "Ada drinks tea.", day(4), day(1)),
    change(BOAT, "ADD", None, "Bo owns a boat.", day(5)),
    change(GONE, "DELETE", "Ada rows on Mondays.", None, day(6), day(3, 11)),
]
EXPORT = {
    "results": [
        {
            "id": TEA,
            "memory": "Ada drinks tea.",
            "hash": "0f",
            "metadata": {"mood": ["calm"]},
            "score": None,
            "created_at": day(1),
            "updated_at": day(4),
            "user_id": "ada",
            "role": "user",
        },
        {
            "id": CAT,
            "memory": "Ada has a cat named Mia.",
            "created_at": day(2),
            "updated_at": None,
            "user_id": "ada",
            "run_id": "r1",
            "expiration_date": "2999-12-30",
        },
        {"id": BOAT, "memory": "Bo owns a boat.", "created_at": day(5), "user_id": "bo"},
    ]
}


@pytest.fixture
def where(tmp_path):
    return history_at(tmp_path / "history.db", ROWS)


def history_at(path, rows):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        connection.executemany(f"INSERT INTO history VALUES ({', '.join('?' * 10)})", rows)
        connection.commit()
    return str(path)


def manager_of(backend):
    return LLMMemoryManager(backend.store, history_limit=1000)


async def copied(backend, *, where=None, export=None, **given):
    exported = None if export is None else read_export(export)
    manager = manager_of(backend)
    if where is None:
        return await import_memories(MemorySource(None, exported), manager, **given)
    with open_history(where) as history:
        return await import_memories(MemorySource(history, exported), manager, **given)


def key(name):
    return f"fact:{UUID(name).hex}"


async def contents(manager):
    return sorted([fact["content"] async for fact in manager.export_facts()])


async def past(manager, name):
    """Return the versions of a memory, the newest first, with the day each held from and to."""
    found = await manager.history(key(name))
    told = [each.metadata for each in found]
    return [
        (each.content, own["valid_from"][:10], (own.get("superseded_at") or "")[:10])
        for each, own in zip(found, told, strict=True)
    ]


async def everything(store):
    namespaces = await store.list_namespaces(limit=1000)
    return {
        (name, item.key): (item.value, item.version)
        for name in namespaces
        for item in await store.scan(name, 1000)
    }


class TestBoth:
    async def test_a_memory_has_its_user_and_its_past(self, where, provider):
        url, options = provider
        async with open_backend(url, **options) as backend:
            done = await copied(backend, where=where, export=EXPORT)
            counts = [
                (each.user, each.memories, each.changes, each.saved, each.unknown) for each in done
            ]
            # The export does not tell whose memory was deleted.
            assert counts == [(None, 0, 0, 0, 1), ("ada", 2, 4, 2, 0), ("bo", 1, 1, 1, 0)]
            ada = manager_of(backend).for_user("ada")
            assert await contents(ada) == ["Ada drinks tea.", "Ada has a cat named Mia."]
            assert await past(ada, TEA) == [
                ("Ada drinks tea.", "2025-03-04", ""),
                ("Ada drinks oolong.", "2025-03-03", "2025-03-04"),
                ("Ada drinks tea.", "2025-03-01", "2025-03-03"),
            ]
            tea, cat = sorted(
                [fact async for fact in ada.export_facts()], key=lambda fact: fact["content"]
            )
            assert (tea["id"], tea["source"], tea["mood"]) == (UUID(TEA).hex, "mem0", ["calm"])
            assert (tea["role"], cat["run_id"]) == ("user", "r1")
            assert cat["expires_at"] == "2999-12-31T00:00:00+00:00"
            assert cat["created_at"] == "2025-03-02T10:00:00.123456+00:00"
            assert await contents(manager_of(backend)) == []

    async def test_the_same_again_changes_nothing(self, where, provider):
        url, options = provider
        async with open_backend(url, **options) as backend:
            await copied(backend, where=where, export=EXPORT, user="ada")
            before = await everything(backend.store)
            done = await copied(backend, where=where, export=EXPORT, user="ada")
            assert {each.saved for each in done} == {0}
            assert await everything(backend.store) == before

    async def test_a_deleted_memory_has_only_a_past(self, where):
        async with open_backend("memory") as backend:
            await copied(backend, where=where, export=EXPORT, user="ada")
            ada = manager_of(backend).for_user("ada")
            assert "Ada rows on Mondays." not in await contents(ada)
            assert await past(ada, GONE) == [("Ada rows on Mondays.", "2025-03-03", "2025-03-06")]

    async def test_the_newer_of_both_counts(self, where):
        export = json.loads(json.dumps(EXPORT))
        export["results"][0] |= {"memory": "Ada drinks coffee.", "updated_at": day(9)}
        export["results"][1] |= {"memory": "Ada has two cats.", "created_at": day(1)}
        export["results"].append({"id": GONE, "memory": "Ada rows on Mondays.", "user_id": "ada"})
        async with open_backend("memory") as backend:
            await copied(backend, where=where, export=export)
            ada = manager_of(backend).for_user("ada")
            assert await contents(ada) == ["Ada drinks coffee.", "Ada has a cat named Mia."]
            assert len(await past(ada, TEA)) == 4
            assert len(await past(ada, GONE)) == 1

    async def test_what_happened_since_is_added(self, where, tmp_path):
        async with open_backend("memory") as backend:
            await copied(backend, where=where, user="ada")
            more = change(CAT, "UPDATE", "Ada has a cat named Mia.", "Mia died.", day(8), day(2))
            later = history_at(tmp_path / "later.db", [*ROWS, more])
            [done] = await copied(backend, where=later, user="ada")
            assert done.saved == 1
            ada = manager_of(backend).for_user("ada")
            assert len(await past(ada, CAT)) == 2
            # A memory that was changed here since is not changed back.
            fact = {"id": UUID(TEA).hex, "key": key(TEA), "content": "Ada fasts."}
            await ada.import_facts([fact])
            await copied(backend, where=later, user="ada")
            assert "Ada fasts." in await contents(ada)


class TestOne:
    async def test_a_history_alone_is_that_of_the_user_named(self, where):
        async with open_backend("memory") as backend:
            [done] = await copied(backend, where=where)
            assert (done.user, done.memories, done.changes, done.saved) == (None, 4, 7, 3)
            assert len(await contents(manager_of(backend))) == 3
            [done] = await copied(backend, where=where, user="eve")
            assert (done.user, done.saved) == ("eve", 3)

    @pytest.mark.parametrize("export", [EXPORT, EXPORT["results"]])
    async def test_an_export_alone_has_no_past(self, export):
        async with open_backend("memory") as backend:
            done = await copied(backend, export=export)
            assert [(each.user, each.saved) for each in done] == [("ada", 2), ("bo", 1)]
            ada = manager_of(backend).for_user("ada")
            assert await past(ada, TEA) == [("Ada drinks tea.", "2025-03-04", "")]
            assert [each.saved for each in await copied(backend, export=export)] == [0, 0]

    async def test_rows_of_early_releases(self, tmp_path):
        """Their deletions had no moment; and a row of a creation may be gone, or not be a UUID."""
        rows = [
            change("7", "UPDATE", "Old text.", "New text.", day(2), day(1)),
            change("7", "DELETE", "New text.", None),
            change(TEA, "ADD", None, "One.", day(1)),
            change(TEA, "UPDATE", "One.", "Two.", day(1), day(1)),
            change(CAT, "ADD", None, "No moment."),
            change(CAT, "NONE", None, "No moment."),
            change(BOAT, "ADD", None, None, day(1)),
            change(GONE, "ADD", None, "x" * 20_001, day(1)),
        ]
        where = history_at(tmp_path / "old.db", rows)
        async with open_backend("memory") as backend:
            [done] = await copied(backend, where=where)
            assert (done.memories, done.unreadable, done.saved) == (4, 3, 2)
            manager = manager_of(backend)
            assert await contents(manager) == ["No moment.", "Two."]
            found = await manager.history(f"fact:{uuid5(NAMESPACE_OID, 'mem0:7').hex}")
            assert [each.content for each in found] == ["New text.", "Old text."]
            before = await everything(backend.store)
            await copied(backend, where=where)
            assert await everything(backend.store) == before

    async def test_the_rest_follows_an_import_that_stopped_midway(self, where):
        async with open_backend("memory") as backend:

            def stop(user, number):
                raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                await copied(backend, where=where, export=EXPORT, user="bo", on_user=stop)
            done = await copied(backend, where=where, export=EXPORT, user="bo")
            assert [(each.user, each.saved) for each in done] == [("ada", 0), ("bo", 1)]


BAD = [
    ({}, "neither a list of memories"),
    ([1], "memory 1: it is no object"),
    ([{"id": TEA}], "memory 1: it has no id, or no memory"),
    ([{"id": TEA, "memory": 5}], "its memory is a text"),
    ([{"id": TEA, "memory": "x", "user_id": ""}], "user_id"),
    ([{"id": TEA, "memory": "x", "created_at": "soon"}], "its created_at is ISO 8601"),
    ([{"id": TEA, "memory": "x", "metadata": []}], "its metadata is an object"),
    ([{"id": TEA, "memory": "x", "expiration_date": "soon"}], "its expiration_date is a day"),
    ([{"id": TEA, "memory": "x"}, {"id": TEA, "memory": "y"}], "memory 2: another one has the id"),
]


@pytest.mark.parametrize(("export", "told"), BAD)
def test_what_is_no_export(export, told):
    with pytest.raises(InvalidArgumentError, match=told):
        read_export(export)


def test_other_tables_are_refused(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE history (id, url, visited)")
        connection.commit()
    with pytest.raises(ConfigurationError, match="its table history has no created_at, event"):
        open_history(str(path)).__enter__()
