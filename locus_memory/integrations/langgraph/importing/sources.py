"""The tables of LangGraph's savers: their threads, checkpoints and pending writes, oldest first."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson

from locus_memory.integrations.foreign import (
    is_postgresql,
    need_columns,
    postgresql_source,
    sqlite_source,
)
from locus_memory.integrations.langgraph.importing.opaque import OpaqueSerializer
from locus_memory.integrations.langgraph.threads import Place

__all__ = ["Source", "Stored", "Write", "open_source"]

_PAGE: Final = 100
_WHAT: Final = "LangGraph's saver"

_serde: Final = OpaqueSerializer()


@dataclass(frozen=True, slots=True)
class Write:
    """A pending write of a task."""

    task: str
    path: str
    index: int
    channel: str
    value: Any


@dataclass(frozen=True, slots=True)
class Stored:
    """A checkpoint as its saver stores it; `error`: why it cannot be read."""

    checkpoint_id: str
    parent: str | None
    checkpoint: dict[str, Any] = field(default_factory=dict[str, Any])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    writes: Sequence[Write] = ()
    error: Exception | None = None


class Source(Protocol):
    """The threads of one saver, as they were when it was opened."""

    async def places(self, thread_id: str | None) -> list[Place]:
        """Return the threads and namespaces that have checkpoints; `None`: of all threads."""
        ...

    async def ids(self, place: Place) -> list[str]:
        """Return the ids of the checkpoints of a place, the oldest first."""
        ...

    def stored(self, place: Place) -> AsyncIterator[Stored]:
        """Yield the checkpoints of a place, the oldest first."""
        ...


@asynccontextmanager
async def open_source(where: str) -> AsyncGenerator[Source]:
    """Open the database of a saver, to read it only.

    Args:
        where: The path of a SQLite file, with or without `sqlite:`, or the URL of a PostgreSQL.

    Raises:
        ConfigurationError: There is no file, or no table of a saver.
        BackendUnavailableError: The database cannot be read.
    """
    if is_postgresql(where):
        async with postgresql_source(where, _WHAT) as connection:
            yield _PostgreSQL(connection)
        return
    with sqlite_source(where, _WHAT) as connection:
        yield _SQLite(connection)


class _SQLite:
    """The tables of `langgraph-checkpoint-sqlite`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        need_columns(connection, "checkpoints", ("thread_id", "checkpoint_ns", "checkpoint"))
        columns = need_columns(connection, "writes", ("thread_id", "checkpoint_ns", "value"))
        self._path = "task_path" if "task_path" in columns else "''"

    async def places(self, thread_id: str | None) -> list[Place]:
        rows = self._connection.execute(
            "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints "
            "WHERE :thread IS NULL OR thread_id = :thread ORDER BY 1, 2",
            {"thread": thread_id},
        )
        return [Place.at(*row) for row in rows]

    async def ids(self, place: Place) -> list[str]:
        rows = self._connection.execute(
            "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? "
            "ORDER BY checkpoint_id",
            (place.thread_id, place.namespace),
        )
        return [row[0] for row in rows]

    async def stored(self, place: Place) -> AsyncIterator[Stored]:
        rows = self._connection.execute(
            "SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata "
            "FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id",
            (place.thread_id, place.namespace),
        )
        for checkpoint_id, parent, kind, content, metadata in rows:
            written = self._connection.execute(
                f"SELECT task_id, {self._path}, idx, channel, type, value FROM writes "  # noqa: S608 - one of two names
                "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
                (place.thread_id, place.namespace, checkpoint_id),
            )
            try:
                yield Stored(
                    checkpoint_id,
                    parent or None,
                    _object(_serde.loads_typed((kind, content))),
                    _object(orjson.loads(metadata)) if metadata else {},
                    _writes(written),
                )
            except (ValueError, TypeError) as error:
                yield Stored(checkpoint_id, parent or None, error=error)


_PLACES: Final = """
    SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints
    WHERE $1::text IS NULL OR thread_id = $1 ORDER BY 1, 2
"""
_IDS: Final = """
    SELECT checkpoint_id FROM checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2
    ORDER BY checkpoint_id COLLATE "C"
"""
_CHECKPOINTS: Final = """
    SELECT checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM checkpoints
    WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id COLLATE "C" > $3
    ORDER BY checkpoint_id COLLATE "C" LIMIT $4
"""
_BLOBS: Final = """
    SELECT c.checkpoint_id, b.channel, b.type, b.blob FROM checkpoints AS c
    CROSS JOIN jsonb_each_text(c.checkpoint -> 'channel_versions') AS v
    JOIN checkpoint_blobs AS b ON b.thread_id = c.thread_id
      AND b.checkpoint_ns = c.checkpoint_ns AND b.channel = v.key AND b.version = v.value
    WHERE c.thread_id = $1 AND c.checkpoint_ns = $2 AND c.checkpoint_id = ANY($3)
      AND b.type <> 'empty'
"""
_WRITES: Final = """
    SELECT checkpoint_id, task_id, task_path, idx, channel, type, blob FROM checkpoint_writes
    WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = ANY($3)
"""


class _PostgreSQL:
    """The tables of `langgraph-checkpoint-postgres`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def places(self, thread_id: str | None) -> list[Place]:
        rows = await self._connection.fetch(_PLACES, thread_id)
        return [Place.at(*row) for row in rows]

    async def ids(self, place: Place) -> list[str]:
        rows = await self._connection.fetch(_IDS, place.thread_id, place.namespace)
        return [row[0] for row in rows]

    async def stored(self, place: Place) -> AsyncIterator[Stored]:
        after = ""
        where = (place.thread_id, place.namespace)
        while page := await self._connection.fetch(_CHECKPOINTS, *where, after, _PAGE):
            ids = [row[0] for row in page]
            values = _grouped(await self._connection.fetch(_BLOBS, *where, ids))
            writes = _grouped(await self._connection.fetch(_WRITES, *where, ids))
            for row in page:
                yield _of_row(row, values.get(row[0], []), writes.get(row[0], []))
            after = ids[-1]


def _of_row(row: Sequence[Any], values: Iterable[Any], writes: Iterable[Any]) -> Stored:
    checkpoint_id, parent, content, metadata = row
    try:
        checkpoint = _object(orjson.loads(content))
        inline: Mapping[str, Any] = checkpoint.get("channel_values") or {}
        blobs = {channel: _serde.loads_typed((kind, blob)) for channel, kind, blob in values}
        return Stored(
            checkpoint_id,
            parent or None,
            {**checkpoint, "channel_values": {**inline, **blobs}},
            _object(orjson.loads(metadata)),
            _writes(writes),
        )
    except (ValueError, TypeError) as error:
        return Stored(checkpoint_id, parent or None, error=error)


def _grouped(rows: Iterable[Sequence[Any]]) -> dict[str, list[Sequence[Any]]]:
    """Return rows by their first column, without it."""
    found: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row[1:])
    return found


def _writes(rows: Iterable[Sequence[Any]]) -> list[Write]:
    found = [
        Write(task, path, index, channel, _serde.loads_typed((kind, content)))
        for task, path, index, channel, kind, content in rows
    ]
    return sorted(found, key=lambda write: (write.path, write.task, write.index))


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("it is not an object")
    return value
