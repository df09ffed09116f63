"""The checkpointer for the Locus SDK; public as `integrations.locus`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Self, cast

from locus.core.messages import Message, Role
from locus.core.protocols import CheckpointerCapabilities
from locus.core.state import AgentState
from locus.memory.checkpointer import BaseCheckpointer
from locus.memory.registry import register_checkpointer
from typing_extensions import override

from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import UNSET, Checkpointable, CheckpointInfo, Unset
from locus_memory.checkpoint.base import BaseCheckpointer as OurCheckpointer
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.errors import (
    CheckpointNotFoundError,
    ConfigurationError,
    ValueNotSerializableError,
)
from locus_memory.integrations.locus.state import StateFormat
from locus_memory.registry import as_checkpointer, get_checkpointer

__all__ = ["LOADED", "Loaded", "LocusCheckpointer", "register"]

_PAGE: Final = 500


class LocusCheckpointer(BaseCheckpointer):
    """A checkpointer for the Locus SDK that stores deltas in any backend.

    A `DeltaCheckpointer` with `state_type=AgentState` (the SDK's) works in its agent as well. This
    class adds the behaviour of the SDK's own checkpointers: a save after each step of a turn, so
    that `Agent.continue_turn` continues after a crash; repeated `run_sync`, which closes the
    checkpointer each time; the SDK's arguments and results where they differ from the library's;
    and the name of the thread for a `LocusMemoryManager`.

    `close()` closes the checkpointer of a provider string; the next use opens it again. A
    checkpointer in memory is never closed, since its data would be lost. An object that is passed
    in is not closed here.

    Args:
        where: A provider string, a backend or a checkpointer of the library.
        state_type: The class that `load` returns: the SDK's `AgentState` or a subclass.
        **options: Options of the checkpointer of a provider string.

    Raises:
        ConfigurationError: An invalid `where`, or an unknown option.
    """

    def __init__(
        self,
        where: str | OurCheckpointer | Backend,
        *,
        state_type: type[AgentState] = AgentState,
        **options: Any,
    ) -> None:
        self._format = StateFormat(state_type)
        # It is only used to read states of that class.
        returned = cast("type[Checkpointable]", self._format)
        if isinstance(where, str):
            self._place = _Place(
                lambda: get_checkpointer(where, state_type=returned, **options), owned=True
            )
            return
        if options:
            raise ConfigurationError(f"options {sorted(options)} need a provider string")
        given = _returning(as_checkpointer(where)[0], returned)
        self._place = _Place(lambda: given, owned=False)

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.checkpointer!r})"

    @property
    def checkpointer(self) -> OurCheckpointer:
        """The inner checkpointer, for verbs that the SDK's contract does not have."""
        with self._place.use() as checkpointer:
            return checkpointer

    @property
    @override
    def capabilities(self) -> CheckpointerCapabilities:
        """The capabilities of the inner checkpointer."""
        return CheckpointerCapabilities(**asdict(self.checkpointer.capabilities))

    @property
    @override
    def deletes_single_checkpoints(self) -> bool:
        """True: deleting one leaves every other loadable, so the agent saves after each step."""
        return True

    @override
    async def save(
        self,
        state: AgentState,
        thread_id: str,
        checkpoint_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        expected_parent: str | Unset | None = UNSET,
    ) -> str:
        """Save a state as the newest checkpoint of its thread.

        Raises:
            CheckpointConflictError: `expected_parent` is not the newest checkpoint.
            ValueNotSerializableError: The state or the metadata cannot be written.
            BackendError: The database failed.
        """
        document = _with_plain_user(self._format.document(state))
        with self._place.use() as checkpointer:
            try:
                return await checkpointer.save(
                    document, thread_id, checkpoint_id, metadata, expected_parent=expected_parent
                )
            except ValueNotSerializableError:
                document = self._format.written_out(document)
            return await checkpointer.save(
                document, thread_id, checkpoint_id, metadata, expected_parent=expected_parent
            )

    @override
    async def load(self, thread_id: str, checkpoint_id: str | None = None) -> AgentState | None:
        """Return a state, the newest by default, or `None` if there is no such checkpoint.

        Raises:
            CheckpointCorruptError: A record it needs is damaged.
            StateTypeError: The stored state is not a state of the SDK.
            BackendError: The database failed.
        """
        with self._place.use() as checkpointer:
            found = await checkpointer.load(thread_id, checkpoint_id)
        state = self._format.from_checkpoint(found) if isinstance(found, dict) else found
        if checkpoint_id is None:
            state = _with_thread_user(state)
            messages = state.messages if state else ()
            LOADED.set(Loaded(self, thread_id, len(messages), messages[-1] if messages else None))
        loaded: AgentState | None = state
        return loaded

    @override
    async def list_checkpoints(self, thread_id: str, limit: int = 10) -> list[str]:
        """Return checkpoint ids, newest first."""
        with self._place.use() as checkpointer:
            return await checkpointer.list_checkpoints(thread_id, limit)

    @override
    async def delete(self, thread_id: str, checkpoint_id: str | None = None) -> bool:
        """Delete one checkpoint, or the whole thread; return whether anything was deleted."""
        with self._place.use() as checkpointer:
            return await checkpointer.delete(thread_id, checkpoint_id)

    @override
    async def exists(self, thread_id: str, checkpoint_id: str | None = None) -> bool:
        """Whether the checkpoint exists, or any checkpoint of the thread."""
        with self._place.use() as checkpointer:
            return await checkpointer.exists(thread_id, checkpoint_id)

    @override
    async def get_metadata(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> dict[str, Any] | None:
        """Return the metadata of a checkpoint, the newest by default, or `None`."""
        with self._place.use() as checkpointer:
            return await checkpointer.get_metadata(thread_id, checkpoint_id)

    @override
    async def query_by_metadata(
        self, key: str, value: Any, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return the checkpoints of all threads whose metadata has a value, newest first.

        Args:
            key: The field, a dotted path.
            value: The value of the field; types are never coerced.
            limit: At most this many.
        """
        with self._place.use() as checkpointer:
            found = await checkpointer.query_by_metadata({key: {"$eq": value}}, limit)
        return list(map(_described, found))

    @override
    async def list_with_metadata(self, limit: int = 100) -> list[dict[str, Any]]:
        """Return the checkpoints of all threads without their states, newest first."""
        with self._place.use() as checkpointer:
            return list(map(_described, await checkpointer.query_by_metadata({}, limit)))

    @override
    async def list_threads(self, limit: int = 100, pattern: str = "*") -> list[str]:
        """Return thread ids in ascending order.

        Args:
            limit: At most this many.
            pattern: A shell pattern of the ids: `*`, `?` and `[...]`.
        """
        prefix = re.split(r"[*?\[]", pattern, maxsplit=1)[0] or None
        found: list[str] = []
        after: str | None = None
        with self._place.use() as checkpointer:
            while len(found) < limit:
                page = await checkpointer.list_threads(_PAGE, prefix=prefix, after=after)
                if not page:
                    break
                found += [name for name in page if fnmatchcase(name, pattern)]
                after = page[-1]
        return found[:limit]

    @override
    async def copy_thread(self, source_thread_id: str, dest_thread_id: str) -> bool:
        """Copy a thread with its whole history; return whether it existed.

        Raises:
            CheckpointConflictError: The target already has checkpoints; they are not changed.
        """
        with self._place.use() as checkpointer:
            try:
                return await checkpointer.copy_thread(source_thread_id, dest_thread_id) > 0
            except CheckpointNotFoundError:
                return False

    @override
    async def vacuum(self, older_than_days: float = 30) -> int:
        """Prune every thread by age; the newest checkpoint of each stays, however old.

        Returns:
            How many checkpoints were deleted.
        """
        with self._place.use() as checkpointer:
            return await checkpointer.vacuum(older_than_days)

    @override
    async def close(self) -> None:
        """Close the checkpointer of a provider string, unless a call is using it."""
        await self._place.close()

    async def __aenter__(self) -> Self:
        with self._place.use() as checkpointer:
            await checkpointer.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Place:
    """A checkpointer that can be closed at any time: the next use creates it again.

    Several threads may use it, each in its own event loop, and close it after each run.
    """

    def __init__(self, make: Callable[[], OurCheckpointer], *, owned: bool) -> None:
        self._make = make
        self._made: OurCheckpointer | None = make()
        # Data in memory would be lost.
        self._closable = owned and self._made.capabilities.persistent_checkpoint_ids
        self._users = 0
        self._lock = threading.Lock()

    @contextmanager
    def use(self) -> Generator[OurCheckpointer]:
        """Yield the checkpointer, which stays open meanwhile."""
        with self._lock:
            made = self._made = self._made or self._make()
            self._users += 1
        try:
            yield made
        finally:
            with self._lock:
                self._users -= 1

    async def close(self) -> None:
        """Close it, if no call is using it."""
        with self._lock:
            if self._users or not self._closable:
                return
            made, self._made = self._made, None
        if made is not None:
            await made.close()


def _returning(checkpointer: OurCheckpointer, state_type: type[Checkpointable]) -> OurCheckpointer:
    """Return a checkpointer over the same storage that loads such states."""
    if not isinstance(checkpointer, DeltaCheckpointer):
        return checkpointer
    view = copy(checkpointer)
    view.state_type = state_type
    return view


def _described(info: CheckpointInfo) -> dict[str, Any]:
    return {
        "thread_id": info.thread_id,
        "checkpoint_id": info.checkpoint_id,
        "created_at": info.created_at.isoformat(),
        "metadata": info.metadata,
    }


def register(name: str = "locus_memory") -> None:
    """Register `LocusCheckpointer` for `get_checkpointer("locus_memory:sqlite:./agent.db")`.

    Args:
        name: The SDK's provider, before the first colon; a provider string of the library follows.
    """

    def make(config_hint: str | None = None, **options: Any) -> BaseCheckpointer:
        if config_hint is None:
            raise ConfigurationError(f"{name}: needs a provider string, such as '{name}:memory'")
        return LocusCheckpointer(config_hint, **options)

    register_checkpointer(name, make)


class ThreadUser(str):
    """A `user_id` from a loaded thread, not from the run."""

    __slots__ = ()


def _with_thread_user(state: Any) -> Any:
    """Return a state whose own user can be distinguished from the user of a run."""
    user = state.metadata.get("user_id") if state else None
    if not isinstance(user, str):
        return state
    return state.model_copy(update={"metadata": {**state.metadata, "user_id": ThreadUser(user)}})


def _with_plain_user(document: dict[str, Any]) -> dict[str, Any]:
    user = document.get("metadata", {}).get("user_id")
    if not isinstance(user, ThreadUser):
        return document
    return {**document, "metadata": {**document["metadata"], "user_id": str(user)}}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded thread, and the end of its conversation."""

    checkpointer: LocusCheckpointer
    thread_id: str
    count: int
    last: Message | None

    def goes_on_in(self, state: AgentState) -> bool:
        """Whether a run continues this thread."""
        if self.last is None:
            return all(message.role != Role.ASSISTANT for message in state.messages)
        return any(message is self.last for message in reversed(state.messages))

    def names_no_user(self, state: AgentState) -> bool:
        """Whether a run without a user begins a turn on a thread that belongs to a user.

        A turn that is continued or resumed is the same run, and adds no user message.
        """
        user, last = state.metadata.get("user_id"), state.messages[-1]
        return isinstance(user, ThreadUser) and last.role == Role.USER and last is not self.last

    async def origin(self) -> dict[str, Any]:
        """Return the metadata of the thread for a memory manager of the library.

        Raises:
            BackendError: The database failed.
        """
        known: dict[str, Any] = {"thread_id": self.thread_id}
        if self.count:
            saved = await self.checkpointer.get_metadata(self.thread_id) or {}
            # Written by `Agent.fork`.
            parent = saved.get("forked_from")
            if isinstance(parent, str):
                known["forked_from"] = {"thread_id": parent, "messages": self.count}
        return known


LOADED: ContextVar[Loaded | None] = ContextVar("locus_memory_loaded_thread", default=None)
"""Set by each `LocusCheckpointer.load`: the thread that the calling run continues."""
