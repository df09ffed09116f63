"""A database that an earlier version of the library made is told before anything changes it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import asyncpg
import pytest

from locus_memory.backends.postgresql.schema import FUNCTIONS, Names
from locus_memory.backends.postgresql.schema import MIGRATIONS as GROUPS
from locus_memory.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS
from locus_memory.backends.sqlite.upkeep import advice as sqlite_advice
from locus_memory.encryption import EncryptionKeys
from locus_memory.errors import BackendCorruptError, BackendWriteError, ConfigurationError
from locus_memory.registry import open_backend


async def outdated(url, **options):
    backend = open_backend(url, **options)
    try:
        return await backend.outdated()
    finally:
        await backend.close()


def make_former(path, version=1):
    """Write a file as it was at a version."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in (each for group in MIGRATIONS[:version] for each in group):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")


async def test_a_backend_without_tables(tmp_path):
    assert await outdated("memory") == []
    assert await outdated(f"file:{tmp_path / 'folder'}") == []
    assert list(tmp_path.iterdir()) == []


class TestSQLite:
    async def test_what_is_up_to_date_or_new(self, tmp_path):
        path = tmp_path / "locus.db"
        assert await outdated("sqlite::memory:") == []
        assert await outdated(f"sqlite:{path}") == []
        assert not path.exists()
        path.touch()
        assert await outdated(f"sqlite:{path}") == []
        async with open_backend(f"sqlite:{path}") as backend:
            assert await backend.outdated() == []

    async def test_an_earlier_version(self, tmp_path):
        path = tmp_path / "locus.db"
        make_former(path)
        before = path.read_bytes()
        [found] = await outdated(f"sqlite:{path}")
        assert found.name == "sqlite.schema"
        assert f"schema 1, this one uses {len(MIGRATIONS)}" in found.finding
        assert "backup" in found.remedy
        assert path.read_bytes() == before
        keys = EncryptionKeys({"2026": bytes(32)}, "2026")
        assert await outdated(f"sqlite:{path}", encryption=keys) == [found]
        async with open_backend(f"sqlite:{path}") as backend:
            assert await backend.outdated() == []

    async def test_one_that_nobody_may_write(self, tmp_path, monkeypatch):
        path = tmp_path / "locus.db"
        make_former(path)
        # For the administrator, who may write every file, as for others.
        monkeypatch.setattr(sqlite_advice.os, "access", lambda *_: False)
        [found] = await outdated(f"sqlite:{path}")
        assert "read-only" in found.remedy

    async def test_what_cannot_be_used_is_an_error(self, tmp_path):
        path = tmp_path / "locus.db"
        make_former(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
        with pytest.raises(ConfigurationError, match="upgrade locus-memory"):
            await outdated(f"sqlite:{path}")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA application_id = 1")
        with pytest.raises(BackendCorruptError, match="another program"):
            await outdated(f"sqlite:{path}")

    async def test_what_is_no_database_is_left_to_its_first_use(self, tmp_path):
        path = tmp_path / "locus.db"
        path.write_bytes(b"this is not a database" * 100)
        assert await outdated(f"sqlite:{path}") == []


class TestPostgreSQL:
    @pytest.fixture
    async def owner(self, postgresql_server):
        connection = await asyncpg.connect(postgresql_server.url)
        yield connection
        await connection.close()

    @pytest.fixture
    async def place(self, owner, tmp_path):
        """A schema of an earlier version."""
        place = Names(schema=f"former_{abs(hash(str(tmp_path))) % 10**9}")
        for statement in (
            "CREATE SCHEMA {schema}",
            "CREATE TABLE {migrations} (part text PRIMARY KEY, version integer NOT NULL)",
            *(each for group in GROUPS["core"][:2] for each in group),
            FUNCTIONS["core"],
            "INSERT INTO {migrations} VALUES ('core', 2)",
        ):
            await owner.execute(place.fill(statement))
        yield place
        await owner.execute(place.fill("DROP SCHEMA {schema} CASCADE"))

    async def test_an_earlier_version(self, postgresql_server, owner, place):
        url, schema = postgresql_server.url, place.schema
        [found] = await outdated(url, schema=schema)
        assert (found.name, "schema 2" in found.finding) == ("postgresql.schema", True)
        assert "other sessions" in found.remedy
        assert await owner.fetchval(place.fill("SELECT version FROM {migrations}")) == 2
        async with open_backend(url, schema=schema) as backend:
            assert await backend.outdated() == []

    async def test_a_schema_without_tables(self, postgresql_server):
        assert await outdated(postgresql_server.url, schema="nowhere_at_all") == []

    async def test_a_role_that_may_not_change_the_tables(self, postgresql_server, owner, place):
        role = place.schema
        await owner.execute(f"CREATE ROLE {role} LOGIN")
        try:
            await owner.execute(place.fill(f"GRANT USAGE ON SCHEMA {{schema}} TO {role}"))
            rights = "SELECT, INSERT, UPDATE, DELETE"
            await owner.execute(
                place.fill(f"GRANT {rights} ON ALL TABLES IN SCHEMA {{schema}} TO {role}")
            )
            scheme, _, rest = postgresql_server.url.partition("://")
            url = f"{scheme}://{role}@{rest.rpartition('@')[2]}"
            [found] = await outdated(url, schema=place.schema)
            assert f"the owner of its tables, which {role} is not" in found.remedy
            backend = open_backend(url, schema=place.schema)
            with pytest.raises(BackendWriteError, match="core 2, this one uses"):
                await backend.store.get(("a",), "b")
            await backend.close()
        finally:
            await owner.execute(f"DROP OWNED BY {role}")
            await owner.execute(f"DROP ROLE {role}")

    async def test_a_newer_version_asks_for_an_upgrade(self, postgresql_server, owner, place):
        await owner.execute(place.fill("UPDATE {migrations} SET version = 99"))
        assert await outdated(postgresql_server.url, schema=place.schema) == []
        backend = open_backend(postgresql_server.url, schema=place.schema)
        with pytest.raises(ConfigurationError, match="upgrade locus-memory"):
            await backend.store.get(("a",), "b")
        await backend.close()
