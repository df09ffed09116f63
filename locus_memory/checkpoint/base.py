"""Contract 2: the checkpointer, the same on every database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    runtime_checkable,
)

from typing_extensions import TypeVar

from locus_memory._internal.resource import Resource

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "UNSET",
    "AnyState",
    "BaseCheckpointer",
    "CheckpointInfo",
    "Checkpointable",
    "CheckpointerCapabilities",
    "RestoredCheckpoint",
    "State",
    "StateT",
    "StorageStats",
    "Unset",
]


class Unset(Enum):
    """The type of `UNSET`, which means "not given" where `None` has a meaning."""

    UNSET = "UNSET"


UNSET: Final = Unset.UNSET


@runtime_checkable
class Checkpointable(Protocol):
    """Your own class of states: it converts to plain JSON and back."""

    def to_checkpoint(self) -> dict[str, Any]:
        """Return the state as plain JSON."""
        ...

    @classmethod
    def from_checkpoint(cls, document: dict[str, Any], /) -> Self:
        """Return the state that `to_checkpoint` wrote."""
        ...


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


State: TypeAlias = "Checkpointable | Mapping[str, Any] | BaseModel | _Dataclass"
"""A state that can be saved: plain JSON, or an object that converts to it."""

StateT = TypeVar("StateT", default=Any)
"""The type that `load` returns, if there is such a checkpoint."""


if TYPE_CHECKING:

    class AnyState(Any):  # type: ignore[misc] # the class exists for this
        """The saved state, of any class: a type checker accepts any use of it.

        Unlike `Any` itself, it makes no overload ambiguous, such as those of `blocking`.
        """
else:
    AnyState = Any


@dataclass(frozen=True, slots=True)
class CheckpointerCapabilities:
    """The capabilities that a checkpointer declares.

    Attributes:
        search: Full-text search over states (use a store for that).
        metadata_query: `query_by_metadata` works.
        vacuum: `prune` and `vacuum` work.
        branching: `fork` and `copy_thread` work.
        ttl: Checkpoints expire automatically.
        list_threads: `list_threads` works.
        list_with_metadata: `list_with_metadata` and `get_metadata` work.
        persistent_checkpoint_ids: Checkpoints outlive the process.
    """

    search: bool = False
    metadata_query: bool = False
    vacuum: bool = False
    branching: bool = False
    ttl: bool = False
    list_threads: bool = False
    list_with_metadata: bool = False
    persistent_checkpoint_ids: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """Information on a checkpoint that is available without its state.

    Attributes:
        thread_id: The thread it belongs to.
        checkpoint_id: Its id in the thread.
        sequence: Its place in the storage's own order; higher is newer.
        created_at: When it was saved, UTC; informative, never used for order.
        metadata: The metadata that the caller saved with it.
        is_full: Whether its record is a whole state rather than a delta.
        size: Bytes of its record before compression.
        stored_size: Bytes of its record as stored.
        revision: The number of its record, which changes when it is saved again; `None` if the
            checkpointer has no revisions.
        forked_from: The source of the fork, thread and checkpoint, on the checkpoint that the fork
            began with. If that one is removed, it is on the nearest one that stays. `None`: this
            checkpoint was not copied by a fork, or it is older than the one the fork began with.
    """

    thread_id: str
    checkpoint_id: str
    sequence: int
    created_at: datetime
    metadata: dict[str, Any]
    is_full: bool
    size: int
    stored_size: int
    revision: int | None = None
    forked_from: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredCheckpoint:
    """A checkpoint for `BaseCheckpointer.restore`: a state with a moment and an origin of its own.

    Attributes:
        checkpoint_id: Its id in the thread.
        state: The state.
        metadata: The metadata of the checkpoint, a JSON object.
        created_at: When it was saved; a moment with a time zone.
        forked_from: The source of the fork that it began with, thread and checkpoint, or `None`.
        kind: The kind of the state, if it is the JSON of another object: `agent`, `mapping`,
            `object` or `unsaid`. `None`: that of the state itself.
    """

    checkpoint_id: str
    state: State
    metadata: Mapping[str, Any]
    created_at: datetime
    forked_from: tuple[str, str] | None = None
    kind: str | None = None


class StorageStats(TypedDict):
    """The storage that a thread takes; sizes in bytes.

    `total_size` is the size of the records before compression, `compressed_size` their size as
    stored, and `compression_ratio` the first divided by the second (1.0 for an empty thread).
    """

    total_checkpoints: int
    full_checkpoints: int
    delta_checkpoints: int
    total_size: int
    compressed_size: int
    compression_ratio: float


class BaseCheckpointer(Resource, ABC, Generic[StateT]):
    """The base class of checkpointers: saves and loads every state of every thread.

    A state is a plain dict of JSON, an `AgentState`, a pydantic model, a dataclass, or an object
    with `to_checkpoint()` and a classmethod `from_checkpoint(dict)`. The storage determines the
    order of a thread's checkpoints, never the clock. `locus_memory.testing.CheckpointerConformance`
    tests each of these rules:

    - Two processes that save the same thread lose nothing.
    - Deleting or pruning any checkpoint leaves every other loadable.
    - A damaged record raises `CheckpointCorruptError` and never gives wrong data; an outage raises
      `BackendUnavailableError`, never "not found".
    - A loaded state belongs to the caller: changing it changes no stored data.
    """

    @property
    @abstractmethod
    def capabilities(self) -> CheckpointerCapabilities:
        """The capabilities of this checkpointer, tested rather than assumed."""

    @abstractmethod
    async def save(
        self,
        state: State,
        thread_id: str,
        checkpoint_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        expected_parent: str | Unset | None = UNSET,
    ) -> str:
        """Save a state as the newest checkpoint of its thread.

        Args:
            state: The state to save; the caller may change it after the call returns.
            thread_id: Any non-empty string.
            checkpoint_id: The id; an existing checkpoint of this id is replaced, and the new one is
                the newest. Generated by default.
            metadata: A JSON object, for `query_by_metadata`.
            expected_parent: Save only if this is the newest checkpoint now (`None`: only if
                the thread is empty).

        Returns:
            The checkpoint's id.

        Raises:
            CheckpointConflictError: `expected_parent` is not the newest; nothing was written.
            StateTypeError: It is not a state.
            ValueNotSerializableError: The state is not JSON; the error names the path.
            BackendError: The database failed; the record is complete or absent.
        """

    @abstractmethod
    async def load(self, thread_id: str, checkpoint_id: str | None = None) -> StateT | None:
        """Return a state, the newest by default, or `None` if there is no such checkpoint.

        If the checkpointer has no `state_type`, `load` returns an `AgentState` if one was saved,
        and a dict for any other state.

        Raises:
            CheckpointCorruptError: A record it needs is damaged.
            StateTypeError: `state_type` refuses the stored state.
        """

    @abstractmethod
    async def list_checkpoints(self, thread_id: str, limit: int = 10) -> list[str]:
        """Return checkpoint ids, newest first."""

    @abstractmethod
    async def list_with_metadata(
        self, thread_id: str, limit: int = 10, *, before: str | None = None
    ) -> list[CheckpointInfo]:
        """Return information on a thread's checkpoints, newest first.

        Args:
            thread_id: The thread.
            limit: At most this many.
            before: The cursor: only checkpoints older than this one.

        Raises:
            CheckpointNotFoundError: `before` is not a checkpoint of the thread.
        """

    @abstractmethod
    async def get_metadata(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> dict[str, Any] | None:
        """Return the metadata of a checkpoint, the newest by default, or `None`."""

    @abstractmethod
    async def delete(self, thread_id: str, checkpoint_id: str | None = None) -> bool:
        """Delete one checkpoint, or the whole thread; return whether anything was deleted.

        Every other checkpoint of the thread stays loadable.
        """

    async def exists(self, thread_id: str, checkpoint_id: str | None = None) -> bool:
        """Whether the checkpoint exists, or any checkpoint of the thread."""
        return await self.get_metadata(thread_id, checkpoint_id) is not None

    @abstractmethod
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        """Return thread ids in ascending code point order; `after` is the cursor."""

    @abstractmethod
    async def query_by_metadata(
        self,
        filter: Mapping[str, Any],  # noqa: A002 - the field's word
        limit: int = 100,
    ) -> list[CheckpointInfo]:
        """Return the checkpoints of all threads whose metadata matches, newest first.

        The filter is a store filter (`locus_memory.store.filters`).
        """

    @abstractmethod
    async def copy_thread(self, source: str, target: str) -> int:
        """Copy a thread with its whole history; return the number of its checkpoints.

        The source is not changed. The two threads are independent from then on.

        Raises:
            CheckpointNotFoundError: The source does not exist.
            CheckpointConflictError: The target already has checkpoints; they are not changed.
        """

    @abstractmethod
    async def fork(self, thread_id: str, checkpoint_id: str, new_thread_id: str) -> str:
        """Start a thread from a checkpoint of another, with the history up to it.

        `CheckpointInfo.forked_from` of the checkpoint that the new thread begins with names the
        source. The metadata of that checkpoint is not changed.

        Returns:
            `checkpoint_id`, the newest checkpoint of the new thread.

        Raises:
            CheckpointNotFoundError: There is no such checkpoint.
            CheckpointConflictError: The new thread already has checkpoints.
        """

    async def restore(
        self,
        thread_id: str,
        checkpoint: RestoredCheckpoint,
        *,
        expected_parent: str | Unset | None = UNSET,
    ) -> None:
        """Save a checkpoint as it was: with its id, moment, metadata and origin.

        It is for copies of a thread, as of `locus_memory.transfer`: the checkpoints of a thread are
        restored in their order. As with `save`, it becomes the newest of its thread.

        Args:
            thread_id: The thread.
            checkpoint: The checkpoint.
            expected_parent: As for `save`.

        Raises:
            CheckpointConflictError: `expected_parent` is not the newest; nothing was written.
            InvalidArgumentError: A field is invalid; nothing was written.
            StateTypeError: It has no state.
            ValueNotSerializableError: The state is not JSON; the error names the path.
            NotImplementedError: This checkpointer cannot do it.
            BackendError: The database failed; the record is complete or absent.
        """
        raise NotImplementedError(f"{type(self).__name__} does not restore checkpoints")

    @abstractmethod
    async def prune(
        self,
        thread_id: str,
        *,
        keep_last: int | None = None,
        older_than: timedelta | datetime | None = None,
    ) -> int:
        """Delete old checkpoints of one thread; the newest always stays.

        With both limits, only checkpoints that meet both conditions are deleted.

        Args:
            thread_id: The thread.
            keep_last: Keep this many of the newest, at least 1.
            older_than: Keep checkpoints younger than this age, or saved at or after this time.

        Returns:
            How many were deleted.

        Raises:
            InvalidArgumentError: No limit, or `keep_last` below 1.
        """

    @abstractmethod
    async def vacuum(self, older_than_days: float = 30) -> int:
        """Prune every thread by age and reclaim the space.

        The newest checkpoint of each thread stays, however old. LangGraph's pending writes stay
        with their checkpoints, and go with them. A thread with a damaged record is not changed, and
        an event reports it.

        Returns:
            How many checkpoints were deleted.

        Raises:
            InvalidArgumentError: A negative age.
        """

    @abstractmethod
    async def get_storage_stats(self, thread_id: str) -> StorageStats:
        """Return the storage that the thread takes."""
