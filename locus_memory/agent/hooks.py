"""The hooks that an agent calls: those of its memory, and those around an invocation."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any, Final

from locus_memory._internal.cancellation import kept
from locus_memory._internal.quoting import quote
from locus_memory.agent.current import last_text
from locus_memory.agent.events import AgentResult
from locus_memory.agent.managers import SessionHooks, recalled, remember
from locus_memory.conversation.roles import (
    BLOCK_MARK,
    is_memory_block,
    is_off_record,
    runs_off_record,
)
from locus_memory.errors import ConfigurationError
from locus_memory.events import uncollected
from locus_memory.memory.providers.fence import cap, fence
from locus_memory.memory.providers.hooks import call_hook, has_hook
from locus_memory.memory.providers.settings import MemorySettings
from locus_memory.messages import Message, Role
from locus_memory.state import AgentState

__all__ = ["Invocation", "InvocationHooks", "MemoryHooks"]

_MOST_IDS: Final = 10_000
"""How many messages that were left out are remembered by their ids."""

_HOOK_SECONDS: Final = 30.0
_RECALL_SECONDS: Final = 5.0

_MOST_CHARACTERS: Final = 6_000
"""The most characters of the text of a provider, unless the settings say otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One run of an agent, as its hooks see it.

    Attributes:
        thread_id: The thread.
        user_id: The user of the run, if it has one.
        state: The thread: before the run with the user's message, after it as the run left it.
        result: The result of the run; `None` before it, and if it failed or was cancelled.
        error: The error that ended the run, or the `CancelledError` that did.
    """

    thread_id: str
    user_id: str | None
    state: AgentState
    result: AgentResult | None = None
    error: BaseException | None = None


class InvocationHooks:
    """Functions that an agent calls around each run; none of them can end or change it.

    Args:
        hook: The name of the argument of the agent.
        functions: Sync or async functions of an `Invocation`.

    Raises:
        ConfigurationError: One of them is not a function.
    """

    def __init__(self, hook: str, functions: Iterable[Callable[[Invocation], Any]]) -> None:
        self._hook = hook
        given: object = functions
        self._functions: tuple[Any, ...] = tuple(given) if isinstance(given, Iterable) else (None,)
        if not all(map(callable, self._functions)):
            raise ConfigurationError(f"{hook} is a list of functions, not {quote(functions)}")

    async def call(self, invocation: Invocation) -> None:
        """Call them in order; a failure is the event `agent.hook_failed`."""
        for function in self._functions:
            work = partial(function, invocation)
            await call_hook(self._hook, work, seconds=_HOOK_SECONDS, event="agent.hook_failed")


class MemoryHooks:
    """The hooks of an agent's memory manager, in the order of a run; none of them ends it.

    A hook that the manager lacks is not called. Of a run that is off the record, only
    `on_session_start` is told.

    Args:
        manager: The memory manager; `None`: no hook is called.
        settings: What is recalled and extracted; `None`: everything.
    """

    def __init__(
        self, manager: SessionHooks | None, settings: MemorySettings | None = None
    ) -> None:
        self._manager = manager
        self._settings = settings or MemorySettings()
        self._contract = None if manager is None else _contract()
        self._left_out: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._warming: set[asyncio.Task[Any]] = set()

    async def recall(self, state: AgentState, thread_id: str) -> AgentState:
        """Return the state with memories: those of `on_session_start`, then those of `prefetch`.

        A `BaseMemoryManager` asks its own `prefetch` at the start of a session.
        """
        if self._manager is None or not self._is_set("prefetch"):
            return state
        seen = await recalled(self._manager, state)
        is_asked = self._has("prefetch") and not runs_off_record(state)
        if is_asked and not isinstance(self._manager, self._contract or ()):
            found = await self._call(
                "prefetch", state, last_text(state.messages, Role.USER), session_id=thread_id
            )
            most = self._settings.max_prompt_chars
            seen = _with_text(seen, found, _MOST_CHARACTERS if most is None else most)
        return self._capped(seen)

    async def compact(
        self, state: AgentState, view: Sequence[Message], seen: Sequence[Message], thread_id: str
    ) -> None:
        """Call `on_pre_compact` with the messages of a thread that the model does not see.

        Each message is told once, by its id.

        Args:
            state: The state of the run.
            view: The messages before the conversation manager selected some of them.
            seen: The messages that it selected.
            thread_id: The thread.
        """
        if not self._has("on_pre_compact"):
            return
        shown = {each.id for each in seen}
        dropped = [each for each in view if each.id and each.role != Role.SYSTEM]
        fresh = [
            each
            for each in dropped
            if each.id not in shown and (thread_id, each.id) not in self._left_out
            if not is_off_record(each)
        ]
        if not fresh:
            return
        for each in fresh:
            self._left_out[thread_id, each.id or ""] = None
        while len(self._left_out) > _MOST_IDS:
            self._left_out.popitem(last=False)
        await self._call("on_pre_compact", state, fresh)

    async def end(self, state: AgentState) -> None:
        """Call the end hook of the session contract, `on_session_end(state)`."""
        if self._manager is not None and self._is_set("sync_turns", state):
            await remember(self._manager, state)

    async def complete(self, state: AgentState, thread_id: str) -> None:
        """Call `on_turn_complete` with the user's message and the answer."""
        if not self._is_set("sync_turns", state):
            return
        said = [last_text(state.messages, role) for role in (Role.USER, Role.ASSISTANT)]
        await self._call("on_turn_complete", state, *said, session_id=thread_id)

    async def warm(self, state: AgentState, thread_id: str) -> None:
        """Begin `queue_prefetch`, which no run waits for."""
        if not self._is_set("prefetch", state) or not self._has("queue_prefetch"):
            return
        work = self._call(
            "queue_prefetch", state, last_text(state.messages, Role.USER), session_id=thread_id
        )
        # Its failures are not those of a run that is over.
        task = kept(asyncio.create_task(work, context=uncollected()))
        self._warming.add(task)
        task.add_done_callback(self._warming.discard)
        # A hook that only takes a note is done when the run is: one turn of the loop starts the
        # task, and the next one starts the hook.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Cancel what is being prepared, and call `shutdown`."""
        for task in self._warming:
            task.cancel()
        await asyncio.gather(*self._warming, return_exceptions=True)
        await self._call("shutdown", None)

    def _is_set(self, name: str, told: AgentState | None = None) -> bool:
        """Return whether a setting is on, and the run that is told, if any, on the record."""
        return getattr(self._settings, name) and not (told is not None and runs_off_record(told))

    def _has(self, hook: str) -> bool:
        return has_hook(self._manager, hook, self._contract)

    async def _call(
        self, hook: str, state: AgentState | None, /, *arguments: Any, **named: Any
    ) -> Any:
        """Call a hook of the manager of the run's scope, if there is one."""
        if not self._has(hook):
            return None

        async def work() -> Any:
            for_run = None if state is None else getattr(self._manager, "for_run", None)
            bound = self._manager if for_run is None else await for_run(state)
            if bound is None:
                return None
            returned = getattr(bound, hook)(*arguments, **named)
            return await returned if isawaitable(returned) else returned

        return await call_hook(hook, work, seconds=self._seconds(hook))

    def _seconds(self, hook: str) -> float:
        if hook in ("on_turn_complete", "shutdown"):
            return float(getattr(self._manager, "hook_timeout", _HOOK_SECONDS))
        return float(getattr(self._manager, "recall_timeout", _RECALL_SECONDS))

    def _capped(self, state: AgentState) -> AgentState:
        """Return the state with each block of memories cut at the limit of the settings."""
        most = self._settings.max_prompt_chars
        if most is None:
            return state
        cut = (_cut(each, most) for each in state.messages)
        return state.model_copy(update={"messages": tuple(filter(None, cut))})


def _contract() -> type[Any]:
    from locus_memory.memory.base import BaseMemoryManager  # noqa: PLC0415 - only with memory

    return BaseMemoryManager


def _cut(message: Message, most: int) -> Message | None:
    """Return a message; of a block of memories, the lines that fit, and `None` if none does."""
    if not is_memory_block(message):
        return message
    text = cap(message.content or "", most)
    return message.model_copy(update={"content": text}) if text else None


def _with_text(state: AgentState, text: Any, most: int) -> AgentState:
    """Return the state with a fenced block of this text after its leading system messages."""
    block = cap(fence(text), most) if isinstance(text, str) else ""
    if not block:
        return state
    held = state.messages
    place = next((n for n, each in enumerate(held) if each.role != Role.SYSTEM), len(held))
    added = Message(role=Role.SYSTEM, content=block, metadata={BLOCK_MARK: True})
    return state.model_copy(update={"messages": (*held[:place], added, *held[place:])})
