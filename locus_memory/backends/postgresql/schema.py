"""The tables, as an ordered tuple of groups of statements for each part.

After group `n` of a part the table of migrations has version `n + 1` for it. A group that was
released never changes; a new one is appended. The part `vector` is applied only where the
extension `vector` is installed, which may be long after the rest.

`{items}` is the table `items` with the prefix and the schema in front, `{index:items_by_key}`
the name of an index, which never has a schema, `{schema}` the schema itself and `{vector}` the
schema of the extension `vector`. Any other braces are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from locus_memory.errors import ConfigurationError

__all__ = [
    "MIGRATIONS",
    "PROBE",
    "Names",
]

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_LONGEST_SCHEMA: Final = 63
_LONGEST_PREFIX: Final = 30
"""Bytes; with any of our names it stays below the 63 that PostgreSQL cuts names to."""

_BRACES: Final = re.compile(r"\{(index:)?([a-z][a-z_]*)\}")

# Whatever needs a name of its own to be unique, such as a thread's, has one of 16 bytes: an
# entry of an index has 2,704 bytes at most, less than a name may have. The order of names is
# that of code points whatever the database's own collation is.
#
# `newest` and `removals` are what a save checks in the row it locks. The rest of a statement
# sees the tables as they were when it started, even if it then had to wait for that row:
# https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED
#
# Metadata is `json`, which keeps the very text, where `jsonb` changes numbers: the seal of a
# record covers its metadata. Payloads are compressed already.
_CHECKPOINTS: Final = (
    """
    CREATE TABLE {threads} (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      removals bigint NOT NULL DEFAULT 0,
      digest bytea NOT NULL,
      newest bytea,
      thread_id text COLLATE "C" NOT NULL)
      WITH (fillfactor = 70)
    """,
    "CREATE UNIQUE INDEX {index:threads_by_digest} ON {threads} (digest)",
    "CREATE INDEX {index:threads_by_name} ON {threads} (left(thread_id, 500))",
    """
    CREATE TABLE {checkpoints} (
      sequence bigint GENERATED ALWAYS AS IDENTITY,
      thread bigint NOT NULL,
      revision bigint NOT NULL,
      base bigint,
      created_at double precision NOT NULL,
      size bigint NOT NULL,
      seal bigint NOT NULL,
      level integer NOT NULL,
      digest bytea NOT NULL,
      checkpoint_id text COLLATE "C" NOT NULL,
      metadata json NOT NULL,
      payload bytea NOT NULL,
      PRIMARY KEY (thread, sequence))
    """,
    "ALTER TABLE {checkpoints} ALTER COLUMN payload SET STORAGE EXTERNAL",
    "CREATE UNIQUE INDEX {index:checkpoints_by_digest} ON {checkpoints} (thread, digest)",
    "CREATE UNIQUE INDEX {index:checkpoints_by_revision} ON {checkpoints} (thread, revision)",
)

MIGRATIONS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "core": (_CHECKPOINTS,),
    "vector": (),
}

# One read tells all there is to know of a database that is up to date. Which extensions could
# be created is looked up in a folder of the server, so only where it matters.
PROBE: Final = """
SELECT
  current_setting('server_version_num')::integer AS server_version,
  (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector') AS vector_version,
  (SELECT nspname FROM pg_catalog.pg_extension AS e
   JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
   WHERE extname = 'vector')::text AS vector_schema,
  CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'vector') THEN true
  ELSE EXISTS (SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'vector')
  END AS vector_available,
  (SELECT version FROM {migrations} WHERE part = 'core') AS core,
  (SELECT version FROM {migrations} WHERE part = 'vector') AS vector
"""


@dataclass(frozen=True, slots=True)
class Names:
    """Where our tables are, and how statements name them.

    Attributes:
        schema: The schema, written out in every statement.
        prefix: What every name begins with.
        vector_schema: The schema of the extension `vector`.
    """

    schema: str = "public"
    prefix: str = "locus_"
    vector_schema: str = "public"

    def check(self) -> None:
        """Refuse what is not a plain identifier, or too long to be followed by our names.

        Raises:
            ConfigurationError: It is.
        """
        for option, value, longest in (
            ("schema", self.schema, _LONGEST_SCHEMA),
            ("table_prefix", self.prefix, _LONGEST_PREFIX),
        ):
            plain = _IDENTIFIER.fullmatch(value) is not None
            if not plain or len(value) > longest or value.startswith("pg_"):
                raise ConfigurationError(
                    f"postgresql: {option} has letters, digits and underscores, at most "
                    f"{longest}, and does not begin with a digit or pg_, unlike {value!r}"
                )

    def fill(self, template: str) -> str:
        """Return a statement with our names in place of those in braces."""
        return _BRACES.sub(self._name, template)

    def _name(self, match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind:
            return f'"{self.prefix}{name}"'
        if name == "schema":
            return f'"{self.schema}"'
        if name == "vector":
            return '"{}"'.format(self.vector_schema.replace('"', '""'))
        return f'"{self.schema}"."{self.prefix}{name}"'

    @property
    def lock(self) -> int:
        """The key of the advisory lock under which the tables are made."""
        digest = blake2b(f"locus_memory {self.schema} {self.prefix}".encode(), digest_size=8)
        return int.from_bytes(digest.digest(), "big", signed=True)
