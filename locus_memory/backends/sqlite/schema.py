"""The tables of a locus_memory SQLite file.

`MIGRATIONS` is ordered: after group `n` the file's `user_version` is `n + 1`. A released group
never changes; a new one is appended.
"""

from __future__ import annotations

from typing import Final

__all__ = ["APPLICATION_ID", "MIGRATIONS"]

APPLICATION_ID: Final = 0x4C4D454D
"""The mark of this library's files: `LMEM` in ASCII, at byte 68 of the file."""

# Each put and each deletion takes a new revision, and no revision is ever used twice. So their
# order is the order of writes, whatever the clock does, and a file of the same revision has the
# same items. The id of a vector is the revision of its put, so a vector never changes. An item's id
# stays the same, and is its row in the text index.
#
# The store itself keeps its tables consistent. A trigger, a foreign key or a statement that may
# fail after its first row makes SQLite open a savepoint, and at each savepoint FTS5 writes its
# index out, which takes longer than the rest of a put.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE threads (id INTEGER PRIMARY KEY, thread_id TEXT NOT NULL UNIQUE)
        """,
        """
        CREATE TABLE checkpoints (
          sequence INTEGER PRIMARY KEY,
          thread INTEGER NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
          checkpoint_id TEXT NOT NULL, revision INTEGER NOT NULL, base INTEGER,
          level INTEGER NOT NULL, created_at REAL NOT NULL, metadata TEXT NOT NULL,
          size INTEGER NOT NULL, seal INTEGER NOT NULL, payload BLOB NOT NULL)
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
          id INTEGER PRIMARY KEY,
          namespace INTEGER NOT NULL,
          key TEXT NOT NULL, version INTEGER NOT NULL, revision INTEGER NOT NULL,
          created_at REAL NOT NULL, updated_at REAL NOT NULL, expires_at REAL,
          metadata TEXT NOT NULL, value TEXT NOT NULL, text TEXT NOT NULL)
        """,
        "CREATE UNIQUE INDEX items_by_key ON items (namespace, key)",
        "CREATE INDEX items_by_revision ON items (namespace, revision)",
        """
        CREATE INDEX items_by_expiry ON items (expires_at, namespace)
          WHERE expires_at IS NOT NULL
        """,
        # The scope is a word that only the items of one namespace have, so the search of a
        # small namespace does not read the matches of a large one.
        """
        CREATE VIEW searchable (id, scope, text) AS
          SELECT id, 'n' || namespace, text FROM items WHERE text <> ''
        """,
        """
        CREATE VIRTUAL TABLE texts USING fts5 (
          scope, text, content = 'searchable', content_rowid = 'id',
          tokenize = 'porter unicode61 remove_diacritics 2')
        """,
        """
        CREATE TABLE vectors (
          id INTEGER PRIMARY KEY, item INTEGER NOT NULL,
          namespace INTEGER NOT NULL, dimension INTEGER NOT NULL, vector BLOB NOT NULL)
        """,
        "CREATE INDEX vectors_by_namespace ON vectors (namespace, dimension, id, item)",
        "CREATE TABLE revisions (id INTEGER PRIMARY KEY, last INTEGER)",
        "INSERT INTO revisions (id, last) VALUES (0, 0)",
    ),
    # JSON of the source thread and checkpoint of a fork; checksums in the format of
    # `store.checksum`, NULL in a row of an earlier version. Older code that has the file open
    # cannot put from now on: it would leave the checksum of the old value.
    (
        "ALTER TABLE revisions RENAME COLUMN last TO latest",
        "ALTER TABLE checkpoints ADD COLUMN forked_from TEXT",
        "ALTER TABLE items ADD COLUMN checksum INTEGER",
        "ALTER TABLE vectors ADD COLUMN checksum INTEGER",
    ),
    # The codes of vectors, for the search of many, and the last vectors that were deleted. Older
    # code that has the file open can neither put nor delete a vector from now on: it would not keep
    # both tables. It can clear a namespace; the codes that it leaves are never found, because no id
    # of a namespace is used twice.
    (
        "ALTER TABLE revisions RENAME COLUMN latest TO newest",
        "ALTER TABLE namespaces RENAME COLUMN vector_deletes TO lost_vectors",
        """
        CREATE TABLE codes (
          namespace INTEGER NOT NULL, dimension INTEGER NOT NULL, id INTEGER NOT NULL,
          code BLOB NOT NULL, PRIMARY KEY (namespace, dimension, id)) WITHOUT ROWID
        """,
        """
        INSERT INTO codes (namespace, dimension, id, code)
        SELECT namespace, dimension, id, locus_code(vector) FROM vectors
        ORDER BY namespace, dimension, id
        """,
        """
        CREATE TABLE lost_vectors (
          namespace INTEGER NOT NULL, number INTEGER NOT NULL, id INTEGER NOT NULL,
          PRIMARY KEY (namespace, number)) WITHOUT ROWID
        """,
    ),
    # What was written since some revision, in however many namespaces.
    ("CREATE INDEX items_by_write ON items (revision)",),
    # A deletion takes a revision as well, so nobody has to remember which vectors are gone. Older
    # code that has the file open cannot write from now on: its deletions would take none.
    # The column `lost_vectors` stays: before SQLite 3.35, no column can be dropped.
    (
        "ALTER TABLE revisions RENAME COLUMN newest TO number",
        "DROP TABLE lost_vectors",
    ),
)
