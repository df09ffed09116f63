"""Every error of SQLite is one of ours, or plainly a bug."""

from __future__ import annotations

import sqlite3

import pytest

from locus_memory.backends.sqlite import opening
from locus_memory.backends.sqlite.connection import translated
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
        assert all(hasattr(sqlite3, name) for name in opening._ERRORS)

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
        described = opening.translate(error, "agent.db")
        assert type(described) is expected
        assert described.__cause__ is error
        assert name in str(described)
