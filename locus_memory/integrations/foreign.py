"""The databases of other frameworks, opened to be read only, for an import."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote as in_url

from locus_memory._internal.providers.drivers import require
from locus_memory.errors import BackendUnavailableError, ConfigurationError

__all__ = ["columns_of", "is_postgresql", "need_columns", "postgresql_source", "sqlite_source"]

_POSTGRESQL: Final = ("postgresql:", "postgres:")
_SHOWN: Final = 12
"""How many names of tables or columns an error shows."""


def is_postgresql(where: str) -> bool:
    """Return whether a database is the URL of a PostgreSQL, and not a file."""
    return where.startswith(_POSTGRESQL)


@contextmanager
def sqlite_source(where: str, what: str) -> Generator[sqlite3.Connection]:
    """Open a SQLite file; all reads see one moment.

    Args:
        where: Its path, with or without `sqlite:`.
        what: The kind of database, for errors, such as `LangGraph's saver`.

    Raises:
        ConfigurationError: There is no file, it is no database or a damaged one, or a table that
            is read is not there.
    """
    path = Path(where.removeprefix("sqlite:").removeprefix("///"))
    if not path.is_file():
        raise ConfigurationError(f"{path}: there is no such file of {what}")
    try:
        connection = sqlite3.connect(f"file:{in_url(str(path))}?mode=ro", uri=True)
        try:
            connection.execute("BEGIN")
            _check(connection)
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise ConfigurationError(f"{path}: not a database of {what}: {error}") from error


def _check(connection: sqlite3.Connection) -> None:
    """Raise an error for a damaged file now, rather than after a part of it is copied."""
    [(told,)] = connection.execute("PRAGMA quick_check(1)")
    if told != "ok":
        raise sqlite3.DatabaseError(f"it is damaged: {told}")


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the columns of a table; none if there is no such table."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return {name for (name,) in rows}


def need_columns(connection: sqlite3.Connection, table: str, needed: Iterable[str]) -> set[str]:
    """Return the columns of a table that has all of those that are needed.

    Raises:
        DatabaseError: It has not, or there is no such table; the error tells what there is.
    """
    found = columns_of(connection, table)
    if not found:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
            )
        ]
        raise sqlite3.DatabaseError(f"it has no table {table}, but {_listed(names)}")
    if missing := set(needed) - found:
        raise sqlite3.DatabaseError(
            f"its table {table} has no {_listed(missing)}, but {_listed(found)}"
        )
    return found


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    return ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "") or "no tables"


@asynccontextmanager
async def postgresql_source(where: str, what: str) -> AsyncGenerator[Any]:
    """Open a PostgreSQL database with asyncpg; all reads see one moment.

    Args:
        where: Its URL.
        what: The kind of database, for errors, such as `LangGraph's saver`.

    Raises:
        ConfigurationError: A table that is read is not there.
        BackendUnavailableError: The database cannot be reached.
    """
    asyncpg = require("asyncpg", "postgresql", needed_by="the import from PostgreSQL")
    try:
        connection: Any = await asyncpg.connect(where)
    except (OSError, asyncpg.PostgresError) as error:
        # The message of the driver may hold the password.
        raise BackendUnavailableError(
            f"the PostgreSQL of {what} cannot be reached ({type(error).__name__})"
        ) from None
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            yield connection
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError) as error:
        raise ConfigurationError(f"not a database of {what}: {error}") from error
    finally:
        await connection.close()
