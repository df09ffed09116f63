"""The memory manager over a provider: it gives the hooks of a provider to any loop."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from inspect import isawaitable
from typing import Any, Self

from typing_extensions import override

from locus_memory.conversation.roles import runs_off_record
from locus_memory.errors import ConfigurationError, StoreCapabilityError
from locus_memory.events import emit
from locus_memory.memory.base import BaseMemoryManager, State, query_and_limit, with_block
from locus_memory.memory.extraction.thread import asked, query_of, told_in
from locus_memory.memory.models import Memory, MemorySearchResult, MemoryType
from locus_memory.memory.options import check_seconds, check_whole
from locus_memory.memory.providers.base import BaseMemoryProvider, is_provider
from locus_memory.memory.providers.fence import cap, fence
from locus_memory.memory.providers.hooks import call_hook, has_hook
from locus_memory.memory.providers.sessions import OpenSessions
from locus_memory.memory.scope import thread_of, user_of

__all__ = ["ProviderManager"]

_DEFAULTS = BaseMemoryProvider()


class ProviderManager(BaseMemoryManager):
    """A memory manager over a memory provider.

    `on_session_start` asks `prefetch`, fences the text and puts it before the model. An agent calls
    the other hooks. Each hook has a time limit, and its failure is the event `agent.memory_failed`.

    The user of a run is the user of the provider: a provider with `for_user(user_id)` is asked for
    that user's. A provider without it serves one user: a run of a second one has no memory, with
    the event `memory.scope_failed`. A run that is off the record never reaches the provider.

    Args:
        provider: A `BaseMemoryProvider`, or any object with `prefetch` or `on_turn_complete`.
        owned: Whether `close` also calls the provider's `shutdown`.
        batch_quiet: After so many seconds without a turn, a session is over, and the provider's
            `on_session_end` gets its messages; `close` ends all sessions.
        recall_timeout: The seconds that `prefetch`, `queue_prefetch` and `on_pre_compact` may take.
        hook_timeout: The seconds that any other hook may take.
        max_prompt_chars: The most characters of the fenced text.

    Raises:
        ConfigurationError: An object without these methods, or a negative number.
    """

    def __init__(
        self,
        provider: Any,
        *,
        owned: bool = True,
        batch_quiet: float = 60.0,
        recall_timeout: float = 5.0,
        hook_timeout: float = 30.0,
        max_prompt_chars: int = 6000,
    ) -> None:
        if not is_provider(provider):
            raise ConfigurationError(
                "a memory provider has prefetch or on_turn_complete, and no on_session_start;"
                f" {type(provider).__name__} is not one"
            )
        check_seconds(
            batch_quiet=batch_quiet, recall_timeout=recall_timeout, hook_timeout=hook_timeout
        )
        check_whole(0, max_prompt_chars=max_prompt_chars)
        self.provider = provider
        self.recall_timeout = recall_timeout
        self.hook_timeout = hook_timeout
        self.max_prompt_chars = max_prompt_chars
        self._owned = owned
        self._user: str | None = None
        self._bound = False
        self._single: list[str | None] = []
        self._sessions = OpenSessions(batch_quiet, hook_timeout)

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.provider).__name__})"

    def for_user(self, user_id: str | None) -> Self:
        """Return this manager bound to a user, or to nobody; closing it does nothing.

        Raises:
            ConfigurationError: The provider has no `for_user`, and it serves another user already.
        """
        view = copy.copy(self)
        view._user, view._bound = user_id, True  # noqa: SLF001 - it is one of us
        if callable(getattr(self.provider, "for_user", None)):
            if user_id is not None:
                view.provider = self.provider.for_user(user_id)
            return view
        # Shared by all views: the first user is the only one.
        if not self._single:
            self._single.append(user_id)
        if self._single != [user_id]:
            raise ConfigurationError(
                f"{type(self.provider).__name__} serves one user, and this run has another: give"
                " it a method for_user(user_id) that returns the provider of a user"
            )
        return view

    @override
    async def for_run(self, state: Any) -> Self | None:
        if self._bound:
            return self
        try:
            return self.for_user(user_of(state))
        except Exception as error:  # noqa: BLE001 - reported; a run of nobody sees nothing
            emit("memory.scope_failed", error=error)
            return None

    @override
    async def on_session_start(self, state: State) -> State:
        bound = None if runs_off_record(state) else await self.for_run(state)
        if bound is None:
            return with_block(state, None)
        held: Any = state
        query, thread = query_of(asked(held.messages)) or "", thread_of(state)
        block = await call_hook(
            "prefetch",
            lambda: bound.prefetch(query, session_id=thread),
            seconds=self.recall_timeout,
        )
        return with_block(state, block or None)

    @override
    async def on_session_end(self, state: Any) -> None:
        """Keep the messages of the session until it is over; see `batch_quiet`."""
        bound = await self.for_run(state)
        if bound is not None:
            key = (bound._user, thread_of(state))  # noqa: SLF001 - it is one of us
            self._sessions.note(key, bound.provider, told_in(state))

    @override
    async def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the provider's text as one fenced block, cut at `max_prompt_chars`."""
        if not has_hook(self.provider, "prefetch"):
            return ""
        text = await _awaited(self.provider.prefetch(query, session_id=session_id))
        if not isinstance(text, str | None):
            raise ConfigurationError(f"prefetch returns a text, not {type(text).__name__}")
        block = cap(fence(text or ""), self.max_prompt_chars)
        if block:
            emit("memory.injected", retrieved=block.count("\n") - 2, characters=len(block))
        return block

    @override
    async def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        await _awaited(self._method("queue_prefetch")(query, session_id=session_id))

    @override
    async def on_turn_complete(self, user: str, assistant: str, *, session_id: str = "") -> None:
        await _awaited(self._method("on_turn_complete")(user, assistant, session_id=session_id))

    @override
    async def on_pre_compact(self, messages: Sequence[Any]) -> None:
        await _awaited(self._method("on_pre_compact")(messages))

    @override
    async def on_memory_write(self, action: str, target: str, content: str) -> None:
        await _awaited(self._method("on_memory_write")(action, target, content))

    @override
    async def search(self, query: str, limit: int = 5) -> list[MemorySearchResult]:
        found: list[MemorySearchResult] = await _awaited(self._method("search")(query, limit))
        return found

    @override
    async def remember(self, content: str) -> str:
        memory_id: str = await _awaited(self._method("remember")(content))
        return memory_id

    async def forget(self, memory_id: str) -> bool:
        """Delete a fact by the id that `search` returned; return whether it was there.

        Raises:
            StoreCapabilityError: The provider has no such verb.
        """
        was_there: bool = await _awaited(self._method("forget")(memory_id))
        return was_there

    @override
    async def reflect(self, query: str) -> str:
        text: str = await _awaited(self._method("reflect")(query))
        return text

    @override
    async def extract(self, messages: Sequence[Any]) -> list[Memory]:
        """Return nothing: a provider extracts by itself, after each turn."""
        return []

    @override
    async def retrieve(
        self, query: str | int | None = None, limit: int | str | None = None
    ) -> list[Memory]:
        """Return what the provider's `search` finds; nothing without a query."""
        about, most = query_and_limit(query, limit)
        if not about:
            return []
        found = await self.search(about, self.retrieve_limit if most is None else most)
        return [_memory(each) for each in found if each.content.strip()]

    @override
    async def save(self, memories: Sequence[Memory]) -> Sequence[Memory] | None:
        """Let the provider remember the content of each memory."""
        for memory in memories:
            await self.remember(memory.content)
        return None

    @override
    async def close(self) -> None:
        """End all sessions, then call the provider's `shutdown` if it is owned."""
        if self._bound:
            return
        await self._sessions.close()
        if self._owned and has_hook(self.provider, "shutdown"):
            await call_hook("shutdown", self.provider.shutdown, seconds=self.hook_timeout)

    def _method(self, name: str) -> Any:
        """Return a method of the provider, or the default of one that it lacks."""
        if has_hook(self.provider, name):
            return getattr(self.provider, name)
        if name in ("remember", "forget"):
            raise StoreCapabilityError(name, type(self.provider).__name__)
        return getattr(_DEFAULTS, name)


async def _awaited(returned: Any) -> Any:
    """Return the result of a hook, which may be sync or async."""
    return await returned if isawaitable(returned) else returned


def _memory(found: MemorySearchResult) -> Memory:
    facts = {"extractor": found.source, "valid_from": found.created_at}
    known = {name: fact for name, fact in facts.items() if fact}
    return Memory(MemoryType.USER, found.id or "fact", found.content, known)
