"""Contract 3: the memory manager, which adds memories to a run and extracts new ones from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from inspect import Parameter, signature
from operator import is_
from typing import Any, Self, TypeVar

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.conversation.tokens import TokenCounter
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.extraction.thread import asked, is_worth_reading, query_of, told_in
from locus_memory.memory.forms import run_state, written
from locus_memory.memory.inject import Placement, inject, render_block
from locus_memory.memory.models import Memory, MemorySearchResult, origin_of
from locus_memory.memory.providers.base import TurnHooks
from locus_memory.memory.providers.hooks import call_hook
from locus_memory.memory.scope import thread_of
from locus_memory.memory.validity import said_at, stated
from locus_memory.store.item import check_limit

__all__ = ["BaseMemoryManager", "NoopMemoryManager"]

State = TypeVar("State")


class BaseMemoryManager(TurnHooks, Resource, ABC):
    """A manager that decides which memories an agent keeps, and which ones a run gets.

    An agent calls `on_session_start` before a run's first model call and `on_session_end` after
    its last one. Both have defaults that are built from `retrieve`, `extract` and `save`, which
    your own manager implements. If one of these fails, the run continues without it, and an
    event reports the failure (see `locus_memory.events`).

    The further hooks have defaults too: `prefetch` returns the block of memories for a query, and
    the others do nothing. An agent calls those that a manager has; it need not have them.

    A state is any object with `messages` and a `model_copy(update=...)` like that of pydantic, or a
    dataclass; a dict with `messages`, as graphs of LangGraph have it; or a list of messages. The
    messages may be those of LangChain, OpenAI, Anthropic or Pydantic AI, see `memory.forms`.

    Attributes:
        retrieve_limit: The highest number of memories that a run gets.
        token_budget: The highest number of tokens of their block.
        token_counter: Counts tokens; `None` estimates them.
        recall_timeout: The seconds that a run waits for its memories, and for `on_pre_compact`.
        hook_timeout: The seconds that an agent waits for `on_turn_complete` and `shutdown`.
    """

    retrieve_limit: int = 20
    token_budget: int = 1000
    token_counter: TokenCounter | None = None
    recall_timeout: float = 5.0
    hook_timeout: float = 30.0

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
        seen = run_state(state)
        bound = await self.for_run(seen)
        if bound is None:
            return with_block(state, None)
        query, thread = query_of(asked(seen.messages)) or "", thread_of(seen)
        found = partial(bound.prefetch, query, session_id=thread)
        block = await call_hook("prefetch", found, seconds=self.recall_timeout)
        return with_block(state, block or None)

    async def on_session_end(self, state: Any) -> None:
        """Extract the memories of the state's conversation, and save them."""
        said = told_in(run_state(state))
        if not is_worth_reading(said):
            return
        found = await call_hook(
            "extract", lambda: self.extract(said), event="memory.extract_failed"
        )
        # A manager of one's own may return one memory, or an iterator, which may fail.
        memories = await call_hook(
            "extract",
            lambda: [found] if isinstance(found, Memory) else list(found or ()),
            event="memory.extract_failed",
        )
        if memories:
            await call_hook(
                "save",
                lambda: self.save(memories),
                event="memory.save_failed",
                memories=len(memories),
            )

    async def prefetch(self, query: str, *, session_id: str = "") -> str:  # noqa: ARG002 - a default
        """Return the block of memories for a query; empty if there are none.

        `on_session_start` puts this block before the model.

        Args:
            query: The user's message; if empty, the newest memories come first.
            session_id: The thread, if it is known.
        """
        # A manager written before `retrieve` had a query lacks that argument.
        about = {"query": query or None} if takes_query(type(self).retrieve) else {}
        memories = await self.retrieve(**about, limit=self.retrieve_limit)
        block = render_block(
            memories, token_budget=self.token_budget, token_counter=self.token_counter
        )
        if block is None:
            return ""
        emit("memory.injected", retrieved=len(memories), characters=len(block))
        return block

    async def for_run(self, state: Any) -> Self | None:  # noqa: ARG002 - a default
        """Return the manager of a run's scope; `None`: the run has no memory.

        Args:
            state: The state of the run; its metadata may have a `user_id`.
        """
        return self

    async def search(self, query: str, limit: int = 5) -> list[MemorySearchResult]:
        """Return memories that match, the best first, as a memory tool needs them.

        Args:
            query: Their subject.
            limit: At most this many.
        """
        return [search_result(memory) for memory in await self.retrieve(query, limit)]

    async def remember(self, content: str) -> str:
        """Save a fact that someone asked to remember; return its id, as `search` does.

        The same content again has the same id.

        Raises:
            InvalidArgumentError: The content is empty.
        """
        memory = Memory(content=content, metadata={"extractor": "manual"})
        await self.save([memory])
        return memory.id

    async def drain(self) -> int:
        """Wait for the background tasks; returns the number of jobs left for later."""
        return 0

    @property
    def pending(self) -> int:
        """The number of jobs left for the background tasks."""
        return 0


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


def with_block(
    state: State, block: str | None, placement: Placement = "system", *, stable: str | None = None
) -> State:
    """Return a state in which `block` replaces the block of memories; `None` deletes the block.

    Args:
        state: The state.
        block: The block.
        placement: Its place.
        stable: A further block, which stands at the end of the system prompt.
    """
    held = run_state(state)
    messages = inject(held.messages, block, placement, stable=stable)
    if len(messages) == len(held.messages) and all(map(is_, messages, held.messages)):
        return state
    copied: State = written(state, held, messages)
    return copied


def search_result(memory: Memory, score: float | None = None) -> MemorySearchResult:
    """Return a memory as a memory tool needs it.

    Args:
        memory: The memory.
        score: How well it matches, if that is known.
    """
    facts = memory.metadata
    return MemorySearchResult(
        id=memory.id,
        content=memory.content,
        score=score,
        source=str(facts.get("extractor") or ""),
        created_at=said_at(memory) or facts.get("extracted_at"),
        origin=origin_of(memory),
        **stated(memory),
    )


def query_and_limit(
    query: str | int | None, limit: int | str | None
) -> tuple[str | None, int | None]:
    """Return the two arguments of `retrieve`, in either order, as a query and a limit.

    Raises:
        InvalidArgumentError: Two queries or two limits, or an argument that is neither.
    """
    if isinstance(query, int) or isinstance(limit, str):
        query, limit = limit, query
    if not isinstance(query, str | None):
        raise InvalidArgumentError(
            f"retrieve takes a query and a limit, not {quote(query)} and {quote(limit)}"
        )
    return query, None if limit is None else check_limit(limit)


@lru_cache(maxsize=64)
def takes_query(retrieve: Callable[..., Any]) -> bool:
    """Return whether a manager's `retrieve` accepts a query."""
    parameters = signature(retrieve).parameters.values()
    return any(each.name == "query" or each.kind is Parameter.VAR_KEYWORD for each in parameters)
