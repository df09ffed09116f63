"""The memory manager over a provider: it gives the hooks of a provider to any loop."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any, Final, Self, TypeVar

from typing_extensions import override

from locus_memory._internal.running.background import BackgroundTasks
from locus_memory.conversation.roles import runs_off_record
from locus_memory.errors import ConfigurationError
from locus_memory.events import emit
from locus_memory.memory.base import BaseMemoryManager, query_and_limit
from locus_memory.memory.extraction.thread import told_in
from locus_memory.memory.forms import run_state
from locus_memory.memory.models import Memory, MemorySearchResult, MemoryType
from locus_memory.memory.options import check_number, check_whole
from locus_memory.memory.providers.base import BaseMemoryProvider, is_provider
from locus_memory.memory.providers.fence import cap, fence
from locus_memory.memory.providers.hooks import call_hook, has_hook
from locus_memory.memory.scope import thread_of, user_of

__all__ = ["ProviderManager"]

_MOST: Final = 1_000
"""How many sessions are open at once; the oldest one is over when there is one more."""

_Result = TypeVar("_Result")


class ProviderManager(BaseMemoryManager):
    """A memory manager over a memory provider.

    `on_session_start` asks `prefetch`, fences the text and puts it before the model. An agent calls
    the other hooks. Each hook has a time limit, and its failure is the event `agent.memory_failed`.

    The user of a run is the user of the provider: a provider with `for_user(user_id)` is asked for
    that user's. A provider without it serves one user: a run of a second one has no memory, with
    the event `memory.scope_failed`. A run that is off the record never reaches the provider.

    Args:
        provider: A `BaseMemoryProvider`, or any object with `prefetch` or `on_turn_complete`.
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
        check_number(
            batch_quiet=batch_quiet, recall_timeout=recall_timeout, hook_timeout=hook_timeout
        )
        check_whole(0, max_prompt_chars=max_prompt_chars)
        self.provider = provider
        self.recall_timeout = recall_timeout
        self.hook_timeout = hook_timeout
        self.max_prompt_chars = max_prompt_chars
        self._user: str | None = None
        self._bound = False
        # Shared by all views.
        self._served: dict[str, str | None] = {}
        self._sessions = _Sessions(batch_quiet, hook_timeout)

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
        if self._served.setdefault("user", user_id) != user_id:
            raise ConfigurationError(
                f"{type(self.provider).__name__} serves one user, and this run has another: give"
                " it a method for_user(user_id) that returns the provider of a user"
            )
        return view

    @override
    async def for_run(self, state: Any) -> Self | None:
        """Return this manager bound to the user of a run; `None`: the run has no memory."""
        try:
            state = run_state(state)
            if runs_off_record(state):
                return None
            return self if self._bound else self.for_user(user_of(state))
        except Exception as error:  # noqa: BLE001 - reported; a run of nobody sees nothing
            emit("memory.scope_failed", error=error)
            return None

    @override
    async def on_session_end(self, state: Any) -> None:
        """Keep the messages of the session until it is over; see `batch_quiet`."""
        state = run_state(state)
        bound = await self.for_run(state)
        if bound is not None:
            key = (bound._user, thread_of(state))  # noqa: SLF001 - it is one of us
            self._sessions.note(key, bound.provider, told_in(state))

    @override
    async def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the provider's text as one fenced block, cut at `max_prompt_chars`."""
        text: object = await self._ask(BaseMemoryProvider.prefetch, query, session_id=session_id)
        if not isinstance(text, str | None):
            raise ConfigurationError(f"prefetch returns a text, not {type(text).__name__}")
        block = cap(fence(text or ""), self.max_prompt_chars)
        if block:
            emit("memory.injected", retrieved=block.count("\n") - 2, characters=len(block))
        return block

    @override
    async def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        await self._ask(BaseMemoryProvider.queue_prefetch, query, session_id=session_id)

    @override
    async def on_turn_complete(self, user: str, assistant: str, *, session_id: str = "") -> None:
        hook = BaseMemoryProvider.on_turn_complete
        await self._ask(hook, user, assistant, session_id=session_id)

    @override
    async def on_pre_compact(self, messages: Sequence[Any]) -> None:
        await self._ask(BaseMemoryProvider.on_pre_compact, messages)

    @override
    async def on_memory_write(self, action: str, target: str, content: str) -> None:
        await self._ask(BaseMemoryProvider.on_memory_write, action, target, content)

    @override
    async def search(self, query: str, limit: int = 5) -> list[MemorySearchResult]:
        return await self._ask(BaseMemoryProvider.search, query, limit)

    @override
    async def remember(self, content: str) -> str:
        return await self._ask(BaseMemoryProvider.remember, content)

    async def forget(self, memory_id: str) -> bool:
        """Delete a fact by the id that `search` returned; return whether it was there.

        Raises:
            StoreCapabilityError: The provider has no such verb.
        """
        return await self._ask(BaseMemoryProvider.forget, memory_id)

    @override
    async def reflect(self, query: str) -> str:
        return await self._ask(BaseMemoryProvider.reflect, query)

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
        limit = self.retrieve_limit if most is None else most
        found = await self.search(about, limit) if about else []
        return [_memory(each) for each in found if each.content.strip()]

    @override
    async def save(self, memories: Sequence[Memory]) -> Sequence[Memory] | None:
        """Let the provider remember the content of each memory."""
        for memory in memories:
            await self.remember(memory.content)
        return None

    @override
    async def close(self) -> None:
        """End all sessions, then call the provider's `shutdown`."""
        if self._bound:
            return
        await self._sessions.close()
        release = partial(self._ask, BaseMemoryProvider.shutdown)
        await call_hook("shutdown", release, seconds=self.hook_timeout)

    async def _ask(
        self, default: Callable[..., Awaitable[_Result]], *arguments: Any, **named: Any
    ) -> _Result:
        """Return the result of the provider's method, sync or async, or of the default."""
        own = getattr(self.provider, default.__name__, None)
        method = own if callable(own) else partial(default, self.provider)
        returned: Any = method(*arguments, **named)
        result: _Result = await returned if isawaitable(returned) else returned
        return result


class _Sessions(BackgroundTasks):
    """The latest messages of each session, until the provider is told that it is over.

    A session is over when it was quiet for a while, and when `close` is called. A message later
    opens it again.

    Args:
        quiet: The seconds without a turn after which a session is over.
        seconds: How long a provider may take to be told.
    """

    def __init__(self, quiet: float, seconds: float) -> None:
        super().__init__()
        self._quiet = quiet
        self._seconds = seconds
        self._open: dict[object, tuple[Any, Sequence[Any], asyncio.TimerHandle]] = {}

    def note(self, key: object, provider: Any, messages: Sequence[Any]) -> None:
        """Keep the messages of a session after a turn.

        Args:
            key: The user and the thread.
            provider: The provider of that user.
            messages: All messages of the session.
        """
        if not messages or not has_hook(provider, "on_session_end", BaseMemoryProvider):
            return
        if key in self._open:
            self._open.pop(key)[-1].cancel()
        timer = asyncio.get_running_loop().call_later(self._quiet, self._end, key)
        self._open[key] = provider, messages, timer
        if len(self._open) > _MOST:
            self._end(next(iter(self._open)))

    async def close(self) -> None:
        """Tell the providers that all sessions are over, and wait for them."""
        for key in list(self._open):
            self._end(key)
        await self.wait()

    def _end(self, key: object) -> None:
        provider, messages, timer = self._open.pop(key)
        timer.cancel()
        told = partial(provider.on_session_end, messages)
        self.start(call_hook("on_session_end", told, seconds=self._seconds))


def _memory(found: MemorySearchResult) -> Memory:
    facts = {"extractor": found.source, "valid_from": found.created_at}
    known = {name: fact for name, fact in facts.items() if fact}
    return Memory(MemoryType.USER, found.id or "fact", found.content, known)
