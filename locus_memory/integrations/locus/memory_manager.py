"""The memory manager for the Locus SDK; public as `integrations.locus`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.manager import (
    BaseMemoryManager,
    Memory,
    MemoryType,
    without_memory_blocks,
)
from typing_extensions import override

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.base import Backend
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.events import emit
from locus_memory.integrations.locus.checkpointer import LOADED
from locus_memory.memory.base import BaseMemoryManager as OurMemoryManager
from locus_memory.memory.base import takes_query
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory as OurMemory
from locus_memory.store.base import BaseStore as OurStore

__all__ = ["LocusMemoryManager"]

_RUNS: Final = 4096
"""For how many runs a memory manager keeps the threads."""


class LocusMemoryManager(BaseMemoryManager):
    """A memory manager for the Locus SDK over a memory manager of the library.

    An `LLMMemoryManager` works in the SDK's agent as well. This class adds the name of the thread,
    which the SDK does not pass to a memory manager. With a `LocusCheckpointer`, memories are
    extracted from each message of a thread once, and a fork is recognised. Without a checkpointer,
    or with another one, each run is a separate thread: then pass `metadata={"thread_id": ...}` to
    the run.

    A run has the memories of its `metadata={"user_id": ...}`; see `LLMMemoryManager`. On a thread
    of a `LocusCheckpointer` that belongs to a user, each run has to name that user. A turn that is
    continued or resumed has the user of its thread.

    Args:
        where: A memory manager of the library, or the store of a new `LLMMemoryManager`: a provider
            string, a backend or a store. An object that is passed in is not closed here.
        inherit_user: Whether a run without a user, on a thread that belongs to a user, acts as
            that user. By default such a run is refused.
        **options: Options of the `LLMMemoryManager`, such as `extract_fn` and `recall`.

    Raises:
        ConfigurationError: Invalid options.
    """

    def __init__(
        self,
        where: str | OurStore | Backend | OurMemoryManager,
        *,
        inherit_user: bool = False,
        **options: Any,
    ) -> None:
        self._inherit_user = inherit_user
        if isinstance(where, OurMemoryManager):
            if options:
                raise ConfigurationError(f"options {sorted(options)} need a store, not a manager")
            self.manager, self._owned = where, False
        else:
            self.manager, self._owned = LLMMemoryManager(where, **options), True
        self._origins: RecentlyUsed[dict[str, Any]] = RecentlyUsed(_RUNS)

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.manager!r})"

    @override
    async def extract(self, messages: Sequence[Message]) -> list[Memory]:
        """Return the memories of a conversation, without writing them."""
        return list(map(_to_sdk, await self.manager.extract(messages)))

    @override
    async def retrieve(self, limit: int = 20) -> list[Memory]:
        """Return memories, newest first."""
        return list(map(_to_sdk, await self.manager.retrieve(limit=limit)))

    @override
    async def retrieve_relevant(self, query: str | None, limit: int | None = None) -> list[Memory]:
        """Return memories, the most relevant to `query` first.

        Args:
            query: The query; `None`: newest first.
            limit: At most this many; `None`: the manager's `retrieve_limit`.
        """
        count = self.manager.retrieve_limit if limit is None else limit
        if not takes_query(type(self.manager).retrieve):
            return await self.retrieve(count)
        return list(map(_to_sdk, await self.manager.retrieve(query=query, limit=count)))

    @override
    async def save(self, memories: Sequence[Memory]) -> None:
        """Write memories; each replaces the one of the same type and key."""
        await self.manager.save(list(map(_to_ours, memories)))

    @override
    async def on_session_start(self, state: AgentState) -> AgentState:
        """Return the state with the memories, which replace those of an earlier run.

        Raises:
            InvalidArgumentError: The thread belongs to a user, and the run has none.
        """
        loaded = LOADED.get()
        if loaded is not None and loaded.goes_on_in(state):
            if loaded.names_no_user(state) and not self._inherit_user:
                raise InvalidArgumentError(
                    f"thread {loaded.thread_id!r} belongs to a user, and this run names none: pass"
                    ' metadata={"user_id": ...}, or let runs act as the user of their thread with'
                    " LocusMemoryManager(..., inherit_user=True)"
                )
            try:
                self._origins.put(state.run_id, await loaded.origin())
            except Exception as error:  # noqa: BLE001 - reported; it never fails the run
                emit("memory.thread_unknown", error=error, thread_id=loaded.thread_id)
        return await self.manager.on_session_start(state)

    @override
    async def on_session_end(self, state: AgentState) -> None:
        """Extract memories from the messages that the run added to its thread."""
        said = without_memory_blocks(state)
        origin = self._origins.get(state.run_id)
        if origin is not None:
            said = said.model_copy(update={"metadata": {**origin, **said.metadata}})
        await self.manager.on_session_end(said)

    @property
    @override
    def pending_extractions(self) -> int:
        """The number of extraction jobs left in the background."""
        return self.manager.pending

    @override
    async def drain(self) -> None:
        """Wait for the extraction in the background."""
        await self.manager.drain()

    async def close(self) -> None:
        """Complete the running extraction, and close a manager that was created here."""
        if self._owned:
            await self.manager.close()


def _to_sdk(memory: OurMemory) -> Memory:
    return Memory(MemoryType(memory.type.value), memory.key, memory.content, dict(memory.metadata))


def _to_ours(memory: Memory) -> OurMemory:
    return OurMemory.from_store_value(memory.to_store_value())
