"""Every error of SQLite is one of ours, or plainly a bug."""

from __future__ import annotations

import sqlite3

import pytest

from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.backends.sqlite.connection import driver_errors
from locus_memory.backends.sqlite.connection.driver_errors import translated
from locus_memory.errors import (
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
)


class TestErrors:
    def test_every_class_of_sqlite3_is_decided(self):
        bugs = {"InterfaceError", "NotSupportedError", "ProgrammingError"}
        pending = [sqlite3.Error]
        while pending:
            kind = pending.pop()
            pending += kind.__subclasses__()
            expected = kind if kind.__name__ in bugs else BackendError
            with pytest.raises(expected), translated("agent.db"):
                raise kind("on purpose")

    def test_the_table_names_real_codes(self):
        assert all(hasattr(sqlite3, name) for name in driver_errors._CODES)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("SQLITE_BUSY_SNAPSHOT", BackendUnavailableError),
            ("SQLITE_READONLY_DBMOVED", BackendWriteError),
            ("SQLITE_IOERR_WRITE", BackendWriteError),
            ("SQLITE_IOERR_READ", BackendUnavailableError),
            ("SQLITE_CORRUPT_VTAB", BackendCorruptError),
            ("SQLITE_CONSTRAINT_UNIQUE", BackendError),
        ],
    )
    def test_an_extended_code_counts_as_its_primary_one(self, name, expected):
        error = sqlite3.OperationalError("on purpose")
        error.sqlite_errorname = name
        described = driver_errors.translate(error, "agent.db")
        assert type(described) is expected
        assert described.__cause__ is error
        assert name in str(described)

    def test_a_schema_that_is_no_text_is_damaged(self):
        damaged = pytest.raises(BackendCorruptError, match=r"agent\.db: its schema is damaged")
        with damaged, translated("agent.db"):
            b"\xff".decode()


DAMAGES = [
    "DROP TABLE checkpoints",
    "DROP TABLE items",
]
CHANGES = [
    "ALTER TABLE checkpoints RENAME COLUMN payload TO other",
    "ALTER TABLE items RENAME COLUMN value TO other",
]


class TestSchema:
    @pytest.mark.parametrize("damage", DAMAGES)
    async def test_a_file_of_ours_that_lacks_what_it_needs_is_corrupt(self, tmp_path, damage):
        path = tmp_path / "agent.db"
        async with SQLiteBackend(path) as backend:
            await backend.store.put(("n",), "k", 1)
            await backend.checkpointer.save({"n": 1}, "t")
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA legacy_alter_table = ON")
        connection.execute(damage)
        connection.close()
        async with SQLiteBackend(path) as backend:
            if "checkpoints" in damage:
                calls = backend.checkpointer.load("t"), backend.checkpointer.save({}, "t")
            else:
                calls = backend.store.get(("n",), "k"), backend.store.put(("n",), "k", 2)
            for call in calls:
                with pytest.raises(BackendCorruptError, match="no such"):
                    await call

    @pytest.mark.parametrize("change", CHANGES)
    async def test_a_table_of_ours_that_was_changed_is_not_opened(self, tmp_path, change):
        path = tmp_path / "agent.db"
        async with SQLiteBackend(path) as backend:
            await backend.store.put(("n",), "k", 1)
        connection = sqlite3.connect(path)
        connection.execute(change)
        connection.close()
        with pytest.raises(BackendCorruptError, match="not of this library: table"):
            async with SQLiteBackend(path):
                pass

    async def test_a_damaged_schema_is_corrupt_whatever_is_asked(self, tmp_path):
        path = tmp_path / "agent.db"
        async with SQLiteBackend(path) as backend:
            await backend.checkpointer.save({"n": 1}, "t")
        whole = path.read_bytes()
        create, name = b"CREATE TABLE checkpoints", b"tablecheckpoints"
        assert whole.count(name) == whole.count(create) == 1
        spoilt = whole.replace(create, b"\xff" + create[1:])
        for damaged in (spoilt, spoilt.replace(name, b"table\xffheckpoints")):
            path.write_bytes(damaged)
            backend = SQLiteBackend(path)
            for call in (
                backend.checkpointer.load("t"),
                backend.checkpointer.get_metadata("t"),
                backend.checkpointer.list_threads(),
                backend.checkpointer.save({}, "t"),
                backend.store.get(("n",), "k"),
                backend.store.put(("n",), "k", 1),
            ):
                with pytest.raises(BackendCorruptError):
                    await call
            await backend.close()
