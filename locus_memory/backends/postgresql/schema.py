"""The tables, as an ordered tuple of groups of statements for each part.

After group `n` of a part the table of migrations has version `n + 1` for it. A released group
never changes; a new one is appended, an empty one if only a function changes. The part
`vector` is applied only if the extension `vector` is installed, which may be long after the
rest.

`{items}` is the table `items` with the prefix and the schema in front, `{index:items_by_key}`
the name of an index, which never has a schema, `{schema}` the schema itself and `{vector}` the
schema of the extension `vector`. Other braces are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = [
    "FUNCTIONS",
    "MIGRATIONS",
    "PROBE",
    "Names",
]

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_LONGEST_SCHEMA: Final = 63
_LONGEST_PREFIX: Final = 30
"""Bytes; with any name of the library it stays below the 63 to which PostgreSQL cuts names."""

_BRACES: Final = re.compile(r"\{(index:)?([a-z][a-z_]*)\}")

# Unique names, such as those of threads, have 16 bytes each: an index entry has at most 2,704
# bytes, and a name may have more. Names are in the order of code points, whatever the
# database's own collation is.
#
# A save checks `newest` and `removals` in the row it locks. The rest of a statement
# sees the tables as they were when it started, even if it then had to wait for that row:
# https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED
#
# Metadata is `json`, which keeps the exact text, while `jsonb` changes numbers: the seal of a
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

# A checkpoint whose name is a UUID has it in `digest` alone, after a zero, and `checkpoint_id` is
# empty. A delta names its base by revision, for readers of the record, and by sequence, which the
# primary key finds. `seal` is an unsigned number of 32 bits less 2**31.
_COMPACT_CHECKPOINTS: Final = (
    "LOCK TABLE {threads}, {checkpoints} IN ACCESS EXCLUSIVE MODE",
    # A save updates its thread in place, and the server prunes the page as it is written: almost
    # nothing is left for a vacuum.
    "ALTER TABLE {threads} SET (autovacuum_vacuum_threshold = 1000)",
    "DROP INDEX {checkpoints_by_digest}",
    "ALTER TABLE {checkpoints} ADD COLUMN base_sequence bigint",
    """
    UPDATE {checkpoints} AS c
    SET base_sequence = (
      SELECT b.sequence FROM {checkpoints} AS b WHERE b.thread = c.thread AND b.revision = c.base)
    WHERE base IS NOT NULL
    """,
    """
    UPDATE {checkpoints} SET checkpoint_id = '',
      digest = '\\x00' || decode(replace(checkpoint_id, '-', ''), 'hex')
    WHERE checkpoint_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    """,
    "DROP INDEX {checkpoints_by_revision}",
    # This rewrites the table, so the space of old row versions is freed.
    """
    ALTER TABLE {checkpoints} ALTER COLUMN level TYPE smallint,
      ALTER COLUMN seal TYPE integer USING seal - 2147483648
    """,
    "CREATE UNIQUE INDEX {index:checkpoints_by_digest} ON {checkpoints} (thread, digest)",
    """
    UPDATE {threads} AS t SET newest = (
      SELECT digest FROM {checkpoints} AS c WHERE c.thread = t.id ORDER BY sequence DESC LIMIT 1)
    """,
)

# JSON of the source thread and checkpoint of a fork, as text, which keeps any name; and checksums
# in the format of `store.checksum`, 0 in a row of an earlier version. The statements of older
# versions fail from here on: they would leave the checksums of the old values.
_CHECKSUMS: Final = (
    "ALTER TABLE {checkpoints} ADD COLUMN forked_from text",
    "ALTER TABLE {items} ADD COLUMN checksum bigint NOT NULL DEFAULT 0",
    "ALTER TABLE {items} ALTER COLUMN checksum DROP DEFAULT",
    # Its arguments change here.
    "DROP FUNCTION IF EXISTS {change_items}",
)

_CHECKSUMS_OF_VECTORS: Final = (
    "ALTER TABLE {vectors} ADD COLUMN checksum bigint",
    "DROP FUNCTION IF EXISTS {change_vectors}",
)

# `scope` is a digest of an item's namespace. Each put takes a new revision, so their order is
# that of the writes, whatever the clock does.
#
# `jsonb` has the format of `documents`, `words` that of `texts`; `length` is the number of words.
_ITEMS: Final = (
    "CREATE SEQUENCE {revisions}",
    """
    CREATE TABLE {items} (
      id uuid PRIMARY KEY,
      scope uuid NOT NULL,
      version bigint NOT NULL,
      revision bigint NOT NULL,
      created_at timestamptz NOT NULL,
      updated_at timestamptz NOT NULL,
      expires_at timestamptz,
      length integer NOT NULL,
      path text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      metadata jsonb NOT NULL,
      value jsonb NOT NULL,
      words tsvector NOT NULL)
    """,
    "CREATE INDEX {index:items_by_key} ON {items} (left(path, 300), left(key, 300))",
    "CREATE INDEX {index:items_by_revision} ON {items} (scope, revision) INCLUDE (length)",
    """
    CREATE INDEX {index:items_by_expiry} ON {items} (expires_at) WHERE expires_at IS NOT NULL
    """,
    "CREATE INDEX {index:items_by_word} ON {items} USING gin (words)",
)

# Names as in `naming`, in place of the digest that was an item's id. The statements of older
# versions fail from here on, and write nothing.
_NAMES: Final = (
    # Every writer locks the items before the vectors.
    "LOCK TABLE {items} IN ACCESS EXCLUSIVE MODE",
    "DROP FUNCTION IF EXISTS {write_items}",
    "ALTER TABLE IF EXISTS {vectors} DROP CONSTRAINT IF EXISTS {index:vectors_id_fkey}",
    "DROP INDEX {items_by_key}",
    """
    ALTER TABLE {items} ALTER COLUMN id TYPE text COLLATE "C" USING
      CASE WHEN length(path) + length(key) < 600 THEN path || chr(1) || key
      ELSE left(path || chr(1) || key, 600)
        || encode(sha256(convert_to(path || chr(1) || key, 'UTF8')), 'hex') END
    """,
    "ALTER TABLE {items} RENAME COLUMN id TO name",
)

# A search of a tree needs the number of its items, and their mean length: with the length in the
# index of the names, it reads no item for that.
_LENGTHS: Final = (
    "LOCK TABLE {items} IN ACCESS EXCLUSIVE MODE",
    """
    DO $block$
    DECLARE
      has_vectors boolean := EXISTS (
        SELECT FROM pg_catalog.pg_constraint
        WHERE conrelid = pg_catalog.to_regclass('{vectors}')
          AND confrelid = '{items}'::regclass
          AND conname = btrim('{index:vectors_name_fkey}', '"'));
    BEGIN
      IF has_vectors THEN
        ALTER TABLE {vectors} DROP CONSTRAINT {index:vectors_name_fkey};
      END IF;
      ALTER TABLE {items} DROP CONSTRAINT {index:items_pkey};
      ALTER TABLE {items}
        ADD CONSTRAINT {index:items_pkey} PRIMARY KEY (name) INCLUDE (length);
      IF has_vectors THEN
        ALTER TABLE {vectors}
          ADD FOREIGN KEY (name) REFERENCES {items} (name) ON DELETE CASCADE;
      END IF;
    END
    $block$
    """,
)

# A vector belongs to the item of the same name as long as both have the same revision. A write of
# the item alone makes the vector stale, and stale vectors are never read.
_VECTORS: Final = (
    """
    CREATE TABLE {vectors} (
      id uuid PRIMARY KEY,
      scope uuid NOT NULL,
      revision bigint NOT NULL,
      dimension integer NOT NULL,
      path text COLLATE "C" NOT NULL,
      embedding {vector}.vector NOT NULL)
    """,
    # In the row itself, if a page can hold it: a search reads both together.
    "ALTER TABLE {vectors} ALTER COLUMN embedding SET STORAGE MAIN",
    "CREATE INDEX {index:vectors_by_scope} ON {vectors} (scope, dimension)",
    "CREATE INDEX {index:vectors_by_path} ON {vectors} (left(path, 300), dimension)",
)

# A vector without an item of its revision is stale, and left out.
_NAMES_OF_VECTORS: Final = (
    "LOCK TABLE {items}, {vectors} IN ACCESS EXCLUSIVE MODE",
    "DROP FUNCTION IF EXISTS {write_vectors}",
    """
    DELETE FROM {vectors} AS v WHERE NOT EXISTS (
      SELECT FROM {items} AS i WHERE i.scope = v.scope AND i.revision = v.revision)
    """,
    """
    CREATE FUNCTION {name_of_item}(uuid, bigint) RETURNS text LANGUAGE sql STABLE
    AS 'SELECT i.name FROM {items} AS i WHERE i.scope = $1 AND i.revision = $2'
    """,
    "DROP INDEX {vectors_by_path}",
    """
    ALTER TABLE {vectors} ALTER COLUMN id TYPE text COLLATE "C"
    USING {name_of_item}(scope, revision)
    """,
    "DROP FUNCTION {name_of_item}",
    "ALTER TABLE {vectors} RENAME COLUMN id TO name",
    "ALTER TABLE {vectors} ADD FOREIGN KEY (name) REFERENCES {items} (name) ON DELETE CASCADE",
)

# Puts and deletes run in the order of their names, so that no two batches wait for each other, and
# those of one item in the given order. An item is locked before its version is checked. An item
# that does not exist cannot be locked: if another session adds it meanwhile, the function starts
# over. The first condition that does not hold undoes everything, and the stored version is
# returned.
_CHANGE: Final = """
CREATE OR REPLACE FUNCTION {%(name)s}(
  moment timestamptz, names text[], scopes text[], paths text[], keys text[], conditions text[],
  expiries text[], lengths text[], metadatas text[], documents text[], texts text[],
  checksums text[]%(arguments)s)
RETURNS TABLE (conflict boolean, number bigint, result bigint)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
  given record;
  found_version bigint;
  is_there boolean;
  results bigint[] := array_fill(0::bigint, ARRAY[cardinality(names)]);%(variables)s
BEGIN
  FOR given IN
    SELECT numbered.* FROM (
      SELECT g.name, coalesce(g.scope, scopes[1])::uuid AS scope,
        coalesce(g.path, paths[1]) || chr(1) AS path, g.key, g.condition::bigint,
        g.expires_at::timestamptz, g.length::integer,
        coalesce(g.metadata::jsonb, '{}') AS metadata, g.value::jsonb,
        coalesce(g.words, '')::tsvector AS words, g.checksum::bigint, g.number%(columns)s,
        nextval('{revisions}') AS revision
      FROM unnest(names, scopes, paths, keys, conditions, expiries, lengths, metadatas,
        documents, texts, checksums%(arrays)s) WITH ORDINALITY
        AS g (name, scope, path, key, condition, expires_at, length, metadata, value,
          words, checksum%(names)s, number)) AS numbered
    ORDER BY numbered.name COLLATE "C", numbered.number
  LOOP
    LOOP
      SELECT CASE WHEN i.expires_at <= moment THEN 0 ELSE i.version END INTO found_version
      FROM {items} AS i WHERE i.name = given.name FOR UPDATE;
      is_there := FOUND;
      found_version := coalesce(found_version, 0);
      IF given.condition <> found_version THEN
        results[given.number] := found_version;
        RAISE EXCEPTION USING ERRCODE = 'LM001', MESSAGE = given.number::text;
      END IF;
      IF given.value IS NULL THEN
        IF is_there THEN
          DELETE FROM {items} AS i WHERE i.name = given.name;
        END IF;
        results[given.number] := (found_version > 0)::integer;
        EXIT;
      ELSIF is_there THEN
        UPDATE {items} AS i SET
          version = found_version + 1, revision = given.revision,
          created_at = CASE found_version WHEN 0 THEN moment ELSE i.created_at END,
          updated_at = CASE found_version WHEN 0 THEN moment
            ELSE greatest(i.updated_at, moment) END,
          expires_at = given.expires_at, length = given.length,
          metadata = given.metadata, value = given.value, words = given.words,
          checksum = given.checksum
        WHERE i.name = given.name;
      ELSE
        INSERT INTO {items} (name, scope, version, revision, created_at, updated_at, expires_at,
          length, path, key, metadata, value, words, checksum)
        VALUES (given.name, given.scope, 1, given.revision, moment, moment, given.expires_at,
          given.length, given.path, given.key, given.metadata, given.value, given.words,
          given.checksum)
        ON CONFLICT DO NOTHING;
        CONTINUE WHEN NOT FOUND;
      END IF;
      results[given.number] := found_version + 1;%(after)s
      EXIT;
    END LOOP;
  END LOOP;
  RETURN QUERY SELECT false, r.number, r.result
    FROM unnest(results) WITH ORDINALITY AS r (result, number) ORDER BY r.number;
EXCEPTION WHEN SQLSTATE 'LM001' THEN
  RETURN QUERY SELECT true, SQLERRM::bigint, results[SQLERRM::bigint];
END
$function$
"""

_CHANGE_ITEMS: Final = _CHANGE % {
    **dict.fromkeys(("arguments", "columns", "arrays", "names", "variables", "after"), ""),
    "name": "change_items",
}

_CHANGE_VECTORS: Final = _CHANGE % {
    "name": "change_vectors",
    "arguments": ", embeddings text[], vector_checksums text[]",
    "columns": ", g.embedding, g.vector_checksum::bigint",
    "arrays": ", embeddings, vector_checksums",
    "names": ", embedding, vector_checksum",
    # So nothing here names the schema of the extension, which an administrator may change.
    "variables": "\n  direction {vectors}.embedding%TYPE;",
    "after": """
      IF given.embedding IS NULL THEN
        DELETE FROM {vectors} AS v WHERE v.name = given.name;
      ELSE
        direction := given.embedding;
        INSERT INTO {vectors} (name, scope, revision, dimension, path, embedding, checksum)
        VALUES (given.name, given.scope, given.revision,
          cardinality(direction::real[]), given.path, direction, given.vector_checksum)
        ON CONFLICT (name) DO UPDATE SET revision = EXCLUDED.revision,
          dimension = EXCLUDED.dimension, embedding = EXCLUDED.embedding,
          checksum = EXCLUDED.checksum;
      END IF;""",
}

# Their text changes here, not their arguments.
_LATEST_MOMENT: Final = ("DROP FUNCTION IF EXISTS {change_items}",)
_LATEST_MOMENT_OF_VECTORS: Final = ("DROP FUNCTION IF EXISTS {change_vectors}",)

MIGRATIONS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "core": (
        _CHECKPOINTS,
        _ITEMS,
        _COMPACT_CHECKPOINTS,
        _NAMES,
        _CHECKSUMS,
        _LENGTHS,
        _LATEST_MOMENT,
    ),
    "vector": (
        _VECTORS,
        _NAMES_OF_VECTORS,
        _CHECKSUMS_OF_VECTORS,
        _LATEST_MOMENT_OF_VECTORS,
    ),
}

# Created after the last group. A function finds the tables by the names in its text; if their
# schema was renamed, it is created again.
FUNCTIONS: Final[Mapping[str, str]] = {"core": _CHANGE_ITEMS, "vector": _CHANGE_VECTORS}

# One read returns all there is to know of an up-to-date database. The list of available
# extensions is in a folder of the server, so it is read only if it matters.
PROBE: Final = """
SELECT
  (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector') AS vector_version,
  (SELECT nspname FROM pg_catalog.pg_extension AS e
   JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
   WHERE extname = 'vector')::text AS vector_schema,
  CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'vector') THEN true
  ELSE EXISTS (SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'vector')
  END AS vector_available,
  (SELECT version FROM {migrations} WHERE part = 'core') AS core,
  (SELECT version FROM {migrations} WHERE part = 'vector') AS vector,
  (SELECT strpos(prosrc, '{items}') > 0 FROM pg_catalog.pg_proc
   WHERE oid = pg_catalog.to_regproc('{change_items}')) AS core_is_whole,
  (SELECT strpos(prosrc, '{vectors}') > 0 FROM pg_catalog.pg_proc
   WHERE oid = pg_catalog.to_regproc('{change_vectors}')) AND EXISTS (
   SELECT FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass('{vectors}')
     AND attname = 'embedding' AND NOT attisdropped) AS vector_is_whole
"""


@dataclass(frozen=True, slots=True)
class Names:
    """The place of the library's tables, and their names in statements.

    Attributes:
        schema: The schema, written out in every statement.
        prefix: The beginning of every name.
        vector_schema: The schema of the extension `vector`.
    """

    schema: str = "public"
    prefix: str = "locus_"
    vector_schema: str = "public"

    def check(self) -> None:
        """Refuse a name that is not a plain identifier, or is too long as a prefix.

        Raises:
            ConfigurationError: A name is refused.
        """
        for option, value, longest in (
            ("schema", self.schema, _LONGEST_SCHEMA),
            ("table_prefix", self.prefix, _LONGEST_PREFIX),
        ):
            plain = _IDENTIFIER.fullmatch(value) is not None
            if not plain or len(value) > longest or value.startswith("pg_"):
                raise ConfigurationError(
                    f"postgresql: {option} has letters, digits and underscores, at most "
                    f"{longest}, and does not begin with a digit or pg_, unlike {quote(value)}"
                )

    def fill(self, template: str) -> str:
        """Return a statement in which the library's names replace those in braces."""
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
        """The key of the advisory lock that a session holds while it creates the tables."""
        digest = blake2b(f"locus_memory {self.schema} {self.prefix}".encode(), digest_size=8)
        return int.from_bytes(digest.digest(), "big", signed=True)
