"""What is configured badly about a SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from locus_memory.backends.advice import Advice, on_folder, on_version
from locus_memory.backends.sqlite.connection.opening import MEMORY, readable_version
from locus_memory.backends.sqlite.schema import MIGRATIONS

__all__ = ["advise", "outdated"]

_MOST_FREE: Final = 0.25
_LEAST_FREE: Final = 16 * 2**20
_LONG_LOG: Final = 256 * 2**20
"""Bytes: the library empties the log long before, unless a reader never ends."""


def advise(connection: sqlite3.Connection) -> list[Advice]:
    """Return what is configured badly, and what to do."""
    file = str(connection.execute("PRAGMA database_list").fetchone()[2])
    if not file:
        return []
    return [
        *on_folder("sqlite", Path(file)),
        *_on_journal(connection),
        *_on_sizes(connection, file),
    ]


def outdated(path: str) -> list[Advice]:
    """Return advice if an earlier version of the library wrote a file, which is only read.

    Raises:
        BackendCorruptError: It is somebody else's file.
        ConfigurationError: A newer version of the library wrote it.
    """
    file = Path(path).absolute()
    if path == MEMORY or not file.is_file():
        return []
    try:
        connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
        try:
            version = readable_version(connection, path)
        finally:
            connection.close()
    except sqlite3.Error:
        # Its first use tells what is wrong.
        return []
    found = list(on_version("sqlite", path, version, len(MIGRATIONS)))
    if found and not os.access(file, os.W_OK):
        refusal = (
            "it cannot be used here, for it is read-only; open it once where it can be written"
        )
        found = [replace(each, remedy=f"{refusal}, or open a copy") for each in found]
    return found


def _on_journal(connection: sqlite3.Connection) -> Iterator[Advice]:
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != "wal":
        yield Advice(
            "sqlite.journal",
            f"the journal mode is {mode}, not wal: readers and writers block each other",
            "run PRAGMA journal_mode = wal while no process has the file open",
        )


def _on_sizes(connection: sqlite3.Connection, file: str) -> Iterator[Advice]:
    free, pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("freelist_count", "page_count", "page_size")
    )
    if free * size > _LEAST_FREE and free > pages * _MOST_FREE:
        yield Advice(
            "sqlite.free_pages",
            f"{free * size // 2**20} MB of the file are free pages",
            "locus-memory compact gives them back",
        )
    log = Path(f"{file}-wal")
    if log.exists() and log.stat().st_size > _LONG_LOG:
        yield Advice(
            "sqlite.log",
            f"the write-ahead log has {log.stat().st_size // 2**20} MB: a reader has been open for "
            "long",
            "find the process that holds a transaction open, and end it",
        )
