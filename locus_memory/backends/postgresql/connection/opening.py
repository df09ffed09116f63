"""Opening a database: what is there, and what has to be made first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from locus_memory.backends.postgresql.connection.driver import Connection, Record, errors
from locus_memory.backends.postgresql.schema import FUNCTIONS, MIGRATIONS, PROBE, Names
from locus_memory.errors import BackendCorruptError, BackendWriteError, ConfigurationError
from locus_memory.events import emit

__all__ = ["NOTHING_THERE", "Features", "prepare"]


_NO_VECTORS: Final = "no search by vectors; a superuser can run CREATE EXTENSION vector"


@dataclass(frozen=True, slots=True)
class Features:
    """The features that the opening of the database found.

    Attributes:
        has_vector: Whether the extension `vector` is there, and our tables for it are.
        vector_version: Its version, such as `(0, 8, 1)`; empty without it.
        vector_schema: The schema it is installed in.
    """

    has_vector: bool
    vector_version: tuple[int, ...]
    vector_schema: str


_PATIENCE: Final = 86_400.0
"""Seconds that a migration may take: it may rewrite a large table."""

NOTHING_THERE: Final = (
    errors.UndefinedTableError,
    errors.InvalidSchemaNameError,
)

_REFUSED: Final = frozenset({"25006", "42501"})
"""The server only reads; the role has no right."""

_LOCK: Final = "SELECT pg_catalog.pg_advisory_xact_lock($1)"

_SCHEMA_IS_THERE: Final = "SELECT pg_catalog.to_regnamespace($1) IS NOT NULL"

_TABLE_IS_THERE: Final = "SELECT pg_catalog.to_regclass($1) IS NOT NULL"

_CREATE_SCHEMA: Final = "CREATE SCHEMA {schema}"

_CREATE_MIGRATIONS: Final = """
CREATE TABLE {migrations} (part text PRIMARY KEY, version integer NOT NULL)
"""

_TABLES: Final = {"core": ("{threads}", "{checkpoints}", "{items}"), "vector": ("{vectors}",)}

_CREATE_VECTOR: Final = "CREATE EXTENSION IF NOT EXISTS vector"

_VECTOR_SCHEMA: Final = """
SELECT n.nspname::text FROM pg_catalog.pg_extension AS e
JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""

_VERSION: Final = "SELECT version FROM {migrations} WHERE part = $1"

_HAS_EMBEDDINGS: Final = """
SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute
  WHERE attrelid = pg_catalog.to_regclass('{vectors}') AND attname = 'embedding'
    AND NOT attisdropped)
"""

_DROP_VECTORS: Final = "DROP TABLE IF EXISTS {vectors}"

_SET_VERSION: Final = """
INSERT INTO {migrations} (part, version) VALUES ($1, $2)
ON CONFLICT (part) DO UPDATE SET version = EXCLUDED.version
"""


async def prepare(connection: Connection, names: Names, where: str) -> Features:
    """Bring the tables up to date, if they are not; return what the database has.

    A database that is up to date costs one read, and no lock.

    Raises:
        ConfigurationError: It is not UTF-8, or a newer locus_memory made its tables.
        asyncpg.PostgresError: We may not make them.
    """
    encoding = connection.get_settings().server_encoding
    if encoding.upper() != "UTF8":
        raise ConfigurationError(f"{where}: the database's encoding is {encoding}, not UTF8")
    found = await _probe(connection, names)
    if found is None or not _is_whole(found, "core"):
        await _migrate_core(connection, names, where, found)
        found = await _probe(connection, names)
    if found is None:
        raise ConfigurationError(f"{where}: the tables vanish as soon as they are made")
    for part, groups in MIGRATIONS.items():
        _check_version(where, part, found[part] or 0, len(groups))
    if found["vector_available"] and not _has_vector(found):
        found = await _add_vector(connection, names, where) or found
    return Features(
        has_vector=_has_vector(found),
        vector_version=_numbers(found["vector_version"] or ""),
        vector_schema=found["vector_schema"] or names.vector_schema,
    )


async def _probe(connection: Connection, names: Names) -> Record | None:
    """Return what there is; `None` if there is nothing of ours."""
    try:
        return await connection.fetchrow(names.fill(PROBE))
    except NOTHING_THERE:
        return None


def _is_whole(found: Record, part: str) -> bool:
    """Whether a part needs nothing that we could do for it."""
    version, known = found[part] or 0, len(MIGRATIONS[part])
    return version > known or (version == known and bool(found[f"{part}_is_whole"]))


def _has_vector(found: Record) -> bool:
    return found["vector_version"] is not None and _is_whole(found, "vector")


def _check_version(where: str, part: str, version: int, known: int) -> None:
    if version > known:
        raise ConfigurationError(
            f"{where}: a newer locus_memory made these tables ({part} {version}, this one knows "
            f"{known}); upgrade locus-memory"
        )


async def _add_vector(connection: Connection, names: Names, where: str) -> Record | None:
    """Make what vectors need; `None`, and an event, where we may not."""
    try:
        await _migrate(connection, names, "vector", where)
    except errors.PostgresError as error:
        emit("postgresql.no_vectors", error=error, database=where, reason=_NO_VECTORS)
        return None
    return await _probe(connection, names)


async def _migrate_core(
    connection: Connection, names: Names, where: str, found: Record | None
) -> None:
    """Bring the tables up to date.

    Raises:
        BackendWriteError: An earlier locus_memory made them, and the role may not change them, or
            the server is a standby.
    """
    try:
        await _migrate(connection, names, "core", where)
    except errors.PostgresError as error:
        if found is None or not found["core"] or getattr(error, "sqlstate", None) not in _REFUSED:
            raise
        raise BackendWriteError(
            f"{where}: an earlier locus_memory made these tables (core {found['core']}, this one "
            f"uses {len(MIGRATIONS['core'])}), and they cannot be changed here: {error.args[0]}; "
            "open the database once with the role that owns them, on the primary"
        ) from error


async def _migrate(connection: Connection, names: Names, part: str, where: str) -> None:
    """Apply the groups of a part that are not applied; safe when others try at the same time."""
    async with connection.transaction(isolation="read_committed"):
        await connection.fetchval(_LOCK, names.lock)
        if part == "vector":
            names = await _create_vector(connection, names)
        else:
            await _create_migrations(connection, names)
        version = await connection.fetchval(names.fill(_VERSION), part) or 0
        if part == "vector" and not await connection.fetchval(names.fill(_HAS_EMBEDDINGS)):
            await _drop_vectors(connection, names, where, version)
            version = 0
        if not version:
            await _refuse_unversioned(connection, names, part, where)
        if version <= len(MIGRATIONS[part]):
            statements = [each for group in MIGRATIONS[part][version:] for each in group]
            for statement in (*statements, FUNCTIONS[part]):
                await connection.execute(names.fill(statement), timeout=_PATIENCE)
            await connection.execute(names.fill(_SET_VERSION), part, len(MIGRATIONS[part]))


async def _refuse_unversioned(connection: Connection, names: Names, part: str, where: str) -> None:
    """Raise if tables are there, and nothing says of which version they are.

    Raises:
        BackendCorruptError: They are.
    """
    for table in _TABLES[part]:
        if await connection.fetchval(_TABLE_IS_THERE, names.fill(table)):
            known = names.fill("{migrations}")
            raise BackendCorruptError(
                f"{where}: the table {names.fill(table)} is there, and {known} does not say of "
                f"which version it is; restore its row {part!r} from a backup"
            )


async def _drop_vectors(connection: Connection, names: Names, where: str, version: int) -> None:
    """Drop what is left of the vectors after the extension took their column along."""
    await connection.execute(names.fill(_DROP_VECTORS))
    if version:
        emit("postgresql.vectors_lost", database=where)


async def _create_migrations(connection: Connection, names: Names) -> None:
    # Even with IF NOT EXISTS the server asks for the right to create.
    if not await connection.fetchval(_SCHEMA_IS_THERE, names.fill("{schema}")):
        await connection.execute(names.fill(_CREATE_SCHEMA))
    if not await connection.fetchval(_TABLE_IS_THERE, names.fill("{migrations}")):
        await connection.execute(names.fill(_CREATE_MIGRATIONS))


async def _create_vector(connection: Connection, names: Names) -> Names:
    await connection.execute(_CREATE_VECTOR)
    return replace(names, vector_schema=await connection.fetchval(_VECTOR_SCHEMA))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
