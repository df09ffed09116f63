"""The tables of a locus_memory SQLite file, and every statement the store runs on them.

`MIGRATIONS` is ordered: after group `n` the file's `user_version` is `n + 1`. A group that
was released never changes; a new one is appended.
"""

from __future__ import annotations

from typing import Final

__all__ = ["APPLICATION_ID", "MIGRATIONS", "select_items", "select_texts"]

APPLICATION_ID: Final = 0x4C4D454D
"""What marks a file as ours: `LMEM` in ASCII, at byte 68 of the file."""

# An item's id comes from AUTOINCREMENT and each put takes a new one. So ids are never used
# twice, their order is the order of writes whatever the clock does, and what is cached for
# an id never goes stale.
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
          namespace INTEGER NOT NULL REFERENCES namespaces (id),
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
        CREATE TRIGGER texts_insert AFTER INSERT ON items BEGIN
          INSERT INTO texts (rowid, scope, text)
          VALUES (new.id, 'n' || new.namespace, new.text);
        END
        """,
        """
        CREATE TRIGGER texts_delete AFTER DELETE ON items BEGIN
          INSERT INTO texts (texts, rowid, scope, text)
          VALUES ('delete', old.id, 'n' || old.namespace, old.text);
        END
        """,
        """
        CREATE TABLE vectors (
          item INTEGER PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
          namespace INTEGER NOT NULL, dimension INTEGER NOT NULL, vector BLOB NOT NULL)
        """,
        "CREATE INDEX vectors_by_namespace ON vectors (namespace, dimension, item)",
        """
        CREATE TRIGGER vectors_delete AFTER DELETE ON vectors BEGIN
          UPDATE namespaces SET vector_deletes = vector_deletes + 1 WHERE id = old.namespace;
        END
        """,
    ),
)


# --- writing ------------------------------------------------------------------------------

FIND: Final = """
    SELECT n.id, i.id, i.version, i.created_at, i.expires_at
    FROM namespaces AS n LEFT JOIN items AS i ON i.namespace = n.id AND i.key = ?
    WHERE n.path = ?"""
ADD_NAMESPACE: Final = "INSERT INTO namespaces (path) VALUES (?)"
ADD_ITEM: Final = """
    INSERT INTO items
      (namespace, key, version, created_at, updated_at, expires_at, metadata, value, text)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
ADD_VECTOR: Final = "INSERT INTO vectors (item, namespace, dimension, vector) VALUES (?, ?, ?, ?)"
REMOVE_ITEM: Final = "DELETE FROM items WHERE id = ?"
REMOVE_EMPTY: Final = """
    DELETE FROM namespaces
    WHERE id = ? AND NOT EXISTS (SELECT 1 FROM items WHERE namespace = namespaces.id)"""
PURGE: Final = """
    DELETE FROM items
    WHERE id IN (SELECT id FROM items WHERE expires_at <= ? ORDER BY expires_at LIMIT 16)
    RETURNING namespace"""

# --- reading ------------------------------------------------------------------------------

_LIVE: Final = "(i.expires_at IS NULL OR i.expires_at > :now)"
_HERE: Final = "i.namespace = (SELECT id FROM namespaces WHERE path = :path)"
_BELOW: Final = "n.path >= :path AND n.path < :bound"
_COLUMNS: Final = """
    n.path, i.key, i.value, i.metadata, i.created_at, i.updated_at, i.version, i.expires_at"""

GET: Final = f"""
    SELECT {_COLUMNS} FROM namespaces AS n CROSS JOIN items AS i ON i.namespace = n.id
    WHERE n.path = :path AND i.key = :key AND {_LIVE}"""
EXISTS: Final = f"""
    SELECT 1 FROM items AS i WHERE {_HERE} AND i.key = :key AND {_LIVE}"""
GET_VECTOR: Final = f"""
    SELECT v.vector FROM items AS i CROSS JOIN vectors AS v ON v.item = i.id
    WHERE {_HERE} AND i.key = :key AND {_LIVE}"""
NAMESPACE: Final = "SELECT id FROM namespaces WHERE path = ?"
COUNT_BELOW: Final = f"""
    SELECT count(*) FROM namespaces AS n CROSS JOIN items AS i ON i.namespace = n.id
    WHERE {_BELOW} AND {_LIVE}"""
CLEAR: Final = """
    DELETE FROM items WHERE namespace IN
      (SELECT id FROM namespaces WHERE path >= :path AND path < :bound)"""
REMOVE_BELOW: Final = "DELETE FROM namespaces WHERE path >= :path AND path < :bound"


def list_namespaces(conditions: list[str]) -> str:
    """Return the query for the paths of namespaces that hold an item, in order."""
    return f"""
        SELECT n.path FROM namespaces AS n
        WHERE {" AND ".join([*conditions, "1"])}
          AND EXISTS (SELECT 1 FROM items AS i WHERE i.namespace = n.id AND {_LIVE})
        ORDER BY n.path LIMIT :limit"""


def scan_items(conditions: list[str], columns: str, *, descending: bool) -> str:
    """Return the query for items of one namespace in key order."""
