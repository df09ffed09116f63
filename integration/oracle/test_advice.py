"""What is configured badly about an Oracle Database, as far as the views of the system tell.

A table of the user's own hides the view of the same name, so that a test can fill it.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager, suppress

import pytest

from locus_memory.backends.oracle import advice as module
from locus_memory.backends.oracle import schema
from locus_memory.errors import BackendError, ConfigurationError, MissingDriverError
from locus_memory.registry import open_backend
from locus_memory.testing.servers import OracleServer

VIEWS = {
    "V$RESOURCE_LIMIT": (
        "RESOURCE_NAME VARCHAR2(30), CURRENT_UTILIZATION NUMBER, LIMIT_VALUE VARCHAR2(40)"
    ),
    "USER_RESOURCE_LIMITS": "RESOURCE_NAME VARCHAR2(32), LIMIT VARCHAR2(40)",
    "USER_TS_QUOTAS": "TABLESPACE_NAME VARCHAR2(30), BYTES NUMBER, MAX_BYTES NUMBER",
    "ALL_TAB_STATISTICS": (
        "OWNER VARCHAR2(128), TABLE_NAME VARCHAR2(128), NUM_ROWS NUMBER, STALE_STATS VARCHAR2(3)"
    ),
    "ALL_TABLES": ("OWNER VARCHAR2(128), TABLE_NAME VARCHAR2(128), TABLESPACE_NAME VARCHAR2(30)"),
    "DBA_TABLESPACE_USAGE_METRICS": "TABLESPACE_NAME VARCHAR2(30), USED_PERCENT NUMBER",
}


async def names(backend):
    found = await backend.advice()
    assert all(each.finding and each.remedy for each in found)
    return [each.name.removeprefix("oracle.") for each in found]


@pytest.fixture(scope="module")
def server():
    try:
        with OracleServer() as server:
            yield server
    except MissingDriverError as error:
        pytest.skip(str(error))


@pytest.fixture
async def backend(server):
    async with open_backend(server.url) as backend:
        await backend.store.put(("a",), "b", 1)
        yield backend


async def run(backend, statement):
    async def work(session):
        await session.execute(statement, {})
        await session.commit()

    await backend._connection.transact(work)


@asynccontextmanager
async def view(backend, name, *rows):
    """Fill a view of the system."""
    try:
        await run(backend, f"CREATE TABLE {name} ({VIEWS[name]})")
        for row in rows:
            await run(backend, f"INSERT INTO {name} VALUES ({', '.join(map(repr, row))})")
        yield
    finally:
        with suppress(BackendError):
            await run(backend, f"DROP TABLE {name}")


async def test_of_views_that_the_user_may_not_read_there_is_no_advice(backend):
    assert await names(backend) == []


async def test_a_clock_that_differs(backend, monkeypatch):
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    assert await names(backend) == ["clock"]


async def test_sessions_against_the_limits(backend):
    rows = ("processes", 40, "      100"), ("sessions", 95, " 100"), ("sessions", 9, " UNLIMITED")
    async with view(backend, "V$RESOURCE_LIMIT", *rows):
        [found] = await backend.advice()
    assert "of sessions 5 are left" in found.finding
    async with view(backend, "USER_RESOURCE_LIMITS", ("SESSIONS_PER_USER", "4")):
        assert await names(backend) == ["connections"]
    async with view(backend, "USER_RESOURCE_LIMITS", ("SESSIONS_PER_USER", "UNLIMITED")):
        assert await names(backend) == []


async def test_a_quota_that_is_nearly_used_up(backend):
    rows = ("DATA", 95, 100), ("USERS", 95, -1), ("MORE", 50, 100)
    async with view(backend, "USER_TS_QUOTAS", *rows):
        [found] = await backend.advice()
    assert (found.name, "DATA is 95% full" in found.finding) == ("oracle.space", True)


async def test_a_tablespace_that_is_nearly_full(backend):
    rows = ("DATA", 95.5), ("OTHER", 99.9)
    async with (
        view(backend, "ALL_TABLES", ("LOCUS", "LOCUS_ITEMS", "DATA"), ("LOCUS", "MINE", "OTHER")),
        view(backend, "DBA_TABLESPACE_USAGE_METRICS", *rows),
    ):
        [found] = await backend.advice()
    assert (found.name, "DATA is 96% full" in found.finding) == ("oracle.space", True)


async def test_stale_statistics(backend):
    rows = (
        ("LOCUS", "LOCUS_ITEMS", 20_000, "YES"),
        ("LOCUS", "LOCUS_WORDS", 20_000, "NO"),
        ("LOCUS", "LOCUS_THREADS", 20, "YES"),
        ("LOCUS", "OTHER", 20_000, "YES"),
        ("OTHER", "LOCUS_ITEMS", 20_000, "YES"),
    )
    async with view(backend, "ALL_TAB_STATISTICS", *rows):
        assert await names(backend) == ["statistics"]


async def test_an_index_that_is_missing(backend):
    await run(backend, 'DROP INDEX "LOCUS_ITEMS_BY_EXPIRY"')
    try:
        [found] = await backend.advice()
    finally:
        await run(backend, 'CREATE INDEX "LOCUS_ITEMS_BY_EXPIRY" ON "LOCUS_ITEMS" ("EXPIRES_AT")')
    assert (found.name, "LOCUS_ITEMS_BY_EXPIRY" in found.finding) == ("oracle.index_missing", True)
    assert await names(backend) == []


async def test_a_connection_that_is_not_encrypted(backend, monkeypatch):
    fetch = backend._connection.fetch

    async def answer(query, binds):
        rows = await fetch(query, binds)
        return [(rows[0][0], *told, rows[0][3])] if query is module._SESSION else rows

    for told in ("tcps", "10.0.0.7"), ("tcp", "127.0.0.1"), (None, None), ("tcp", "10.0.0.7"):
        monkeypatch.setattr(backend._connection, "fetch", answer)
        assert await names(backend) == ["unencrypted"] * (told == ("tcp", "10.0.0.7"))


async def test_tables_of_an_earlier_version_are_told_before_they_change(server, monkeypatch):
    options = {"table_prefix": "FORMER_"}
    async with open_backend(server.url, **options) as backend:
        assert await backend.outdated() == []
    core = schema.core
    added = ('CREATE INDEX {index:items_by_words} ON {items} ("WORDS")',)
    # As if a later version of the library added an index.
    monkeypatch.setattr(schema, "core", lambda **given: (*core(**given), added))
    backend = open_backend(server.url, **options)
    [found] = await backend.outdated()
    assert (found.name, "schema 1, this one uses 2" in found.finding) == ("oracle.schema", True)
    assert await backend.outdated() == [found]
    async with backend:
        assert await backend.outdated() == []
    monkeypatch.undo()
    # And to the version of today, that one is newer.
    backend = open_backend(server.url, **options)
    with pytest.raises(ConfigurationError, match="upgrade locus-memory"):
        await backend.open()
    await backend.close()


async def test_no_tables_are_none_of_an_earlier_version(server):
    backend = open_backend(server.url, table_prefix="NONE_")
    assert await backend.outdated() == []
    await backend.close()
