"""The copy of a thread: its checkpoints with their ids, parents, metadata and pending writes.

The tables of LangGraph's SQLite and PostgreSQL savers are read by themselves, oldest checkpoint
first. An object of a class stays the bytes that it was.
"""

from __future__ import annotations

import asyncio
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
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, cast

import orjson
import ormsgpack
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde import jsonplus

from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import CheckpointConflictError
from locus_memory.events import emit
from locus_memory.integrations.foreign import (
    is_postgresql,
    need_columns,
    postgresql_source,
    sqlite_source,
)
from locus_memory.integrations.langgraph.checkpoints.serializer import DeltaSnapshot
from locus_memory.integrations.langgraph.saver import LocusSaver
from locus_memory.integrations.langgraph.threads import Place

__all__ = [
    "COPIED",
    "Copied",
    "Dialect",
    "OpaqueSerializer",
    "Source",
    "Stored",
    "Write",
    "import_threads",
    "open_source",
]

COPIED: Final = ("null", "bytes", "bytearray", "msgpack")
"""The types of stored bytes that are copied; others are pickled, encrypted or of old releases."""

_KEYS: Final = ormsgpack.OPT_NON_STR_KEYS


class OpaqueSerializer:
    """Reads and writes LangGraph's own format; lists and dicts are lists and dicts meanwhile."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return a value, its objects as they are encoded.

        Raises:
            ValueError: The bytes are damaged, or of another type.
        """
        kind, content = data
        if kind == "null":
            return None
        if kind == "msgpack":
            return ormsgpack.unpackb(content, ext_hook=_loaded, option=_KEYS)
        if kind not in COPIED:
            raise ValueError(f"a value of the type {kind!r} is not copied")
        return bytearray(content) if kind == "bytearray" else bytes(content)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the typed bytes of a value that `loads_typed` returned."""
        if obj is None:
            return "null", b""
        if isinstance(obj, bytes | bytearray):
            return type(obj).__name__, bytes(obj)
        return "msgpack", ormsgpack.packb(obj, default=_dumped, option=_KEYS)


def _loaded(code: int, content: bytes) -> Any:
    if code == jsonplus.EXT_DELTA_SNAPSHOT:
        return DeltaSnapshot(ormsgpack.unpackb(content, ext_hook=_loaded, option=_KEYS))
    return ormsgpack.Ext(code, bytes(content))


def _dumped(value: Any) -> ormsgpack.Ext:
    if isinstance(value, DeltaSnapshot):
        content = ormsgpack.packb(value.value, default=_dumped, option=_KEYS)
        return ormsgpack.Ext(jsonplus.EXT_DELTA_SNAPSHOT, content)
    raise TypeError(f"a value of the type {type(value).__name__} is not LangGraph's")


_Known = dict[str, int]
"""The number of pending writes of each checkpoint that is there."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of the import of one thread in one namespace.

    Attributes:
        thread_id: LangGraph's thread id.
        namespace: LangGraph's `checkpoint_ns`; empty for the graph itself.
        checkpoints: Number of checkpoints of the source.
        writes: Number of their pending writes.
        saved: Number of checkpoints that this import stored.
        unreadable: Number of checkpoints of the source that cannot be read, and are left out.
        missing: Number of the others, and of their writes, that are not there after the import.
    """

    thread_id: str
    namespace: str
    checkpoints: int = 0
    writes: int = 0
    saved: int = 0
    unreadable: int = 0
    missing: int = 0


async def import_threads(
    source: Source,
    where: str | BaseCheckpointer | Backend,
    *,
    thread_id: str | None = None,
    on_checkpoint: Callable[[Place, int], None] = lambda _, __: None,
) -> list[Copied]:
    """Copy the threads of another saver; those that are there already are not copied again.

    After a kill, the next import adds the missing checkpoints and writes. A checkpoint that cannot
    be read is left out, and is told by the event `integrations.checkpoint_unreadable`. The result
    is counted in the target after the copy.

    Args:
        source: See `open_source`.
        where: The target, as for `LocusSaver`.
        thread_id: Only this thread; `None`: all.
        on_checkpoint: Called after each checkpoint with its place and the number done there.

    Raises:
        CheckpointConflictError: The target has a thread of this name that is another one. No thread
            is changed.
        BackendError: The target failed.
    """
    async with LocusSaver(where, serde=cast("Any", OpaqueSerializer())) as saver:
        places = await source.places(thread_id)
        known: dict[Place, _Known] = {}
        for place in places:
            known[place] = await _known(saver, place)
            if known[place] and known[place].keys().isdisjoint(await source.ids(place)):
                raise CheckpointConflictError(place.name, None, next(iter(known[place])))
        return [await _copy(saver, source, place, known[place], on_checkpoint) for place in places]


async def _known(saver: BaseCheckpointSaver[Any], place: Place) -> _Known:
    config = place.config("")
    return {
        found.checkpoint["id"]: len(found.pending_writes or ())
        async for found in saver.alist(config)
    }


async def _copy(
    saver: LocusSaver,
    source: Source,
    place: Place,
    known: _Known,
    on_checkpoint: Callable[[Place, int], None],
) -> Copied:
    done = Copied(place.thread_id, place.namespace)
    wanted: _Known = {}
    waiting: dict[str, Sequence[Write]] = {}
    async for stored in source.stored(place):
        done = replace(done, checkpoints=done.checkpoints + 1)
        if stored.error is not None:
            done = replace(done, unreadable=done.unreadable + 1)
            emit(
                "integrations.checkpoint_unreadable",
                error=stored.error,
                thread=place.thread_id,
                checkpoint=stored.checkpoint_id,
            )
            continue
        wanted[stored.checkpoint_id] = len(stored.writes)
        if stored.checkpoint_id not in known:
            await _save(saver, place, stored, waiting.pop(stored.parent or "", ()))
            done = replace(done, saved=done.saved + 1)
        if known.get(stored.checkpoint_id, 0) < len(stored.writes):
            waiting[stored.checkpoint_id] = stored.writes
        on_checkpoint(place, done.checkpoints)
    for checkpoint_id, writes in waiting.items():
        await asyncio.gather(*_put_writes(saver, place, checkpoint_id, writes))
    there = await _known(saver, place)
    missing = sum(
        1 + number if each not in there else max(0, number - there[each])
        for each, number in wanted.items()
    )
    return replace(done, writes=sum(wanted.values()), missing=missing)


async def _save(saver: LocusSaver, place: Place, stored: Stored, before: Sequence[Write]) -> None:
    """Store a checkpoint, in one record with the pending writes of its parent."""
    parent = stored.parent or ""
    tasks = [asyncio.ensure_future(each) for each in _put_writes(saver, place, parent, before)]
    if tasks:
        # The writes wait for the checkpoint from here on.
        await asyncio.sleep(0)
    checkpoint: Any = {**stored.checkpoint, "id": stored.checkpoint_id}
    versions = checkpoint.get("channel_versions") or {}
    config = place.config(parent)
    try:
        await saver.aput(config, checkpoint, cast("Any", stored.metadata), versions)
    finally:
        await asyncio.gather(*tasks)


def _put_writes(
    saver: LocusSaver, place: Place, checkpoint_id: str, writes: Iterable[Write]
) -> list[Any]:
    """Return the calls that store the pending writes of a checkpoint, one for each task."""
    config = place.config(checkpoint_id)
    return [
        saver.aput_writes(config, [(each.channel, each.value) for each in own], task, path)
        for (path, task), own in (
            (key, list(group))
            for key, group in groupby(writes, key=lambda each: (each.path, each.task))
        )
    ]


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
