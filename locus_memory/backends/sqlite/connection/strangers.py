"""What the schema of a file has that is not ours: a stranger's trigger would copy what we write."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from functools import cache
from typing import Final, NamedTuple

from locus_memory._internal.quoting import quote
from locus_memory.backends.sqlite.schema import MIGRATIONS
from locus_memory.errors import BackendCorruptError

__all__ = ["check_schema", "strip"]

_SCHEMA: Final = "SELECT type, lower(name), lower(tbl_name), sql FROM sqlite_master"
_UNLIST: Final = (
    "DELETE FROM sqlite_master"
    " WHERE type = 'table' AND lower(name) = ? AND sql LIKE 'CREATE VIRTUAL %'"
)
_SPACES_AND_QUOTES: Final = re.compile("[\\s\"'`\\[\\]]")
_STATISTICS: Final = frozenset(["sqlite_stat1", "sqlite_stat4"])
_SHOWN: Final = 5


class _Part(NamedTuple):
    """A row of the schema. SQLite opens no file with a row that lies about its definition.

    Attributes:
        kind: `table`, `index`, `view` or `trigger`.
        name: The name, in lower case.
        table: The table that it belongs to, in lower case.
        sql: Its definition; `None`: it is part of its table.
    """

    kind: str
    name: str
    table: str
    sql: str | None


def check_schema(
    connection: sqlite3.Connection, path: str, version: int, *, allows_others: bool = True
) -> None:
    """Compare the schema of a file with ours.

    Args:
        connection: The file.
        path: Its name, for the message.
        version: How many migrations it has had.
        allows_others: Whether it may have tables, views and triggers that do not touch ours. If
            not, all of ours must be there.

    Raises:
        BackendCorruptError: It has something that is not ours, or a table of ours was changed.
    """
    found, ours = _foreign(connection, version), _ours(version)
    if allows_others:
        found = [each for each in found if each.name in ours or each.table in ours]
    elif missing := ours.keys() - {each.name for each in _parts(connection)}:
        raise BackendCorruptError(f"sqlite {path}: {min(missing)} is missing from its schema")
    if found:
        shown = ", ".join(f"{each.kind} {quote(each.name)}" for each in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise BackendCorruptError(
            f"sqlite {path}: its schema, of version {version}, has what is not of this library: "
            f"{shown}{more}; `locus-memory restore --strip` makes a database without it"
        )


def strip(connection: sqlite3.Connection, version: int) -> None:
    """Drop all that is not ours; a table of ours that was changed stays as it is.

    Args:
        connection: The file; nothing else may have it open.
        version: How many migrations it has had.
    """
    ours, undropped = _ours(version), list[tuple[str]]()
    connection.execute("PRAGMA secure_delete = ON")
    for each in _foreign(connection, version):
        if each.sql is not None and not (each.kind == "table" and each.name in ours):
            name = each.name.replace('"', '""')
            try:
                connection.execute(f'DROP {each.kind} IF EXISTS "{name}"')
            except sqlite3.OperationalError:
                # The module of a virtual table is not there; its content is in other tables.
                undropped.append((each.name,))
    if undropped:
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany(_UNLIST, undropped)
        connection.commit()
        connection.execute("PRAGMA writable_schema = RESET")
    there = {each.name for each in _parts(connection)}
    for name, each in ours.items():
        if name not in there and each.sql is not None and each.kind != "table":
            connection.execute(each.sql)


@cache
def _ours(version: int) -> dict[str, _Part]:
    """Return the schema that the first migrations make, by name."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_function("locus_code", 1, bytes)
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                connection.execute(statement)
        return {each.name: each for each in _parts(connection)}


def _parts(connection: sqlite3.Connection) -> list[_Part]:
    return [_Part(*row) for row in connection.execute(_SCHEMA)]


def _foreign(connection: sqlite3.Connection, version: int) -> list[_Part]:
    """Return what is not as the migrations make it: views, then triggers, tables and indexes."""
    ours = {_plain(each) for each in _ours(version).values()}
    found = [
        each
        for each in _parts(connection)
        if _plain(each) not in ours and each.name not in _STATISTICS
    ]
    return sorted(found, key=lambda each: each.kind, reverse=True)


def _plain(part: _Part) -> _Part:
    """Return a part whose definition is without spaces and quotes, which SQLite may change."""
    return part._replace(sql=_SPACES_AND_QUOTES.sub("", part.sql or "").lower())
