"""The tables of ADK's session services: sessions, events and the states of apps and users."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from google.adk.events.event import Event

from locus_memory.errors import ConfigurationError
from locus_memory.integrations.adk.events import Json, document_of, state_of
from locus_memory.integrations.adk.sessions import SessionIds
from locus_memory.integrations.foreign import (
    columns_of,
    is_postgresql,
    need_columns,
    postgresql_source,
    sqlite_source,
)
from locus_memory.memory.moments import read_moment
from locus_memory.store.item import timestamp

__all__ = ["Original", "SessionSource", "State", "open_source"]

_WHAT: Final = "ADK's session services"
_METADATA: Final = "adk_internal_metadata"
_VERSION: Final = "1"
"""The schema of `DatabaseSessionService` that is read: `schemas/v1.py` of ADK."""

_PICKLED: Final = (
    "the events of the database have the column actions and no event_data: an older release of ADK "
    "pickled them; copy the database with `adk migrate session`, and import the copy"
)
_TABLES: Final = {
    "sessions": ("app_name", "user_id", "id", "state", "update_time"),
    "events": ("app_name", "user_id", "session_id", "id", "timestamp", "event_data"),
    "app_states": ("app_name", "state", "update_time"),
    "user_states": ("app_name", "user_id", "state", "update_time"),
}

_SESSIONS: Final = "SELECT app_name, user_id, id FROM sessions ORDER BY 1, 2, 3"
_SESSION: Final = """
    SELECT state, update_time FROM sessions WHERE app_name = $1 AND user_id = $2 AND id = $3
"""
_EVENTS: Final = """
    SELECT id, invocation_id, timestamp, event_data FROM events
    WHERE app_name = $1 AND user_id = $2 AND session_id = $3 ORDER BY timestamp, {tie}
"""
_STATES: Final = """
    SELECT app_name, NULL, state, update_time FROM app_states
    UNION ALL SELECT app_name, user_id, state, update_time FROM user_states
"""

_Fetch = Callable[..., Awaitable[Sequence[Sequence[Any]]]]


@dataclass(frozen=True, slots=True)
class Original:
    """A session of ADK; `errors`: why events and keys of its state are left out."""

    name: SessionIds
    updated: float
    state: Json
    events: Sequence[Json]
    errors: Sequence[Exception] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The state of an app, or of a user of it, and the moment of its last change."""

    app: str
    user: str | None
    values: Json
    updated: datetime
    errors: Sequence[Exception] = ()


@dataclass(slots=True)
class _Faults:
    """What cannot be read."""

    errors: list[Exception] = field(default_factory=list[Exception])

    def state(self, stored: Any) -> Json:
        """Return a state without the keys that no store can hold."""
        found: Json = {}
        try:
            values = json.loads(stored)
            items = dict(values).items()
        except (ValueError, TypeError) as error:
            self.errors.append(error)
            return found
        for key, value in items:
            try:
                found |= state_of({key: value}, "state")
            except ValueError as error:
                self.errors.append(error)
        return found

    def event(self, row: Sequence[Any]) -> Json | None:
        """Return an event as a session service of this library stores it."""
        name, invocation, moment, stored = row
        try:
            data = dict(json.loads(stored))
            seconds = data.get("timestamp") or _seconds(moment)
            known = {"id": name, "invocation_id": invocation, "timestamp": seconds}
            return document_of(Event.model_validate({**data, **known}))
        except (ValueError, TypeError) as error:
            self.errors.append(error)
            return None


class SessionSource:
    """The sessions of one database.

    Args:
        fetch: Returns the rows of a statement with parameters.
        tie: The column that orders events of the same moment, as ADK does.
    """

    def __init__(self, fetch: _Fetch, tie: str) -> None:
        self._fetch = fetch
        self._events = _EVENTS.format(tie=tie)

    async def names(self, session_id: str | None) -> list[SessionIds]:
        """Return the sessions; `None`: those with any id."""
        names = [SessionIds(*row) for row in await self._fetch(_SESSIONS)]
        return [each for each in names if session_id in (None, each.session)]

    async def session(self, name: SessionIds) -> Original:
        """Return a session with its events, the oldest first."""
        ids = name.app, name.user, name.session
        faults = _Faults()
        [(state, updated)] = await self._fetch(_SESSION, *ids)
        found = [faults.event(row) for row in await self._fetch(self._events, *ids)]
        events = [each for each in found if each is not None]
        own = faults.state(state)
        return Original(name, _seconds(updated), own, events, faults.errors)

    async def states(self) -> list[State]:
        """Return the states of all apps and users."""
        found: list[State] = []
        for app, user, stored, updated in await self._fetch(_STATES):
            faults = _Faults()
            values = faults.state(stored)
            moment = timestamp(_seconds(updated))
            found.append(State(app, user, values, moment, faults.errors))
        return found


@asynccontextmanager
async def open_source(where: str) -> AsyncGenerator[SessionSource]:
    """Open a database of ADK's sessions, to read it only.

    Args:
        where: The path of a SQLite file, with or without `sqlite:`, or the URL of a PostgreSQL.

    Raises:
        ConfigurationError: There is no file, it has other tables, or an older or newer release of
            ADK wrote it.
        BackendUnavailableError: The database cannot be reached.
    """
    if is_postgresql(where):
        async with postgresql_source(where.replace("+asyncpg:", ":", 1), _WHAT) as connection:
            yield await _postgresql(connection)
        return
    with sqlite_source(where.replace("+aiosqlite:", ":", 1), _WHAT) as connection:
        yield _sqlite(connection)


def _sqlite(connection: sqlite3.Connection) -> SessionSource:
    found = need_columns(connection, "events", ("id",))
    if "actions" in found and "event_data" not in found:
        raise ConfigurationError(_PICKLED)
    for table, columns in _TABLES.items():
        need_columns(connection, table, columns)
    is_database_service = bool(columns_of(connection, _METADATA))
    if is_database_service:
        _check_version(connection.execute(f"SELECT key, value FROM {_METADATA}").fetchall())  # noqa: S608 - a constant

    async def fetch(statement: str, *parameters: str) -> Sequence[Sequence[Any]]:
        return connection.execute(statement, dict(zip("123", parameters, strict=False))).fetchall()

    return SessionSource(fetch, "id" if is_database_service else "rowid")


async def _postgresql(connection: Any) -> SessionSource:
    columns = await connection.fetch(
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_name = 'events' AND table_schema = ANY(current_schemas(false))"
    )
    names = {name for (name,) in columns}
    if "actions" in names and "event_data" not in names:
        raise ConfigurationError(_PICKLED)
    for table, needed in _TABLES.items():
        await connection.fetch(f"SELECT {', '.join(needed)} FROM {table} LIMIT 0")  # noqa: S608 - constants
    _check_version(await connection.fetch(f"SELECT key, value FROM {_METADATA}"))  # noqa: S608 - a constant

    return SessionSource(connection.fetch, "id")


def _check_version(rows: Sequence[Sequence[Any]]) -> None:
    version = {row[0]: row[1] for row in rows}.get("schema_version")
    if version != _VERSION:
        raise ConfigurationError(
            f"the database has the schema_version {version} of ADK; only {_VERSION} can be imported"
        )


def _seconds(value: object) -> float:
    """Return the seconds since the epoch of a number, or of a moment in UTC."""
    if isinstance(value, int | float):
        return float(value)
    moment = read_moment(value)
    if moment is None:
        raise ValueError("a moment cannot be read")
    return moment.timestamp()
