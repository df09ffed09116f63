"""The problems of a SQLite file as a whole."""

from __future__ import annotations

import sqlite3
from typing import Final

from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.errors import BackendCorruptError, BackendWriteError

__all__ = ["find_problems"]

_MOST: Final = 20
"""How many findings of SQLite's own are told."""

# The lowest bit of a checksum says whether the item has a vector.
_ORPHANS: Final = {
    "items without their namespace": """
        SELECT count(*) FROM items WHERE namespace NOT IN (SELECT id FROM namespaces)""",
    "items without their vector": """
        SELECT count(*) FROM items
        WHERE checksum & 1 AND revision NOT IN (SELECT id FROM vectors)""",
    "vectors without their item": """
        SELECT count(*) FROM vectors WHERE id NOT IN (SELECT revision FROM items)""",
    "vectors without their code": """
        SELECT count(*) FROM vectors AS v WHERE NOT EXISTS (
          SELECT 1 FROM codes AS c
          WHERE c.namespace = v.namespace AND c.dimension = v.dimension AND c.id = v.id)""",
    "codes without their vector": """
        SELECT count(*) FROM codes WHERE id NOT IN (SELECT id FROM vectors)""",
    "checkpoints without their thread": """
        SELECT count(*) FROM checkpoints WHERE thread NOT IN (SELECT id FROM threads)""",
}


async def find_problems(database: SQLiteDatabase) -> list[str]:
    """Return what SQLite finds in the file, and what has lost what belongs to it."""
    found: list[str] = []
    for work in (_pages, _orphans, _texts):
        # A comparison of the texts is a write to SQLite, though it changes nothing.
        run = database.write if work is _texts else database.read
        try:
            found += await run(work)
        except BackendCorruptError as error:
            found.append(str(error))
        except BackendWriteError:
            # The file can only be read.
            continue
    return found


def _pages(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(f"PRAGMA integrity_check({_MOST})").fetchall()
    return [f"sqlite: {row[0]}" for row in rows if row[0] != "ok"]


def _orphans(connection: sqlite3.Connection) -> list[str]:
    counts = {what: connection.execute(query).fetchone()[0] for what, query in _ORPHANS.items()}
    return [f"sqlite: {what}: {count}" for what, count in counts.items() if count]


def _texts(connection: sqlite3.Connection) -> list[str]:
    """Compare the index of the texts with the texts."""
    connection.execute("INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)")
    return []
