"""What is configured badly about a SQLite file."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Final

from locus_memory.backends.advice import Advice, Check, by_facts, on_folder, on_version
from locus_memory.backends.sqlite.connection.opening import MEMORY, readable_version
from locus_memory.backends.sqlite.schema import MIGRATIONS

__all__ = ["advise", "outdated"]

_MB: Final = 2**20
_MOST_FREE: Final = 0.25
_LEAST_FREE: Final = 16
_LONG_LOG: Final = 256
"""Megabytes: the library empties the log long before, unless a reader never ends."""

_CHECKS: Final = (
    Check(
        "journal",
        lambda case: case["journal"] != "wal",
        "the journal mode is {journal}, not wal: readers and writers block each other",
        "run PRAGMA journal_mode = wal while no process has the file open",
    ),
    Check(
        "free_pages",
        lambda case: case["free"] > max(_LEAST_FREE, case["size"] * _MOST_FREE),
        "{free:.0f} MB of the file are free pages",
        "locus-memory compact gives them back",
    ),
    Check(
        "log",
        lambda case: case["log"] > _LONG_LOG,
        "the write-ahead log has {log:.0f} MB: a reader has been open for long",
        "find the process that holds a transaction open, and end it",
    ),
)


def advise(connection: sqlite3.Connection) -> list[Advice]:
    """Return what is configured badly, and what to do."""
    file = str(connection.execute("PRAGMA database_list").fetchone()[2])
    if not file:
        return []
    journal, free, pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "freelist_count", "page_count", "page_size")
    )
    log = Path(f"{file}-wal")
    facts = {
        "journal": journal,
        "free": free * size / _MB,
        "size": pages * size / _MB,
        "log": log.stat().st_size / _MB if log.exists() else 0,
    }
    return [*on_folder("sqlite", Path(file)), *by_facts("sqlite", _CHECKS, [facts])]


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
