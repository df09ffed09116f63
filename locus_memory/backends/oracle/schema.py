"""The tables of the backend, their names, and their migrations.

A name of an item, a namespace, a word or a thread is a `RAW`: bytes are compared one by one, which
is the order of code points in UTF-8, whatever `NLS_SORT` and `NLS_COMP` say. No text of a caller is
in a text column: Oracle stores an empty text as NULL, and limits a text to 4,000 bytes.

Oracle commits before and after each statement here. So each of them may be run again, and the
error that its object exists is no error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = [
    "CREATE_MIGRATIONS",
    "FIRST_VERSION",
    "LOCK_MIGRATIONS",
    "NEVER",
    "READ_MIGRATIONS",
    "SET_VERSION",
    "Names",
    "core",
    "text_index",
    "vector_index",
    "vectors",
]

NEVER: Final = 2**63 - 1
"""The moment of an item that does not expire; a NULL would need a second condition."""

_IDENTIFIER: Final = re.compile(r"[A-Z][A-Z0-9_$#]*", re.ASCII)
_BRACES: Final = re.compile(r"\{(index:)?(\w+)\}")

_LONGEST_PREFIX: Final = 64
_LONGEST_SCHEMA: Final = 128
"""An identifier has at most 128 bytes since release 12.2."""

CREATE_MIGRATIONS: Final = """
CREATE TABLE {migrations} (
  "PART" NUMBER(3) NOT NULL PRIMARY KEY, "VERSION" NUMBER(10) NOT NULL, "KIND" NUMBER(3) NOT NULL)
"""

FIRST_VERSION: Final = """
INSERT INTO {migrations} ("PART", "VERSION", "KIND") VALUES (:part, 0, 0)
"""

# Another session's DDL leaves this lock alone, since a statement of DDL commits only its own
# session: the lock has a connection of its own.
LOCK_MIGRATIONS: Final = """
SELECT m."VERSION", m."KIND" FROM {migrations} m WHERE m."PART" = :part FOR UPDATE
"""

READ_MIGRATIONS: Final = """
SELECT m."PART", m."VERSION", m."KIND" FROM {migrations} m
"""

SET_VERSION: Final = """
UPDATE {migrations} SET "VERSION" = :version, "KIND" = :kind WHERE "PART" = :part
"""


_CHECKPOINTS: Final = (
    """
CREATE TABLE {threads} (
  "DIGEST" RAW(16) NOT NULL PRIMARY KEY,
  "NAME" RAW(2000) NOT NULL UNIQUE,
  "LONG_NAME" BLOB,
  "NEWEST" RAW(17) NOT NULL,
  "GUARD" NUMBER(1) NOT NULL)
""",
    # The second foreign key keeps the base of every record.
    """
CREATE TABLE {checkpoints} (
  "THREAD" RAW(16) NOT NULL REFERENCES {threads} ("DIGEST"),
  "REVISION" NUMBER(19) NOT NULL,
  "BASE" NUMBER(19),
  "SEQUENCE" NUMBER(19) NOT NULL UNIQUE,
  "NAME" RAW(17) NOT NULL,
  "LEVEL" NUMBER(10) NOT NULL,
  "CREATED_AT" NUMBER NOT NULL,
  "SIZE" NUMBER(19) NOT NULL,
  "SEAL" NUMBER(19) NOT NULL,
  "HEAD" BLOB NOT NULL,
  "PAYLOAD" BLOB NOT NULL,
  PRIMARY KEY ("THREAD", "REVISION"),
  UNIQUE ("THREAD", "NAME"),
  FOREIGN KEY ("THREAD", "BASE") REFERENCES {checkpoints} ("THREAD", "REVISION"))
LOB ("PAYLOAD") STORE AS SECUREFILE (ENABLE STORAGE IN ROW CACHE)
""",
    # Without it, a deletion would lock the table.
    'CREATE INDEX {index:checkpoints_by_base} ON {checkpoints} ("THREAD", "BASE")',
    'CREATE INDEX {index:checkpoints_by_sequence} ON {checkpoints} ("THREAD", "SEQUENCE")',
    "CREATE SEQUENCE {sequences} CACHE 1000 ORDER",
)


def _items(fields: str) -> tuple[str, ...]:
    """Return the statements for items, with the column for filters."""
    return (
        f"""
CREATE TABLE {{items}} (
  "NAME" RAW(2000) NOT NULL PRIMARY KEY,
  "LONG_NAME" BLOB,
  "SCOPE" RAW(2000) NOT NULL,
  "VERSION" NUMBER(19) NOT NULL,
  "REVISION" NUMBER(19) NOT NULL,
  "CREATED_AT" NUMBER(19) NOT NULL,
  "UPDATED_AT" NUMBER(19) NOT NULL,
  "EXPIRES_AT" NUMBER(19) NOT NULL,
  "WORDS" NUMBER(19) NOT NULL,
  "CHECKSUM" NUMBER(19) NOT NULL,
  "DOCUMENT" BLOB,
  {fields})
""",
        'CREATE INDEX {index:items_by_scope} ON {items} ("SCOPE", "REVISION")',
        'CREATE INDEX {index:items_by_expiry} ON {items} ("EXPIRES_AT")',
        # Numbers are in order in all instances of a cluster as well.
        "CREATE SEQUENCE {revisions} CACHE 1000 ORDER",
        """
CREATE TABLE {words} (
  "WORD" RAW(64) NOT NULL,
  "NAME" RAW(2000) NOT NULL REFERENCES {items} ("NAME") ON DELETE CASCADE,
  "TIMES" NUMBER(10) NOT NULL,
  PRIMARY KEY ("WORD", "NAME"))
""",
        'CREATE INDEX {index:words_by_name} ON {words} ("NAME")',
    )


def core(*, native_json: bool) -> tuple[tuple[str, ...], ...]:
    """Return the migrations of items and checkpoints, a group for each version.

    Args:
        native_json: Whether the database has the type JSON, as it does from 21c on. The column
            holds the tokens of filters, never a value. A BLOB needs `FORMAT JSON` in 19c:
            https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/SQL-JSON-Conditions.html
    """
    fields = (
        '"FIELDS" JSON' if native_json else '"FIELDS" BLOB CHECK ("FIELDS" IS JSON FORMAT JSON)'
    )
    return ((*_items(fields), *_CHECKPOINTS),)


def vectors(dimension: int | None) -> tuple[tuple[str, ...], ...]:
    """Return the migrations of vectors, which the database has from 23ai on.

    Args:
        dimension: The length of all vectors, which an index needs; `None`: any.
    """
    length = "*" if dimension is None else str(int(dimension))
    return (
        (
            f"""
CREATE TABLE {{vectors}} (
  "NAME" RAW(2000) NOT NULL PRIMARY KEY REFERENCES {{items}} ("NAME") ON DELETE CASCADE,
  "DIMENSION" NUMBER(10) NOT NULL,
  "CHECKSUM" NUMBER(19) NOT NULL,
  "EMBEDDING" VECTOR({length}, FLOAT32))
""",
        ),
    )


_ORGANIZATIONS: Final = {
    "hnsw": "INMEMORY NEIGHBOR GRAPH",
    "ivf": "NEIGHBOR PARTITIONS",
}


def vector_index(kind: str) -> tuple[tuple[str, ...], ...]:
    """Return the migrations of the vector index.

    Args:
        kind: `"hnsw"`, a graph in the vector pool of the instance's memory, or `"ivf"`, on disk.
    """
    return (
        (
            f"""
CREATE VECTOR INDEX {{index:vectors_by_direction}} ON {{vectors}} ("EMBEDDING")
ORGANIZATION {_ORGANIZATIONS[kind]} DISTANCE COSINE WITH TARGET ACCURACY 95
""",
        ),
    )


def text_index() -> tuple[tuple[str, ...], ...]:
    """Return the migrations of the index of Oracle Text, over words that are stemmed already."""
    return (
        (
            'ALTER TABLE {items} ADD ("STEMS" CLOB)',
            """
CREATE INDEX {index:items_by_stems} ON {items} ("STEMS") INDEXTYPE IS CTXSYS.CONTEXT
PARAMETERS ('SYNC (ON COMMIT) STOPLIST CTXSYS.EMPTY_STOPLIST')
""",
        ),
    )


@dataclass(frozen=True, slots=True)
class Names:
    """The place of the library's tables, and their names in statements.

    Every name is in quotes, and in upper case, so that it needs no quotes in the owner's own
    statements.

    Attributes:
        schema: The schema, written out in every statement; `None`: that of the user.
        prefix: The beginning of every name.
    """

    schema: str | None = None
    prefix: str = "LOCUS_"

    def check(self) -> None:
        """Refuse a name that is not a plain identifier in upper case, or is too long.

        Raises:
            ConfigurationError: A name is refused.
        """
        for option, value, longest in (
            ("schema", self.schema, _LONGEST_SCHEMA),
            ("table_prefix", self.prefix, _LONGEST_PREFIX),
        ):
            if value is None:
                continue
            if not _IDENTIFIER.fullmatch(value) or len(value) > longest:
                raise ConfigurationError(
                    f"oracle: {option} has letters in upper case, digits and _ $ #, at most "
                    f"{longest}, and begins with a letter, unlike {quote(value)}"
                )

    def fill(self, template: str) -> str:
        """Return a statement in which the library's names replace those in braces."""
        return _BRACES.sub(self._name, template)

    def _name(self, match: re.Match[str]) -> str:
        name = f'"{self.prefix}{match[2].upper()}"'
        return name if self.schema is None else f'"{self.schema}".{name}'
