"""A storage over four verbs: `store`, `retrieve`, `list_checkpoints` and `delete` of checkpoints.

It is the contract of the Locus SDK. A storage of that kind keeps bytes under a name, and lists what
it keeps by moments; what a record has besides stands in its bytes.
Source: https://github.com/oracle-samples/locus, `locus.memory.delta`.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
from typing_extensions import override

from locus_memory._internal.running.turns import turns_of
from locus_memory.checkpoint.base import UNSET, Unset
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    check_parent,
    check_replacement,
    check_room,
    newest_first,
    page_of,
)
from locus_memory.errors import BackendClosedError, CheckpointCorruptError, InvalidArgumentError
from locus_memory.store.item import timestamp

__all__ = ["CheckpointMetadata", "DeltaCheckpoint", "FourVerbStorage", "whole_storage"]

_EVERY: Final = 2**31 - 1
_THREADS: Final = "locus_memory.threads"
"""A thread that has a checkpoint for each other thread, under its id."""

_TICK: Final = timedelta(microseconds=1)


@dataclass
class CheckpointMetadata:
    """What a storage of four verbs knows of a checkpoint.

    Attributes:
        checkpoint_id: Its id in the thread.
        thread_id: The thread.
        parent_id: The id of the checkpoint that a delta is against; `None`: a full state.
        is_full: Whether it is a full state.
        chain_depth: How many checkpoints a load reads besides this one.
        created_at: When it was saved, UTC; each later than the one before it in the thread.
        size_bytes: Bytes before compression.
        compressed_size_bytes: Bytes as stored.
    """

    checkpoint_id: str
    thread_id: str
    parent_id: str | None = None
    is_full: bool = True
    chain_depth: int = 0
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    size_bytes: int = 0
    compressed_size_bytes: int = 0


@dataclass
class DeltaCheckpoint:
    """A checkpoint as a storage of four verbs keeps it.

    Attributes:
        metadata: What is known of it.
        data: Its bytes.
        is_delta: Whether it holds changes from its parent, and not a full state.
    """

    metadata: CheckpointMetadata
    data: bytes
    is_delta: bool = True

    @property
    def compression_ratio(self) -> float:
        """The bytes before compression, divided by those stored."""
        stored = self.metadata.compressed_size_bytes
        return self.metadata.size_bytes / stored if stored else 1.0


class FourVerbStorage(DeltaStorage):
    """The storage that a `DeltaCheckpointer` sees in one of four verbs.

    A write is whole among the tasks of one process; another process may write in between.

    Args:
        storage: Has `store(thread_id, checkpoint_id, checkpoint)`,
            `retrieve(thread_id, checkpoint_id)`, `list_checkpoints(thread_id, limit)`, the newest
            first, and `delete(thread_id, checkpoint_id)`.
    """

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.persistent = getattr(storage, "persistent", True)
        self._turns = turns_of(storage)
        self._closed = False

    def __repr__(self) -> str:
        return f"FourVerbStorage({self._storage!r})"

    @property
    def inner(self) -> Any:
        """The storage of four verbs.

        Raises:
            BackendClosedError: This storage is closed.
        """
        if self._closed:
            raise BackendClosedError("the checkpointer is closed")
        return self._storage

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        thread_id, name = _allowed(record.thread_id), record.checkpoint_id
        async with self._turns.turn():
            known = await self._kept(thread_id, 1)
            newest = known[0][1] if known else None
            is_next = record.base is None or (newest and newest.revision == record.base)
            if rebased or not is_next or await self.inner.retrieve(thread_id, name) is not None:
                known = await self._kept(thread_id, None)
                heads = [head for _, head in known]
                check_room(heads, record, expected_parent, rebased)
            check_parent(thread_id, expected_parent, newest.checkpoint_id if newest else None)
            sequence = newest.sequence + 1 if newest else 1
            at = timestamp(record.created_at)
            at = max(at, known[0][0].created_at + _TICK) if known else at
            if newest is None:
                listed = DeltaCheckpoint(CheckpointMetadata(thread_id, _THREADS), b"")
                await self.inner.store(_THREADS, thread_id, listed)
            await self._overwrite(known, rebased)
            await self._put(replace(record, sequence=sequence), at, known)
        return sequence

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        name = checkpoint_id
        if name is None:
            listed = await self._listed(thread_id, 1)
            if not listed:
                return None
            name = listed[0].checkpoint_id
        found: DeltaCheckpoint | None = await self.inner.retrieve(_allowed(thread_id), name)
        return None if found is None else _record_of(thread_id, name, found.data)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        known = await self._kept(thread_id, limit if before is None else None)
        return newest_first((head for _, head in known), limit, before)

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        async with self._turns.turn():
            if revisions is None:
                # Also of what cannot be read.
                listed = await self._listed(thread_id, _EVERY)
                await self.inner.delete(thread_id, None)
                return len(listed)
            known = await self._kept(thread_id, None)
            heads = [head for _, head in known]
            check_replacement(heads, removed=revisions, rebased=rebased)
            await self._overwrite(known, rebased)
            gone = [head.checkpoint_id for head in heads if head.revision in revisions]
            for name in gone:
                await self.inner.delete(thread_id, name)
            return len(gone)

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        listed: list[CheckpointMetadata] = await self.inner.list_checkpoints(_THREADS, _EVERY)
        names = page_of((each.checkpoint_id for each in listed), _EVERY, prefix=prefix, after=after)
        found: list[str] = []
        for name in names:
            if len(found) < limit and await self.inner.list_checkpoints(name, 1):
                found.append(name)
        return found

    @override
    async def open(self) -> None:
        begin: Any = getattr(self.inner, "open", None)
        if begin is not None:
            await begin()

    @override
    async def close(self) -> None:
        self._closed = True
        close: Any = getattr(self._storage, "close", None)
        if close is not None:
            await close()

    async def _listed(self, thread_id: str, limit: int) -> list[CheckpointMetadata]:
        listed: list[CheckpointMetadata]
        listed = await self.inner.list_checkpoints(_allowed(thread_id), limit)
        return listed

    async def _kept(
        self, thread_id: str, limit: int | None
    ) -> list[tuple[CheckpointMetadata, Record]]:
        """Return what is kept of a thread with its records, newest first."""
        listed = await self._listed(thread_id, _EVERY if limit is None else limit)
        found = [(each, await self.retrieve(thread_id, each.checkpoint_id)) for each in listed]
        return [(each, record) for each, record in found if record is not None]

    async def _overwrite(
        self, known: Sequence[tuple[CheckpointMetadata, Record]], rebased: Sequence[Record]
    ) -> None:
        """Write records in the place of those with the same revisions, the oldest first."""
        places = {record.revision: (each, record) for each, record in known}
        for record in rebased:
            told, before = places[record.revision]
            await self._put(replace(record, sequence=before.sequence), told.created_at, known)

    async def _put(
        self, record: Record, at: datetime, known: Sequence[tuple[CheckpointMetadata, Record]]
    ) -> None:
        parent = next((each for each, head in known if head.revision == record.base), None)
        told = CheckpointMetadata(
            record.checkpoint_id,
            record.thread_id,
            None if parent is None else parent.checkpoint_id,
            is_full=record.base is None,
            chain_depth=0 if parent is None else parent.chain_depth + 1,
            created_at=at,
            size_bytes=record.size,
            compressed_size_bytes=record.stored_size,
        )
        head = {name: each for name, each in asdict(record).items() if name != "payload"}
        data = orjson.dumps(head) + b"\n" + record.payload
        kept = DeltaCheckpoint(told, data, is_delta=not told.is_full)
        await self.inner.store(record.thread_id, record.checkpoint_id, kept)


def _allowed(thread_id: str) -> str:
    """Return the id of a thread.

    Raises:
        InvalidArgumentError: It is the name of the list of the threads.
    """
    if thread_id == _THREADS:
        raise InvalidArgumentError(f"a storage of four verbs keeps its threads in {_THREADS!r}")
    return thread_id


def _record_of(thread_id: str, checkpoint_id: str, data: bytes) -> Record:
    """Return the record of the bytes of a checkpoint.

    Raises:
        CheckpointCorruptError: They are those of no record, or of another one's.
    """
    head, _, payload = data.partition(b"\n")
    try:
        parts = orjson.loads(head)
        if parts["forked_from"] is not None:
            thread, checkpoint = parts["forked_from"]
            parts["forked_from"] = thread, checkpoint
        record = Record(**parts, payload=payload)
        if (record.thread_id, record.checkpoint_id) == (thread_id, checkpoint_id):
            return record
    except (ValueError, TypeError, KeyError) as error:
        reason = "its bytes are no record"
        raise CheckpointCorruptError(thread_id, checkpoint_id, reason) from error
    raise CheckpointCorruptError(thread_id, checkpoint_id, "it is that of another checkpoint")


def whole_storage(storage: Any) -> DeltaStorage:
    """Return a storage itself, or the `FourVerbStorage` of one whose `store` takes no `rebased`."""
    taken = inspect.signature(type(storage).store).parameters
    kinds = {each.kind for each in taken.values()}
    takes_all = "rebased" in taken or inspect.Parameter.VAR_KEYWORD in kinds
    return storage if isinstance(storage, DeltaStorage) and takes_all else FourVerbStorage(storage)
