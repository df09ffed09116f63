"""Contract 3: the memory manager, which adds memories to a run and extracts new ones from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any, TypeVar

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.conversation.tokens import TokenCounter
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.extraction.thread import conversation, is_worth_reading, latest_user_text
from locus_memory.memory.inject import inject, render_block, strip
from locus_memory.memory.models import Memory
from locus_memory.store.item import check_limit

__all__ = ["BaseMemoryManager", "NoopMemoryManager"]

State = TypeVar("State")


class BaseMemoryManager(Resource, ABC):
    """A manager that decides which memories an agent keeps, and which ones a run gets.

    An agent calls `on_session_start` before a run's first model call and `on_session_end` after
    its last one. Both have defaults that are built from `retrieve`, `extract` and `save`, which
    your own manager implements. If one of these fails, the run continues without it, and an
    event reports the failure (see `locus_memory.events`).

    A state is any object with `messages` and a `model_copy(update=...)` like that of pydantic.

    Attributes:
        retrieve_limit: The highest number of memories that a run gets.
        token_budget: The highest number of tokens of their block.
        token_counter: Counts tokens; `None` estimates them.
    """

    retrieve_limit: int = 20
    token_budget: int = 1000
    token_counter: TokenCounter | None = None

    @abstractmethod
    async def extract(self, messages: Sequence[Any]) -> list[Memory]:
        """Return the memories of a conversation that are worth keeping; writes nothing.

        Args:
            messages: The conversation, oldest message first.
        """

    @abstractmethod
    async def retrieve(
        self, query: str | int | None = None, limit: int | str | None = None
    ) -> list[Memory]:
        """Return memories, the best first.

        The types of the two arguments tell them apart: `retrieve(5)` and `retrieve(5, "tea")` mean
        the same as `retrieve(limit=5)` and `retrieve("tea", 5)`.

        Args:
            query: The subject of the memories; `None`: the newest come first.
            limit: At most this many; `None`: the `retrieve_limit`.
        """

    @abstractmethod
    async def save(self, memories: Sequence[Memory]) -> Sequence[Memory] | None:
        """Write memories; each replaces the one of the same type and key."""

    async def on_session_start(self, state: State) -> State:
        """Return the state with a block of memories after its system prompt.

        The latest text of the user is the query. The block replaces that of an earlier run. If
        no memory is found, or the search fails, the state has no block.
        """
        messages: Any = state.messages  # type: ignore[attr-defined] # a state has messages
        block = await self._block(latest_user_text(strip(messages)))
        return with_block(state, block)

    async def on_session_end(self, state: Any) -> None:
        """Extract the memories of the state's conversation, and save them."""
        said = conversation(state.messages)
        if not is_worth_reading(said):
            return
        try:
            memories = await self.extract(said)
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("memory.extract_failed", error=error)
            return
        if not memories:
            return
        try:
            await self.save(memories)
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("memory.save_failed", error=error, memories=len(memories))

    async def drain(self) -> int:
        """Wait for the background tasks; returns the number of jobs left for later."""
        return 0

    @property
    def pending(self) -> int:
        """The number of jobs left for the background tasks."""
        return 0

    async def _block(self, query: str | None) -> str | None:
        try:
            memories = await self._recalled(query)
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("memory.retrieve_failed", error=error)
            return None
        try:
            block = render_block(
                memories, token_budget=self.token_budget, token_counter=self.token_counter
            )
        except Exception as error:  # noqa: BLE001 - reported; a caller's counter may raise
            emit("memory.inject_failed", error=error)
            return None
        if block is not None:
            emit("memory.injected", retrieved=len(memories), characters=len(block))
        return block

    async def _recalled(self, query: str | None) -> list[Memory]:
        if takes_query(type(self).retrieve):
            return await self.retrieve(query=query, limit=self.retrieve_limit)
        # A manager written before `retrieve` had a query.
        return await self.retrieve(limit=self.retrieve_limit)


class NoopMemoryManager(BaseMemoryManager):
    """A manager that remembers nothing and changes nothing."""

    @override
    async def extract(self, messages: Sequence[Any]) -> list[Memory]:
        """Return nothing."""
        return []

    @override
    async def retrieve(
        self, query: str | int | None = None, limit: int | str | None = None
    ) -> list[Memory]:
        """Return nothing."""
        return []

    @override
    async def save(self, memories: Sequence[Memory]) -> Sequence[Memory] | None:
        """Write nothing."""
        return []

    @override
    async def on_session_start(self, state: State) -> State:
        """Return the state unchanged."""
        return state

    @override
    async def on_session_end(self, state: Any) -> None:
        """Do nothing."""


def with_block(state: State, block: str | None) -> State:
    """Return a state in which `block` replaces the block of memories; `None` deletes the block."""
    held: Any = state
    messages = inject(held.messages, block)
    if len(messages) == len(held.messages) and all(map(_is, messages, held.messages)):
        return state
    kept: Any = messages if isinstance(held.messages, list) else tuple(messages)
    copied: State = held.model_copy(update={"messages": kept})
    return copied


def _is(one: object, other: object) -> bool:
    return one is other


def query_and_limit(
    query: str | int | None, limit: int | str | None
) -> tuple[str | None, int | None]:
    """Return the two arguments of `retrieve`, in either order, as a query and a limit.

    Raises:
        InvalidArgumentError: Two queries or two limits, or an argument that is neither.
    """
    first, second = (limit, query) if _is_limit(query) or isinstance(limit, str) else (query, limit)
    if isinstance(first, str | None) and (second is None or _is_limit(second)):
        return first, check_limit(second) if second is not None else None
    raise InvalidArgumentError(
        f"retrieve takes a query and a limit, not {quote(query)} and {quote(limit)}"
    )


def _is_limit(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@lru_cache(maxsize=64)
def takes_query(retrieve: Callable[..., Any]) -> bool:
    """Return whether a manager's `retrieve` accepts a query."""
    parameters = signature(retrieve).parameters.values()
    return any(each.name == "query" or each.kind is Parameter.VAR_KEYWORD for each in parameters)
