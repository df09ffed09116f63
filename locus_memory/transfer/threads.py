"""Threads of a checkpointer, read for a copy: every checkpoint with its whole state, in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from locus_memory._internal.running.paging import paged
from locus_memory.checkpoint.base import BaseCheckpointer, RestoredCheckpoint
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.delta import apply
from locus_memory.checkpoint.encoding.chain_cache import replay_kind
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.states import Kind, readable
from locus_memory.checkpoint.storage import DeltaStorage
from locus_memory.errors import CheckpointError, ConfigurationError
from locus_memory.store.item import timestamp

__all__ = ["all_threads", "checkpoints_of", "heads_of", "same_checkpoint"]

_PAGE: Final = 500


def all_threads(checkpointer: BaseCheckpointer) -> AsyncIterator[str]:
    """Yield the ids of all threads, in ascending order."""
    return paged(lambda after: checkpointer.list_threads(_PAGE, after=after))


def _storage_of(checkpointer: BaseCheckpointer) -> DeltaStorage:
    if isinstance(checkpointer, DeltaCheckpointer):
        return checkpointer.storage
    raise ConfigurationError(
        f"threads are copied from a DeltaCheckpointer, not from {type(checkpointer).__name__}"
    )


async def heads_of(checkpointer: BaseCheckpointer, thread_id: str) -> list[RecordHead]:
    """Return the heads of a thread's records, oldest first.

    Raises:
        ConfigurationError: It is a checkpointer of another kind than those of this library.
    """
    return (await _storage_of(checkpointer).list_checkpoints(thread_id, None))[::-1]


def same_checkpoint(one: RecordHead, other: RecordHead) -> bool:
    """Whether two heads, of different databases, are of the same save."""
    return _identity(one) == _identity(other)


def _identity(head: RecordHead) -> tuple[Any, ...]:
    origin = None if head.forked_from is None else tuple(head.forked_from)
    return head.checkpoint_id, timestamp(head.created_at), head.metadata, origin


@dataclass(slots=True)
class _Replay:
    """The states of a thread, read record by record.

    Attributes:
        storage: The storage.
        last_use: For each revision, the place of the last record that builds on it.
        states: The states that a later record builds on, by revision.
    """

    storage: DeltaStorage
    last_use: dict[int, int]
    states: dict[int, Any]

    async def read(self, head: RecordHead, place: int) -> tuple[Any, Kind] | None:
        """Return the state and the kind of a checkpoint; `None`: it was deleted meanwhile."""
        record = await self.storage.retrieve(head.thread_id, head.checkpoint_id)
        if record is None:
            return None
        if record.base is None or record.base in self.states:
            state, kind = self._applied(record)
        else:
            chain = await self.storage.retrieve_chain(head.thread_id, head.checkpoint_id)
            if not chain:
                return None
            states, kind = replay_kind(chain)
            state = states[-1]
        if self.last_use.get(record.revision, -1) > place:
            self.states[record.revision] = state
        if record.base is not None and self.last_use.get(record.base, -1) <= place:
            self.states.pop(record.base, None)
        return state, kind

    def _applied(self, record: Record) -> tuple[Any, Kind]:
        content, letter = record.unpack_kind()
        try:
            kind = Kind(letter)
            if record.base is not None:
                content = apply(self.states[record.base], content)
        except (CheckpointError, ValueError) as error:
            raise record.corrupt(str(error)) from error
        return content, kind


async def checkpoints_of(
    checkpointer: BaseCheckpointer, heads: Sequence[RecordHead], start: int = 0
) -> AsyncIterator[RestoredCheckpoint]:
    """Yield the checkpoints of a thread from a place on, each with its state.

    Each record is read once, and a state is held only as long as a later record builds on it. A
    checkpoint that is deleted meanwhile is left out.

    Args:
        checkpointer: The checkpointer.
        heads: All heads of the thread, as `heads_of` returns them.
        start: The place of the first checkpoint to yield.

    Raises:
        CheckpointCorruptError: A record is damaged.
    """
    last_use = {head.base: place for place, head in enumerate(heads) if head.base is not None}
    replay = _Replay(_storage_of(checkpointer), last_use, {})
    for place, head in enumerate(heads[start:], start):
        found = await replay.read(head, place)
        if found is None:
            continue
        state, kind = found
        yield RestoredCheckpoint(
            checkpoint_id=head.checkpoint_id,
            state=readable(state, kind),
            metadata=head.metadata,
            created_at=timestamp(head.created_at),
            forked_from=None if head.forked_from is None else (*head.forked_from,),
            kind=kind.name.lower(),
        )
