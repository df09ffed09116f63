"""The tables of a locus_memory SQLite file.

`MIGRATIONS` is ordered: after group `n` the file's `user_version` is `n + 1`. A group that
was released never changes; a new one is appended.
"""

from __future__ import annotations

from typing import Final

__all__ = ["APPLICATION_ID", "MIGRATIONS"]

APPLICATION_ID: Final = 0x4C4D454D
"""What marks a file as ours: `LMEM` in ASCII, at byte 68 of the file."""

# An item's id comes from AUTOINCREMENT and each put takes a new one. So ids are never used
# twice, their order is the order of writes whatever the clock does, and what is cached for
# an id never goes stale. The store keeps its tables in step itself: a trigger or a foreign
# key makes SQLite open a savepoint for each statement, and at each savepoint FTS5 writes its
# index out, which takes ten times as long as the rest of a put.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE threads (id INTEGER PRIMARY KEY, thread_id TEXT NOT NULL UNIQUE)
        """,
        """
        CREATE TABLE checkpoints (
          sequence INTEGER PRIMARY KEY AUTOINCREMENT,
          thread INTEGER NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
          checkpoint_id TEXT NOT NULL, revision INTEGER NOT NULL, base INTEGER,
          level INTEGER NOT NULL, created_at REAL NOT NULL, metadata TEXT NOT NULL,
          size INTEGER NOT NULL, payload BLOB NOT NULL)
        """,
        "CREATE UNIQUE INDEX checkpoints_by_name ON checkpoints (thread, checkpoint_id)",
        "CREATE UNIQUE INDEX checkpoints_by_revision ON checkpoints (thread, revision)",
        "CREATE INDEX checkpoints_by_thread ON checkpoints (thread, sequence)",
        """
        CREATE TABLE namespaces (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          path TEXT NOT NULL UNIQUE,
          vector_deletes INTEGER NOT NULL DEFAULT 0)
        """,
        """
        CREATE TABLE items (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          namespace INTEGER NOT NULL,
          key TEXT NOT NULL, version INTEGER NOT NULL,
          created_at REAL NOT NULL, updated_at REAL NOT NULL, expires_at REAL,
          metadata TEXT NOT NULL, value TEXT NOT NULL, text TEXT NOT NULL)
        """,
        "CREATE UNIQUE INDEX items_by_key ON items (namespace, key)",
        "CREATE INDEX items_by_update ON items (namespace)",
        """
        CREATE INDEX items_by_expiry ON items (expires_at, namespace)
          WHERE expires_at IS NOT NULL
        """,
        # The scope is a word that only the items of one namespace have, so that the search of a
        # small namespace does not read through the matches of a large one.
        """
        CREATE VIEW searchable (id, scope, text) AS
          SELECT id, 'n' || namespace, text FROM items
        """,
        """
        CREATE VIRTUAL TABLE texts USING fts5 (
          scope, text, content = 'searchable', content_rowid = 'id',
          tokenize = 'porter unicode61 remove_diacritics 2')
        """,
        """
        CREATE TABLE vectors (
          item INTEGER PRIMARY KEY,
          namespace INTEGER NOT NULL, dimension INTEGER NOT NULL, vector BLOB NOT NULL)
        """,
        "CREATE INDEX vectors_by_namespace ON vectors (namespace, dimension, item)",
    ),
)
