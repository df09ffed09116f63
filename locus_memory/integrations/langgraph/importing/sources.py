"""The tables of LangGraph's savers: their threads, checkpoints and pending writes, oldest first."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Final

import orjson

from locus_memory.integrations.foreign import (
    is_postgresql,
    need_columns,
    postgresql_source,
    sqlite_source,
)
from locus_memory.integrations.langgraph.importing.opaque import OpaqueSerializer
from locus_memory.integrations.langgraph.threads import Place

__all__ = ["Dialect", "Source", "Stored", "Write", "open_source"]

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


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the tables of the two savers differ.

    Attributes:
        content: The type and the content of a checkpoint; the type `jsonb` is a column's, and no
            saver has it.
        writes: The table of pending writes.
        write: The path and the value of a write.
        has_blobs: Whether the values of the channels have a table of their own.
        page: How many checkpoints are read at a time.
    """

    content: str
    writes: str
    write: tuple[str, str]
    has_blobs: bool
    page: int


_SQLITE: Final = Dialect("type, checkpoint", "writes", ("task_path", "value"), False, 1)
_POSTGRESQL: Final = Dialect(
    "'jsonb', checkpoint",
    "checkpoint_writes",
    ("task_path", "blob"),
    True,
    100,
)

_PLACES: Final = """
    SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints
    WHERE CAST($1 AS text) IS NULL OR thread_id = $1 ORDER BY 1, 2
"""
_IDS: Final = "SELECT checkpoint_id FROM checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2"
_CHECKPOINTS: Final = """
    SELECT checkpoint_id, parent_checkpoint_id, {0}, metadata FROM checkpoints
    WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id IN ({1})
"""
_BLOBS: Final = """
    SELECT c.checkpoint_id, b.channel, b.type, b.blob FROM checkpoints AS c
    CROSS JOIN jsonb_each_text(c.checkpoint -> 'channel_versions') AS v
    JOIN checkpoint_blobs AS b ON b.thread_id = c.thread_id
      AND b.checkpoint_ns = c.checkpoint_ns AND b.channel = v.key AND b.version = v.value
    WHERE c.thread_id = $1 AND c.checkpoint_ns = $2 AND c.checkpoint_id IN ({0})
      AND b.type <> 'empty'
"""
_WRITES: Final = """
    SELECT checkpoint_id, task_id, {1}, idx, channel, type, {2} FROM {0}
    WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id IN ({3})
"""


@dataclass(frozen=True, slots=True)
class Source:
    """The threads of one saver, as they were when it was opened.

    Attributes:
        fetch: Returns the rows of a statement with its arguments.
        dialect: How its tables differ.
    """

    fetch: Callable[..., Awaitable[Sequence[Any]]]
    dialect: Dialect

    async def places(self, thread_id: str | None) -> list[Place]:
        """Return the threads and namespaces that have checkpoints; `None`: of all threads."""
        return [Place.at(*row) for row in await self.fetch(_PLACES, thread_id)]

    async def ids(self, place: Place) -> list[str]:
        """Return the ids of the checkpoints of a place, the oldest first."""
        return sorted(row[0] for row in await self.fetch(_IDS, place.thread_id, place.namespace))

    async def stored(self, place: Place) -> AsyncIterator[Stored]:
        """Yield the checkpoints of a place, the oldest first."""
        ids, size, dialect = await self.ids(place), self.dialect.page, self.dialect
        for page in (ids[start : start + size] for start in range(0, len(ids), size)):
            wanted = place.thread_id, place.namespace, *page
            marks = ", ".join(f"${number}" for number in range(3, 3 + len(page)))
            rows = await self.fetch(_CHECKPOINTS.format(dialect.content, marks), *wanted)
            writes = _grouped(
                await self.fetch(_WRITES.format(dialect.writes, *dialect.write, marks), *wanted)
            )
            blobs = dialect.has_blobs and await self.fetch(_BLOBS.format(marks), *wanted)
            values = _grouped(blobs or ())
            for row in sorted(rows, key=itemgetter(0)):
                yield _of_row(row, values.get(row[0], []), writes.get(row[0], []))


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
            yield Source(connection.fetch, _POSTGRESQL)
        return
    with sqlite_source(where, _WHAT) as connection:
        need_columns(connection, "checkpoints", ("thread_id", "checkpoint_ns", "checkpoint"))
        columns = need_columns(connection, "writes", ("thread_id", "checkpoint_ns", "value"))
        path = "task_path" if "task_path" in columns else "''"

        async def fetch(statement: str, *arguments: str | None) -> Sequence[Any]:
            named = {str(number): each for number, each in enumerate(arguments, 1)}
            return connection.execute(statement, named).fetchall()

        yield Source(fetch, replace(_SQLITE, write=(path, "value")))


def _of_row(row: Sequence[Any], values: Iterable[Any], writes: Iterable[Any]) -> Stored:
    checkpoint_id, parent, kind, content, metadata = row
    try:
        loaded = orjson.loads(content) if kind == "jsonb" else _serde.loads_typed((kind, content))
        checkpoint = _object(loaded)
        inline: Mapping[str, Any] = checkpoint.get("channel_values") or {}
        blobs = {channel: _serde.loads_typed((kind, blob)) for channel, kind, blob in values}
        return Stored(
            checkpoint_id,
            parent or None,
            {**checkpoint, "channel_values": {**inline, **blobs}},
            _object(orjson.loads(metadata)) if metadata else {},
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
