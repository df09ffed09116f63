"""The protocols of an agent's managers, and calls whose failures never end a run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeGuard

from locus_memory.backends.base import Backend
from locus_memory.conversation.roles import is_memory_block, split_block
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.memory.providers.hooks import call_hook
from locus_memory.memory.providers.settings import MemorySettings
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.store.base import BaseStore

if TYPE_CHECKING:
    from locus_memory.agent.resources import ResourceHooks

__all__ = [
    "PrefetchHook",
    "SessionHooks",
    "Trimmer",
    "TurnHook",
    "as_memory_manager",
    "memory_of",
    "recalled",
    "remember",
    "resource_hooks",
    "trimmed",
    "with_placement",
]


_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class SessionHooks(Protocol):
    """The methods that an agent needs of a memory manager; each may be sync or async."""

    def on_session_start(self, state: Any, /) -> Any:
        """Return the state with the messages that the model sees."""
        ...

    def on_session_end(self, state: Any, /) -> Any:
        """Extract memories from the whole thread."""
        ...


class PrefetchHook(Protocol):
    """A memory provider that recalls."""

    def prefetch(self, query: str, /, *, session_id: str) -> Any:
        """Return the text to put before the model."""
        ...


class TurnHook(Protocol):
    """A memory provider that extracts."""

    def on_turn_complete(self, user: str, assistant: str, /, *, session_id: str) -> Any:
        """Keep the facts of a turn."""
        ...


class Trimmer(Protocol):
    """The method that an agent needs of a conversation manager, or else `async_apply`.

    If the manager has both, the agent calls `async_apply`.
    """

    def apply(self, messages: Any, /) -> Any:
        """Return the messages that the model sees now."""
        ...


def memory_of(where: Any, settings: MemorySettings, model: Any) -> tuple[SessionHooks | None, bool]:
    """Return the memory manager of an agent with these settings; as `as_memory_manager`.

    Raises:
        ConfigurationError: As for `as_memory_manager`; or the memory is given twice.
    """
    if where is not None and settings.provider is not None:
        raise ConfigurationError("memory is given twice: as memory_manager and by the settings")
    if not settings.enabled:
        return None, False
    made, owned = as_memory_manager(settings.provider if where is None else where, model)
    if owned and settings.max_prompt_chars is not None and hasattr(made, "max_prompt_chars"):
        # Otherwise its default would cut first.
        setattr(made, "max_prompt_chars", settings.max_prompt_chars)  # noqa: B010 - of one class
    return made, owned


def as_memory_manager(
    where: Any, model: Any = None, options: Mapping[str, Any] = _NONE
) -> tuple[SessionHooks | None, bool]:
    """Return a memory manager, and whether the caller owns it and has to close it.

    A string is one of `get_memory_manager`; a store or a backend becomes an `LLMMemoryManager`, as
    a string of a store does. In such a manager, the model extracts the memories in the background,
    with one prompt per session: when the thread has been idle for a minute, when the user goes on
    in another thread, or when the agent is closed. If the model declares that it cannot, phrases
    are read before the run ends. A memory provider becomes a `ProviderManager`.

    Args:
        where: The manager, or what becomes one.
        model: The model of the agent; `None`: it is not known, and phrases are read.
        options: Options of a manager that is made here; they outrank those of the model.

    Raises:
        ConfigurationError: It is none of these, or an invalid provider string; or there are options
            for a manager that is not made here.
    """
    if where is None or _has_hooks(where):
        if options:
            raise ConfigurationError(f"options {sorted(options)} need a store, not a manager")
        return where, False
    # Loaded only for agents with memory.
    from locus_memory.memory.manager import LLMMemoryManager  # noqa: PLC0415
    from locus_memory.memory.providers.base import is_provider  # noqa: PLC0415
    from locus_memory.memory.providers.manager import ProviderManager  # noqa: PLC0415
    from locus_memory.memory.providers.registry import open_memory_manager  # noqa: PLC0415

    if isinstance(where, str):
        return open_memory_manager(where, options, preferred=_extraction(model)), True
    if isinstance(where, BaseStore | Backend):
        return LLMMemoryManager(where, **{**_extraction(model), **options}), True
    if is_provider(where):
        return ProviderManager(where, **options), True
    raise ConfigurationError(
        "a memory manager has on_session_start and on_session_end, a memory provider has prefetch"
        " or on_turn_complete, or it is a provider string, a store or a backend, not"
        f" {type(where).__name__}"
    )


def _extraction(model: Any) -> dict[str, Any]:
    """Return the options of a manager that extracts with this model, if it can."""
    from locus_memory.memory.extraction.extractors import LLMExtractor  # noqa: PLC0415

    if model is None or not getattr(model, "follows_instructions", True):
        return {}
    return {"extract_fn": LLMExtractor(model), "extract_mode": "session_end"}


def _has_hooks(where: object) -> TypeGuard[SessionHooks]:
    return hasattr(where, "on_session_start") and hasattr(where, "on_session_end")


def resource_hooks(resources: Any, settings: Any, *, has_memory: bool) -> ResourceHooks | None:
    """Return the hooks of an agent's tree, or `None` if it has none.

    Raises:
        ConfigurationError: It is no tree, there are settings and no tree, or these are no settings.
    """
    if resources is None and settings is None:
        return None
    # Loaded only for agents with a tree.
    from locus_memory.agent.resources import ResourceHooks  # noqa: PLC0415

    return ResourceHooks(resources, settings, has_memory=has_memory)


def with_placement(
    messages: Sequence[Message], placement: Literal["system", "user"]
) -> Sequence[Message]:
    """Return what the model sees with its block of memories, if there is one, at its place."""
    if not any(is_memory_block(each) or split_block(each) for each in messages):
        return messages
    # Loaded only for agents with memory.
    from locus_memory.memory.inject import placed  # noqa: PLC0415

    return placed(messages, placement)


async def recalled(manager: SessionHooks, state: AgentState) -> AgentState:
    """Return the state with memories, or unchanged if the manager fails."""

    async def start() -> AgentState:
        found = await _awaited(manager.on_session_start(state))
        # Any class will do if it has the attributes of a state: otherwise the run fails later.
        metadata = {**state.metadata, **found.metadata}
        messages = _checked(found.messages)
        return state.model_copy(update={"messages": messages, "metadata": metadata})

    return await call_hook("on_session_start", start) or state


async def remember(manager: SessionHooks, state: AgentState) -> None:
    """Call the manager's end hook."""
    await call_hook("on_session_end", lambda: manager.on_session_end(state))


async def trimmed(
    manager: Trimmer | None, messages: Sequence[Message], state: AgentState, memory: object
) -> Sequence[Message]:
    """Return the messages that the model sees; all of them if the manager fails.

    Args:
        manager: The conversation manager; one with `for_run` is bound to the run first.
        messages: The messages before.
        state: The state of the run.
        memory: The memory manager of the agent.
    """
    if manager is None:
        return messages

    async def apply() -> tuple[Message, ...]:
        for_run: Any = getattr(manager, "for_run", None)
        bound = manager if for_run is None else for_run(state, memory)
        select = getattr(bound, "async_apply", None) or bound.apply
        return _checked(await _awaited(select(list(messages))))

    return await call_hook("apply", apply, event="agent.trim_failed") or messages


def _checked(returned: Any) -> tuple[Message, ...]:
    messages = tuple(returned)
    if not messages or not all(isinstance(each, Message) for each in messages):
        raise InvalidArgumentError("a manager returned no messages, or something else")
    return messages


async def _awaited(returned: Any) -> Any:
    return await returned if inspect.isawaitable(returned) else returned
