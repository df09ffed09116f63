"""What an agent needs of the managers it is given; no failure of theirs reaches the run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeGuard

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory.backends.base import Backend
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.events import emit
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.store.base import BaseStore

__all__ = [
    "SessionHooks",
    "Trimmer",
    "as_memory_manager",
    "checked_trimmer",
    "recalled",
    "remember",
    "trimmed",
]

_MESSAGES_A_PROMPT: Final = 20


class SessionHooks(Protocol):
    """What an agent needs of a memory manager; either may be async or not."""

    def on_session_start(self, state: Any, /) -> Any:
        """Return the state, with the messages that the model is to see."""
        ...

    def on_session_end(self, state: Any, /) -> Any:
        """Take what is worth keeping from the whole thread."""
        ...


class Trimmer(Protocol):
    """What an agent needs of a conversation manager; `async_apply` is preferred, if there."""

    def apply(self, messages: Any, /) -> Any:
        """Return the messages that the model is to see now."""
        ...


def as_memory_manager(
    where: str | BaseStore | Backend | SessionHooks | None, model: Any
) -> tuple[SessionHooks | None, bool]:
    """Return a memory manager, and whether the caller owns it and so closes it.

    A provider string, a store or a backend becomes an `LLMMemoryManager`. The model extracts the
    memories, in the background and with one prompt a session: once 20 messages wait, or the
    thread is quiet for a minute, or the agent is closed. Where the model says that it cannot,
    rules do, before the run ends.

    Raises:
        ConfigurationError: It is none of these, or a bad provider string.
    """
    if where is None or _has_hooks(where):
        return where, False
    if not isinstance(where, str | BaseStore | Backend):
        raise ConfigurationError(
            "a memory manager has on_session_start and on_session_end, or is a provider string,"
            f" a store or a backend, not {type(where).__name__}"
        )
    # Loaded only for agents with memory.
    from locus_memory.memory.extraction.extractors import LLMExtractor  # noqa: PLC0415
    from locus_memory.memory.manager import LLMMemoryManager  # noqa: PLC0415

    if not getattr(model, "follows_instructions", True):
        return LLMMemoryManager(where), True
    manager = LLMMemoryManager(
        where,
        extract_fn=LLMExtractor(model),
        extract_mode="background",
        batch_messages=_MESSAGES_A_PROMPT,
    )
    return manager, True


def _has_hooks(where: object) -> TypeGuard[SessionHooks]:
    return hasattr(where, "on_session_start") and hasattr(where, "on_session_end")


def checked_trimmer(manager: Trimmer | None) -> Trimmer | None:
    """Return the conversation manager.

    Raises:
        ConfigurationError: It is none.
    """
    if manager is None or hasattr(manager, "apply") or hasattr(manager, "async_apply"):
        return manager
    raise ConfigurationError(
        f"a conversation manager has apply or async_apply, not {type(manager).__name__}"
    )


async def recalled(manager: SessionHooks | None, state: AgentState) -> AgentState:
    """Return the state with memories, or as it is."""
    if manager is None:
        return state
    try:
        found = await _awaited(manager.on_session_start(state))
        # Whatever it is, it has what a state has: else the run would fail later.
        metadata = {**state.metadata, **found.metadata}
        messages = _checked(found.messages)
        return state.model_copy(update={"messages": messages, "metadata": metadata})
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - reported
        raise_if_cancelled(error)
        emit("agent.memory_failed", error=error, hook="on_session_start")
        return state


async def remember(manager: SessionHooks | None, state: AgentState) -> None:
    """Let the manager keep what it likes."""
    if manager is None:
        return
    try:
        await _awaited(manager.on_session_end(state))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - reported
        raise_if_cancelled(error)
        emit("agent.memory_failed", error=error, hook="on_session_end")


async def trimmed(manager: Trimmer | None, messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages that the model is to see; all of them where the manager fails."""
    if manager is None:
        return messages
    try:
        apply = getattr(manager, "async_apply", None) or manager.apply
        return _checked(await _awaited(apply(list(messages))))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - reported; all is shown
        raise_if_cancelled(error)
        emit("agent.trim_failed", error=error)
        return messages


def _checked(returned: Any) -> tuple[Message, ...]:
    messages = tuple(returned)
    if not messages or not all(isinstance(each, Message) for each in messages):
        raise InvalidArgumentError("a manager returned something else than messages, or none")
    return messages


async def _awaited(returned: Any) -> Any:
    return await returned if inspect.isawaitable(returned) else returned
