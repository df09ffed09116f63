"""Conversation managers by name: from a string to a manager.

| string | meaning |
|---|---|
| `null` | a `NullManager` |
| `sliding_window`, `sliding_window:20` | a `SlidingWindowManager` of so many messages |
| `summarizing`, `summarizing:openai:gpt-4.1-mini` | a `SummarizingManager` with this model |
| `notes`, `notes:30000` | a `NotesManager` with a threshold of so many tokens |

`register_conversation_manager` adds others. So does an installed distribution with an entry point
of the group `locus_memory.conversation_managers` whose name is that of the manager and whose value
is a factory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from locus_memory._internal.providers.models import ModelRow, ModelTable
from locus_memory.conversation.base import ConversationManager
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.presets import is_preset, read_preset

__all__ = [
    "as_conversation_manager",
    "get_conversation_manager",
    "list_conversation_managers",
    "register_conversation_manager",
]

ENTRY_POINTS: Final = "locus_memory.conversation_managers"
"""The entry point group of third-party conversation managers."""

_HERE: Final = "locus_memory.conversation"

_TABLE: Final = ModelTable[ConversationManager](
    "conversation manager",
    ConversationManager,
    {
        "null": ModelRow(f"{_HERE}.base:NullManager"),
        "sliding_window": ModelRow(
            f"{_HERE}.window:SlidingWindowManager", "window_size", is_number=True
        ),
        "summarizing": ModelRow(f"{_HERE}.summary.manager:SummarizingManager", "summarize_fn"),
        "notes": ModelRow(f"{_HERE}.notes:NotesManager", "threshold_tokens", is_number=True),
    },
    group=ENTRY_POINTS,
)


def get_conversation_manager(where: str, **options: Any) -> ConversationManager:
    """Return a new conversation manager, which the caller closes.

    Args:
        where: Its name and, after a colon, its main argument: `"null"`, `"sliding_window:20"`,
            `"summarizing:openai:gpt-4.1-mini"` with any string of `get_model`, `"notes:30000"`;
            or the name of a preset. Without a model, `"summarizing"` calls none, as its class.
            `"notes"` has the memory manager of the agent, unless `memory` is given.
        **options: Keyword arguments of its class, such as `keep_tokens`.

    Raises:
        UnknownProviderError: The name, or that of the model, is not registered; the message lists
            the known ones.
        UnknownOptionError: Its class has no such option.
        MissingDriverError: A package that the model needs is not installed.
        ConfigurationError: An invalid string, or arguments that its class refuses.
    """
    if is_preset(where):
        preset = read_preset(where)
        where, options = preset.where, {**preset.filled_options, **options}
    try:
        return _TABLE.make(where, options)
    except InvalidArgumentError as error:
        raise ConfigurationError(f"{where.partition(':')[0]}: {error}") from error


def as_conversation_manager(where: object) -> tuple[Any, bool]:
    """Return a conversation manager, and whether the caller owns it and has to close it.

    Args:
        where: An object with `async_apply` or `apply`; a string for `get_conversation_manager`; or
            `None`, which is returned.

    Raises:
        ConfigurationError: It is none of these, or as for `get_conversation_manager`.
    """
    if isinstance(where, str):
        return get_conversation_manager(where), True
    can_apply = hasattr(where, "apply") or hasattr(where, "async_apply")
    if where is not None and (isinstance(where, type) or not can_apply):
        raise ConfigurationError(
            "a conversation manager has apply or async_apply, or it is a string such as"
            f" 'sliding_window:20', not {type(where).__name__}"
        )
    return where, False


def list_conversation_managers() -> list[str]:
    """Return the names that `get_conversation_manager` accepts, in alphabetical order."""
    return _TABLE.names()


def register_conversation_manager(
    name: str, factory: Callable[..., ConversationManager]
) -> Callable[[], None]:
    """Register your own conversation manager as `name`; it takes precedence over a built-in one.

    Args:
        name: The name, as strings spell it before the colon.
        factory: A class or a function, called with the part after the colon, or `None`, and the
            caller's options, as for `register_store`.

    Returns:
        A function that unregisters it.

    Raises:
        ConfigurationError: The name is not valid in such a string.
    """
    return _TABLE.register(name, factory)
