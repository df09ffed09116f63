"""Items of LangGraph's own stores, copied: values, moments, expiry, and new vectors."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("langgraph.store.sqlite")

from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from locus_memory import open_backend
from locus_memory.errors import ConfigurationError, StoreCapabilityError
from locus_memory.events import collect
from locus_memory.integrations.langgraph.importing.items import import_items, items_of, open_items
from locus_memory.integrations.langgraph.store import LocusStore
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing import FakeClock, FakeEmbedder


@contextmanager
def postgresql_store(url):
    postgres = pytest.importorskip("langgraph.store.postgres")
    with postgres.PostgresStore.from_conn_string(url) as store:
        store.setup()
        yield store


@contextmanager
def sqlite_store(where):
    with SqliteStore.from_conn_string(where) as store:
        store.setup()
        yield store


@pytest.fixture(params=["sqlite", "postgresql"])
def original(request, tmp_path):
    """A store of LangGraph with items, where it is, and the root of its namespaces."""
    root = tmp_path.name.replace(".", "-")
    if request.param == "sqlite":
        where, opened = str(tmp_path / "old.db"), sqlite_store
    else:
        from locus_memory.testing.servers import PostgreSQLServer  # noqa: PLC0415 - seldom needed

        pytest.importorskip("langgraph.store.postgres")
        server = request.getfixturevalue("postgresql_server")
        assert isinstance(server, PostgreSQLServer)
        where, opened = server.url, postgresql_store
    with opened(where) as store:
        filled(store, root)
        yield store, where, root


def filled(store, root):
    for n in range(230):
        store.put((root, "notes", f"u{n % 3}"), f"k{n}", {"n": n, "text": f"note {n} é"})
    store.put((root,), "rare / key:%", {"deep": [{"x": None, "f": 0.5}], "é": "日本"})
    store.put((root, "brief"), "soon", {"gone": False}, ttl=90 if store.supports_ttl else None)
    # The last put is the newest, and it replaces a value.
    store.put((root, "notes", "u0"), "k0", {"n": -1, "text": "put again"})


def theirs(store, root):
    found = list(store.search((root,), limit=10_000))
    return {(each.namespace, each.key): as_it_was(each) for each in found}


def as_it_was(item):
    return item.value, in_utc(item.created_at), in_utc(item.updated_at)


def in_utc(moment):
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


async def ours(where, root):
    found = await LocusStore(where).asearch((root,), limit=10_000, refresh_ttl=False)
    return {(each.namespace, each.key): as_it_was(each) for each in found}


async def copied(where, target, **given):
    async with open_items(where) as source:
        return await import_items(source, target, **given)


def of(done, root):
    return {each.namespace: each for each in done if each.namespace[0] == root}


class TestCopies:
    @pytest.mark.slow
    async def test_every_item_is_as_it_was(self, original, provider):
        store, where, root = original
        url, options = provider
        async with open_backend(url, **options) as backend:
            done = of(await copied(where, backend), root)
            assert await ours(backend, root) == theirs(store, root)
            assert sum(each.items for each in done.values()) == 232
            assert {each.items - each.saved for each in done.values()} == {0}
            newest = (await LocusStore(backend).asearch((root, "notes"), limit=1))[0]
            assert newest.key == "k0"
            again = of(await copied(where, backend), root)
            assert {(each.saved, each.kept) for each in again.values()} == {(0, 0)}

    @pytest.mark.slow
    async def test_an_expiry_goes_on(self, original):
        _, where, root = original
        clock = FakeClock(datetime.now(UTC).timestamp())
        async with open_backend("memory", clock=clock) as backend:
            await copied(where, backend)
            ours = LocusStore(backend)
            item = await backend.store.get_item((root, "brief"), "soon")
            left = item.expires_at - datetime.now(UTC)
            assert timedelta(minutes=88) < left <= timedelta(minutes=90)
            # A read restarts it, as it did.
            clock.advance(60 * 60)
            assert (await ours.aget((root, "brief"), "soon")).value == {"gone": False}
            clock.advance(80 * 60)
            assert await ours.aget((root, "brief"), "soon") is not None
            clock.advance(91 * 60)
            assert await ours.aget((root, "brief"), "soon") is None

    async def test_what_is_newer_stays_and_what_is_newer_there_is_copied(self, original):
        store, where, root = original
        name = (root, "notes", "u1")
        async with open_backend("memory") as backend:
            await copied(where, backend)
            mine = LocusStore(backend)
            await mine.aput(name, "k1", {"mine": True})
            store.put(name, "k4", {"theirs": True})
            store.put(name, "k9999", {"new": True})
            # A moment of SQLite has no fractions of a second.
            later(store, root, "k4")
            done = of(await copied(where, backend), root)
            assert (done[name].saved, done[name].kept) == (2, 1)
            assert (await mine.aget(name, "k1")).value == {"mine": True}
            assert (await mine.aget(name, "k4")).value == {"theirs": True}
            assert (await backend.store.get_item(name, "k4")).version == 2
            assert (await mine.aget(name, "k9999")).value == {"new": True}

    @pytest.mark.slow
    async def test_the_rest_follows_an_import_that_stopped_midway(self, original):
        store, where, root = original

        def stop(namespace, number):
            if namespace[0] == root:
                raise KeyboardInterrupt

        async with open_backend("memory") as backend:
            with pytest.raises(KeyboardInterrupt):
                await copied(where, backend, on_item=stop)
            assert 0 < len(await ours(backend, root)) < 232
            await copied(where, backend)
            assert await ours(backend, root) == theirs(store, root)


def later(store, root, key):
    """Set the moment of a put a minute later."""
    if isinstance(store, SqliteStore):
        statement = "UPDATE store SET updated_at = datetime(updated_at, '+1 minute') WHERE key = ?"
        store.conn.execute(statement, (key,))
        store.conn.commit()


async def test_any_store_can_be_copied():
    store = InMemoryStore()
    filled(store, "root")
    async with open_backend("memory") as backend:
        done = await import_items(items_of(store), backend)
        assert sum(each.saved for each in done) == 232
        assert await ours(backend, "root") == theirs(store, "root")
        newest = (await LocusStore(backend).asearch(("root", "notes"), limit=1))[0]
        assert newest.key == "k0"


async def test_vectors_are_made_by_the_target(tmp_path):
    where = str(tmp_path / "old.db")
    with sqlite_store(where) as store:
        store.put(("cats",), "1", {"text": "The cat is asleep.", "tags": ["pet", "cat"]})
        store.put(("cats",), "2", {"text": "A boat in the harbour.", "tags": ["sea"]})
        index = {"dims": 64, "embed": FakeEmbedder(64), "fields": ["text", "tags[*]"]}
        async with open_backend(f"sqlite:{tmp_path / 'new.db'}") as backend:
            for value in ("asleep", "awake"):
                await copied(where, backend, index=index)
                async with LocusStore(backend, index=index) as mine:
                    hits = await mine.asearch(("cats",), query="boat harbour")
                    assert hits[0].key == "2"
                    hits = await mine.asearch(("cats",), query="pet", limit=1)
                    assert (hits[0].key, round(hits[0].score, 6)) == ("1", 1.0)
                    assert value in (await mine.aget(("cats",), "1")).value["text"]
                # Another number of texts: the vectors of the first value are gone after that.
                store.put(("cats",), "1", {"text": "The cat is awake.", "tags": ["pet"]})
                later(store, "", "1")


class TestFaults:
    async def test_what_is_no_item_is_left_out_and_told(self, tmp_path):
        where = str(tmp_path / "old.db")
        with sqlite_store(where) as store:
            for n in range(5):
                store.put(("a",), f"k{n}", {"n": n})
            store.put(("a",), "past", {"n": 0}, ttl=1)
            store.conn.execute("UPDATE store SET expires_at = '2020-01-01' WHERE key = 'past'")
            changes = [("{", "k1"), ("[1]", "k2"), ('{"n": 1e999}', "k3")]
            store.conn.executemany("UPDATE store SET value = ? WHERE key = ?", changes)
            store.conn.commit()
        with collect() as events:
            async with open_backend("memory") as backend:
                [done] = await copied(where, backend)
                assert await backend.store.list_keys(("a",)) == ["k0", "k4"]
        assert (done.items, done.saved, done.expired, done.unreadable) == (2, 2, 1, 3)
        told = [each.attributes["key"] for each in events if "unreadable" in each.name]
        assert told == ["k1", "k2", "k3"]

    async def test_a_target_without_expiry_is_refused_before_anything_is_written(self, tmp_path):
        where = str(tmp_path / "old.db")
        with sqlite_store(where) as store:
            filled(store, "root")

        class Immortal(StoreWrapper):
            @property
            def capabilities(self):
                from dataclasses import replace  # noqa: PLC0415 - once

                return replace(super().capabilities, ttl=False)

        async with open_backend("memory") as backend:
            with pytest.raises(StoreCapabilityError, match="expire"):
                await copied(where, Immortal(backend.store))
            assert await backend.store.list_namespaces() == []

    async def test_other_tables_are_refused(self, tmp_path):
        where = str(tmp_path / "old.db")
        with sqlite3.connect(where) as connection:
            connection.execute("CREATE TABLE shop (a)")
        connection.close()
        with pytest.raises(ConfigurationError, match="it has no table store, but shop"):
            await copied(where, "memory")

    async def test_another_postgresql_is_refused(self, postgresql_server):
        url = f"{postgresql_server.url}?options=-csearch_path%3Dnowhere"
        with pytest.raises(ConfigurationError, match="not a database of LangGraph's store"):
            await copied(url, "memory")

    async def test_a_table_of_the_first_releases(self, tmp_path):
        where = str(tmp_path / "old.db")
        with sqlite3.connect(where) as connection:
            connection.execute(SqliteStore.MIGRATIONS[0])
            connection.execute(
                "INSERT INTO store VALUES ('a.b', 'k', '{\"n\": 1}', '2024-05-06 07:08:09', "
                "'2024-05-06 07:08:10')"
            )
        connection.close()
        async with open_backend("memory") as backend:
            [done] = await copied(where, backend)
            item = await backend.store.get_item(("a", "b"), "k")
        assert done.saved == 1
        assert (item.value, item.expires_at) == ({"n": 1}, None)
        assert item.created_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
