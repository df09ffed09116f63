"""Contract 2: what every checkpointer does, whatever database is behind it."""

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
    "State",
    "StateT",
    "StorageStats",
    "Unset",
]


class Unset(Enum):
    """The type of `UNSET`, which stands for "not given" where `None` means something."""

    UNSET = "UNSET"


UNSET: Final = Unset.UNSET


@runtime_checkable
class Checkpointable(Protocol):
    """A state of the caller's own: plain JSON out, and back."""

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
"""What can be saved: plain JSON, or an object that turns into it."""

StateT = TypeVar("StateT", default=Any)
"""What `load` returns, if there is such a checkpoint."""


if TYPE_CHECKING:

    class AnyState(Any):  # type: ignore[misc] # it is what it is for
        """Whatever was saved: a type checker lets the caller use it as what they know it to be.

        Unlike `Any` itself, it leaves no overload in doubt, such as those of `blocking`.
        """
else:
    AnyState = Any


@dataclass(frozen=True, slots=True)
class CheckpointerCapabilities:
    """What a checkpointer can do, and does.

    Attributes:
        search: Full-text search over states (use a store for that).
        metadata_query: `query_by_metadata` works.
        vacuum: `prune` and `vacuum` work.
        branching: `fork` and `copy_thread` work.
        ttl: Checkpoints expire by themselves.
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
    """What is known of a checkpoint without loading its state.

    Attributes:
        thread_id: The thread it belongs to.
        checkpoint_id: Its name there.
        sequence: Its place in the storage's own order; higher is newer.
        created_at: When it was saved, UTC; informative, never used for order.
        metadata: What the caller saved with it.
        is_full: Whether its record is a whole state rather than a delta.
        size: Bytes of its record before compression.
        stored_size: Bytes of its record as stored.
        revision: The number of its record, another one when it is saved again; `None` where
            the checkpointer has none.
        forked_from: The thread and the checkpoint that the thread was forked from, on the
            checkpoint that the fork began with. If that one is removed, on the nearest one that
            stays. `None`: this checkpoint was not copied by a fork, or only on the way to where
            the fork began.
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


class StorageStats(TypedDict):
    """What a thread costs; sizes in bytes.

    `total_size` is the records before compression, `compressed_size` the records as stored,
    and `compression_ratio` the first by the second (1.0 for an empty thread).
    """

    total_checkpoints: int
    full_checkpoints: int
    delta_checkpoints: int
    total_size: int
    compressed_size: int
    compression_ratio: float


class BaseCheckpointer(Resource, ABC, Generic[StateT]):
    """Every state of every thread, loadable for good.

    A state is a plain dict of JSON, an `AgentState`, a pydantic model, a dataclass, or an object
    with `to_checkpoint()` and a classmethod `from_checkpoint(dict)`. The order of a thread's
    checkpoints is the storage's own, never the clock's. Rules, each one a test of
    `locus_memory.testing.CheckpointerConformance`:

    - Two processes that save one thread lose nothing.
    - Deleting or pruning any checkpoint leaves every other loadable.
    - A damaged record is `CheckpointCorruptError`, never wrong data; an outage is
      `BackendUnavailableError`, never "not found".
    - What `load` returns is the caller's own: changing it changes nothing stored.
    """

    @property
    @abstractmethod
    def capabilities(self) -> CheckpointerCapabilities:
        """What this checkpointer can do; true, not hoped for."""

    @property
    def deletes_single_checkpoints(self) -> bool:
        """Whether `delete` can remove one checkpoint and leave the rest: it always can.

        The agent of the Locus SDK asks for it, and then saves the steps of a turn as well.
        """
        return True

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
            state: What to save; it may be changed once the call returns.
            thread_id: Any non-empty string.
            checkpoint_id: Its name; an existing one is replaced by, and moves to, this newest
                place. Made up when not given.
            metadata: A JSON object to find it by.
            expected_parent: Save only if this is the newest checkpoint now (`None`: only if
                the thread is empty).

        Returns:
            The checkpoint's id.

        Raises:
            CheckpointConflictError: `expected_parent` does not hold; nothing was written.
            StateTypeError: It is no state.
            ValueNotSerializableError: The state is not JSON; names the path.
            BackendError: The database failed; nothing was half-written.
        """

    @abstractmethod
    async def load(self, thread_id: str, checkpoint_id: str | None = None) -> StateT | None:
        """Return a state, the newest by default, or `None` if there is no such checkpoint.

        Without a `state_type` of the checkpointer's, it returns what was saved: an `AgentState`,
        or a dict for everything else.

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
        """Return what is known of a thread's checkpoints, newest first.

        Args:
            thread_id: Which thread.
            limit: At most this many.
            before: Only those older than this checkpoint: the cursor.

        Raises:
            CheckpointNotFoundError: `before` is not a checkpoint of the thread.
        """

    @abstractmethod
    async def get_metadata(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> dict[str, Any] | None:
        """Return a checkpoint's metadata, the newest's by default, or `None`."""

    @abstractmethod
    async def delete(self, thread_id: str, checkpoint_id: str | None = None) -> bool:
        """Delete one checkpoint, or the whole thread; returns whether anything was there.

        Every other checkpoint of the thread stays loadable.
        """

    async def exists(self, thread_id: str, checkpoint_id: str | None = None) -> bool:
        """Whether the checkpoint, or any checkpoint of the thread, is there."""
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
        """Return the checkpoints of all threads whose metadata match, newest first.

        The filter is a store filter (`locus_memory.store.filters`).
        """

    @abstractmethod
    async def copy_thread(self, source: str, target: str) -> int:
        """Copy a thread with its whole history; returns how many checkpoints it has.

        The source stays as it is, and the two never share a fate afterwards.

        Raises:
            CheckpointNotFoundError: There is no such source.
            CheckpointConflictError: The target has checkpoints already; they are untouched.
        """

    @abstractmethod
    async def fork(self, thread_id: str, checkpoint_id: str, new_thread_id: str) -> str:
        """Start a thread from a checkpoint of another, its history up to there included.

        The checkpoint that the new thread begins with says where it comes from:
        `CheckpointInfo.forked_from`. Its metadata stay the caller's.

        Returns:
            `checkpoint_id`, the newest checkpoint of the new thread.

        Raises:
            CheckpointNotFoundError: There is no such checkpoint.
            CheckpointConflictError: The new thread has checkpoints already.
        """

    @abstractmethod
    async def prune(
        self,
        thread_id: str,
        *,
        keep_last: int | None = None,
        older_than: timedelta | datetime | None = None,
    ) -> int:
        """Delete old checkpoints of one thread; the newest always survives.

        With both limits, only what both condemn is deleted.

        Args:
            thread_id: Which thread.
            keep_last: Keep this many of the newest, at least 1.
            older_than: Keep what is younger than this age, or saved at or after this time.

        Returns:
            How many were deleted.

        Raises:
            InvalidArgumentError: No limit, or `keep_last` below 1.
        """

    @abstractmethod
    async def vacuum(self, older_than_days: float = 30) -> int:
        """Prune every thread by age and give the space back.

        The newest checkpoint of each thread survives, however old. A thread with a damaged
        record is left as it is, and reported as an event.

        Returns:
            How many checkpoints were deleted.

        Raises:
            InvalidArgumentError: A negative age.
        """

    @abstractmethod
    async def get_storage_stats(self, thread_id: str) -> StorageStats:
        """Return what the thread costs."""
