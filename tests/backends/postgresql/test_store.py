"""What the PostgreSQL store does inside its database."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys

import asyncpg
import pytest

from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.items import queries
from locus_memory.backends.postgresql.items.naming import Address
from locus_memory.backends.postgresql.items.rows import Row, addresses_of, contents_of
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.selection import path_of
from locus_memory.errors import (
    BackendError,
    ConfigurationError,
    StoreCapabilityError,
)
from locus_memory.events import subscribe
from locus_memory.store.item import Delete, Put
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.servers import PostgreSQLServer

NS = ("store",)
BELOW = ("store", "below")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def store(url, schema, clock):
    async with PostgreSQLStore(url, schema=schema, clock=clock) as store:
        yield store


@pytest.fixture
async def other(url, schema, clock, store):
    """The same tables, opened as another process would."""
    async with PostgreSQLStore(url, schema=schema, clock=clock) as other:
        yield other


async def count(store, table):
    return await store._connection.fetchval(f"SELECT count(*) FROM {{{table}}}")


async def keys(found):
    return [item.key for item in await found]


class TestOptions:
    @pytest.mark.parametrize(
        "options",
        [
            {"embedding_dimension": 0},
            {"vector_index": "ivfflat"},
            {"exact_below": -1},
            {"schema": "a b"},
            {"pool_size": 0},
        ],
    )
    def test_one_that_cannot_work_is_refused(self, options):
        with pytest.raises(ConfigurationError):
            PostgreSQLStore("agent", **options)

    @pytest.mark.slow
    def test_importing_it_loads_no_numpy(self):
        script = "import sys, locus_memory.backends.postgresql.store as s; 'numpy' in sys.modules"
        run = f"{script} and sys.exit(1)"
        assert subprocess.run([sys.executable, "-c", run], check=False).returncode == 0

    def test_the_repr_names_the_database(self):
        made = PostgreSQLStore("postgresql://ada:hunter2@localhost/agent")
        assert repr(made) == "PostgreSQLStore('localhost/agent')"


class TestOwnership:
    async def test_a_pool_of_asyncpg_is_not_closed(self, url, schema):
        async with asyncpg.create_pool(url, min_size=1, max_size=2) as pool:
            async with PostgreSQLStore(pool=pool, schema=schema) as store:
                await store.put_with_embedding(NS, "k", 1, [1.0, 0.0])
                assert len(await store.search_by_embedding(NS, [1.0, 0.0])) == 1
            assert await pool.fetchval("SELECT 1") == 1

    async def test_it_works_without_prepared_statements(self, url, schema, clock):
        async with PostgreSQLStore(url, schema=schema, clock=clock, pooler=True) as store:
            assert await store.put_batch([(NS, "a", "fox"), (NS, "b", "dog")]) == [1, 1]
            await store.put_with_embedding(NS, "c", "cat", [1.0, 0.0], ttl=5)
            assert await keys(store.search(NS, "fox")) == ["a"]
            assert len(await store.search_by_embedding(NS, [1.0, 0.0])) == 1
            assert await store.write_batch([Delete(namespace=NS, key="a", if_version=1)]) == [True]
            assert await store.clear_namespace(NS) == 2


class TestCapabilities:
    async def test_nothing_is_claimed_before_it_is_known(self, url, schema):
        store = PostgreSQLStore(url, schema=schema, embedding_dimension=3)
        before = store.capabilities
        assert (before.semantic_search, before.embedding_dimension) == (False, None)
        async with store:
            after = store.capabilities
            assert (after.semantic_search, after.embedding_dimension) == (True, 3)


@pytest.fixture
async def plain(url, schema, clock, own_tables):
    """A store whose role may not create the extension, in a database without it."""
    admin = await asyncpg.connect(url)
    names = schema, f"role_{schema}"
    await admin.execute(f"CREATE DATABASE {names[0]}")
    await admin.execute(f"CREATE ROLE {names[1]} LOGIN")
    inside = url.replace("/postgres", f"/{names[0]}")
    owner = await asyncpg.connect(inside)
    await owner.execute(f"CREATE SCHEMA memory AUTHORIZATION {names[1]}")
    await owner.close()
    theirs = inside.replace("locus@", f"{names[1]}@")
    async with PostgreSQLStore(theirs, schema="memory", clock=clock) as store:
        yield store
    await admin.execute(f"DROP DATABASE {names[0]}")
    await admin.execute(f"DROP ROLE {names[1]}")
    await admin.close()


class TestWithoutVectors:
    @pytest.mark.slow
    async def test_it_says_so(self, plain):
        claimed = plain.capabilities
        assert not claimed.semantic_search
        assert claimed.search
        assert claimed.transactions
        put = Put(namespace=NS, key="k", value=1, embedding=[1.0])
        for call in (
            plain.put_with_embedding(NS, "k", 1, [1.0]),
            plain.get_embedding(NS, "k"),
            plain.search_by_embedding(NS, [1.0]),
            plain.put_batch([put]),
            plain.write_batch([put]),
        ):
            with pytest.raises(StoreCapabilityError, match="CREATE EXTENSION vector"):
                await call
        assert await plain.list_keys(NS) == []

    @pytest.mark.slow
    async def test_everything_else_works(self, plain, clock):
        assert await plain.put(NS, "a", "red fox", {"n": 1}) == 1
        assert await plain.put_batch([(NS, "a", "a fox"), (NS, "b", "dog")]) == [2, 1]
        assert await plain.put(BELOW, "c", "cat", ttl=5) == 1
        assert await plain.put(NS, "a", "fox", {"n": 2}, if_version=2) == 3
        assert await keys(plain.search(NS, "foxes", filter={"n": 2})) == ["a"]
        assert await plain.list_namespaces() == [NS, BELOW]
        clock.advance(5)
        assert await plain.list_namespaces() == [NS]
        results = await plain.write_batch(
            [Delete(namespace=NS, key="b", if_version=1), Put(namespace=NS, key="b", value=1)]
        )
        assert results == [True, 1]
        assert await plain.delete_batch([(NS, "a"), (NS, "x")]) == 1
        await plain.compact()
        assert await plain.clear_namespace(NS, recursive=True) == 1

    async def test_whoever_knows_no_vectors_still_makes_them_stale(self, store):
        await store.put_with_embedding(NS, "k", "old", [1.0, 0.0])
        row = Row.of(Address.of(NS, "k"), Put(NS, "k", "new"))
        columns = *addresses_of([row]), *contents_of([row])
        assert await store._connection.fetchval(queries.PUT_MANY, "now", *columns) == "2"
        assert await count(store, "vectors") == 1
        assert await store.get_embedding(NS, "k") is None
        assert await store.search_by_embedding(NS, [1.0, 0.0]) == []
        await store.put_with_embedding(NS, "k", "newer", [0.0, 1.0])
        assert await store.get_embedding(NS, "k") == [0.0, 1.0]


class TestConcurrency:
    @pytest.mark.slow
    async def test_versions_are_exact_across_processes(self, url, schema, store, run_python):
        script = """
import asyncio, sys
from locus_memory.backends.postgresql.items.naming import Address
from locus_memory.backends.postgresql.items.rows import Row
from locus_memory.backends.postgresql.store import PostgreSQLStore

async def main():
    async with PostgreSQLStore(sys.argv[1], schema=sys.argv[2], pool_size=4) as store:
        for n in range(15):
            await asyncio.gather(
                store.put(("store",), "k", n),
                store.put_batch([(("store",), "k", n), (("store",), "l", n)]),
                store.put_with_embedding(("store",), "k", n, [1.0, n]),
            )

asyncio.run(main())
"""
        threads = [asyncio.to_thread(run_python, script, url, schema) for _ in range(3)]
        for done in await asyncio.gather(*threads):
            assert done.returncode == 0, done.stderr
        assert (await store.get_item(NS, "k")).version == 3 * 15 * 3
        assert (await store.get_item(NS, "l")).version == 3 * 15

    @pytest.mark.slow
    async def test_batches_in_any_order_do_not_wait_for_each_other(self, store, other):
        names = [f"{n}" for n in range(30)]
        put = [Put(namespace=NS, key=key, value=1, embedding=[1.0, 0.0]) for key in names]
        calls = []
        for store_, order in ((store, 1), (other, -1)):
            for _ in range(6):
                calls += [
                    store_.put_batch(put[::order]),
                    store_.put_batch([(NS, key, 2) for key in names[::order]]),
                    store_.write_batch([*put[::order], Delete(namespace=NS, key=names[0])]),
                    store_.delete_batch([(NS, key) for key in names[::order]]),
                    store_.clear_namespace(NS),
                ]
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        before = await store._connection.fetchval(deadlocks)
        await asyncio.gather(*calls)
        assert await store._connection.fetchval(deadlocks) == before
        await store.clear_namespace(NS)
        assert await count(store, "vectors") == 0


class TestTidiness:
    async def test_nothing_is_left_of_what_was_deleted(self, store):
        await store.put_with_embedding(NS, "a", "some words", [1.0, 0.0])
        await store.put_with_embedding(NS, "b", "more words", [1.0, 0.0], ttl=5)
        await store.put_with_embedding(BELOW, "c", "last words", [1.0, 0.0])
        await store.delete(NS, "a")
        await store.clear_namespace(NS, recursive=True)
        assert [await count(store, table) for table in ("items", "vectors")] == [0, 0]

    @pytest.mark.slow
    async def test_compacting_takes_deleted_rows_out_of_the_files(self):
        size = "SELECT pg_relation_size('{items}'::regclass)"
        # On a server of its own: rows stay for as long as anybody there may see them.
        with PostgreSQLServer(autovacuum="off") as server:
            async with PostgreSQLStore(server.url) as store:
                await store.put_batch([(NS, f"{n}", "words") for n in range(100)])
                assert await store._connection.fetchval(size) > 0
                await store.clear_namespace(NS)
                await store.compact()
                assert await store._connection.fetchval(size) == 0

    async def test_writes_purge_what_has_expired(self, store, clock):
        for n in range(20):
            await store.put_with_embedding(("old", f"{n}"), "k", "old", [1.0, 0.0], ttl=5)
        clock.advance(5)
        await store.put_batch([(NS, f"{n}", 1) for n in range(1100)])
        assert await count(store, "items") == 1100
        assert await count(store, "vectors") == 0

    async def test_the_first_write_of_a_process_purges(self, store, other, clock):
        await store.put(NS, "old", 1, ttl=5)
        clock.advance(5)
        await other.put(NS, "new", 1)
        assert await count(store, "items") == 1

    async def test_a_purge_leaves_what_is_being_written(self, store, other, clock):
        await store.put_batch([Put(namespace=NS, key=key, value=1, ttl=5) for key in "ab"])
        clock.advance(5)
        async with store._connection.transaction() as connection:
            sql = "SELECT name FROM {items} WHERE key = 'a' FOR UPDATE"
            await connection.fetch(store._connection.sql(sql))
            assert await other.put(NS, "c", 1) == 1
        assert await count(store, "items") == 2

    async def test_a_purge_that_fails_fails_nobody(self, store, monkeypatch):
        async def refuse(*_):
            raise BackendError("no")

        monkeypatch.setattr(store._purging, "_purge", refuse)
        events = []
        stop = subscribe(events.append)
        try:
            assert await store.put(NS, "k", 1) == 1
        finally:
            stop()
        assert [event.name for event in events] == ["postgresql.purge_failed"]


class TestLongNames:
    async def test_keys_that_differ_late_are_in_order(self, store):
        stem = "🦊" * 499
        names = sorted([stem, *(stem + end for end in ("a", "b", "bb", "\x00", "é" * 600, "🦊c"))])
        await store.put_batch([(NS, name, 1) for name in names[::-1]])
        assert await store.list_keys(NS) == names
        assert await keys(store.scan(NS, descending=True)) == names[::-1]
        for index, name in enumerate(names):
            assert await store.list_keys(NS, 2, after=name) == names[index + 1 : index + 3]
            below = await keys(store.scan(NS, after=name, descending=True))
            assert below == names[:index][::-1]
            assert await store.list_keys(NS, prefix=name) == [
                each for each in names if each.startswith(name)
            ]

    @pytest.mark.slow
    async def test_a_key_of_a_megabyte(self, store):
        name = "k\x00é" * 300_000
        await store.put(NS, name, 1)
        assert await store.list_keys(NS) == [name]
        assert await store.delete(NS, name)

    async def test_a_depth_of_nothing_lists_nothing(self, store):
        await store.put(NS, "k", 1)
        assert await store.list_namespaces(max_depth=0) == []


@pytest.mark.usefixtures("own_tables")
class TestPlans:
    """What is asked often must never read or sort more than it returns."""

    @pytest.fixture
    async def filled(self, store):
        for start in range(0, 3000, 1000):
            await store.put_batch(
                [
                    Put(namespace=("large",), key=f"{n:05}", value=n, text="")
                    for n in range(start, start + 1000)
                ]
            )
        await store.put_batch([(("small", f"{n}"), "k", n) for n in range(300)])
        await store._connection.execute("ANALYZE {items}")
        return store

    async def plan(self, store, template, *arguments, explain="EXPLAIN "):
        rows = await store._connection.fetch(explain + template, *arguments)
        return "\n".join(row[0] for row in rows)

    @pytest.fixture
    def spied(self, filled, monkeypatch):
        """Returns the plan of the last statement a call fetched rows with."""
        asked = []
        fetch = PostgreSQLPool.fetch

        async def spy(pool, template, *arguments):
            asked.append((template, arguments))
            return await fetch(pool, template, *arguments)

        async def plan_of(call, **how):
            with monkeypatch.context() as patch:
                patch.setattr(PostgreSQLPool, "fetch", spy)
                await call
            template, arguments = asked[-1]
            return await self.plan(filled, template, *arguments, **how)

        return plan_of

    @pytest.mark.slow
    async def test_a_page_of_keys_goes_by_the_index(self, filled, spied):
        for options in ({}, {"after": "00500"}, {"prefix": "01"}):
            plan = await spied(filled.scan(("large",), 20, **options))
            assert "locus_items_pkey" in plan
            assert "Seq Scan" not in plan
            assert "Sort" not in plan.replace("Incremental Sort", "").replace("Sort Key", "")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("call", "index"),
        [
            (lambda s: s.search(("large",), limit=20), "Backward using locus_items_by_revision"),
            (
                lambda s: s.search(("large",), limit=20, recursive=True),
                "Backward using locus_items_by_revision",
            ),
            (lambda s: s.search(("small", "7"), limit=20, recursive=True), "items_pkey"),
            (lambda s: s.list_namespaces(limit=5), "items_pkey"),
            (lambda s: s.get_batch([(("large",), f"{n:05}") for n in range(20)]), "items_pkey"),
            (lambda s: s.delete_batch([(("large",), f"{n:05}") for n in range(20)]), "items_pkey"),
        ],
    )
    async def test_it_goes_by_an_index(self, filled, spied, call, index):
        await filled.put(("large", "below"), "k", 1)
        plan = await spied(call(filled))
        assert index in plan
        assert "Seq Scan" not in plan

    @pytest.mark.slow
    async def test_keys_whose_names_are_cut_are_sorted_a_page_at_a_time(self, filled, spied):
        await filled.put_batch([(("large",), f"{n:0700}", n) for n in range(300)])
        plan = await spied(filled.scan(("large",), 20))
        assert plan.count("locus_items_pkey") == 2
        assert "Seq Scan" not in plan

    @pytest.mark.slow
    @pytest.mark.parametrize("what", ["namespaces", "newest"])
    async def test_no_more_of_a_namespace_is_read_than_is_returned(self, filled, spied, what):
        calls = {
            "namespaces": lambda: filled.list_namespaces(limit=5),
            "newest": lambda: filled.search(("large",), limit=5, recursive=True),
        }
        found = await spied(calls[what](), explain="EXPLAIN (ANALYZE) ")
        rows = re.findall(r"actual time=\S+ rows=([\d.]+) loops=(\d+)", found)
        assert rows
        assert max(float(count) * int(loops) for count, loops in rows) <= 20

    async def test_a_tree_is_cleared_by_the_names(self, filled):
        path = path_of(("small",))
        arguments = path, "now", path + "\x01", path, path + "\x02"
        plan = await self.plan(filled, queries.CLEAR, *arguments)
        assert "items_pkey" in plan
        assert "Seq Scan" not in plan

    async def test_expired_items_are_found_by_their_index(self, filled):
        plan = await self.plan(filled, queries.PURGE, "now", 10)
        assert "items_by_expiry" in plan
        assert "Seq Scan" not in plan
