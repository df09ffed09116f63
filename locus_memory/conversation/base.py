"""The base class of conversation managers, and the manager that trims nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from typing_extensions import override

from locus_memory._internal.resource import Resource
from locus_memory.conversation.groups import Group, split_groups
from locus_memory.conversation.validation import mend
from locus_memory.errors import InvalidMessageError
from locus_memory.events import emit

__all__ = ["ConversationManager", "NullManager", "sound_groups"]


class ConversationManager(Resource, ABC):
    """Selects the part of a conversation that the model sees; the conversation stays whole.

    Messages may be of any class that has the attributes of `locus_memory.Message`. The result is
    always a conversation that a provider accepts (see `repair`).
    """

    @abstractmethod
    def apply(self, messages: Sequence[Any]) -> list[Any]:
        """Return the messages to send to the model, oldest first.

        Args:
            messages: The conversation, oldest first; it is not changed.

        Raises:
            InvalidMessageError: It is a state or something else, and no list of messages.
        """

    async def async_apply(self, messages: Sequence[Any]) -> list[Any]:
        """Return the result of `apply`, without blocking the event loop."""
        return self.apply(messages)

    @override
    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return f"{type(self).__name__}({settings})"

    def _settings(self) -> dict[str, Any]:
        """Return the settings that the repr shows."""
        return {}


class NullManager(ConversationManager):
    """Sends all messages, repaired where a provider would refuse them."""

    @override
    def apply(self, messages: Sequence[Any]) -> list[Any]:
        return [message for group in sound_groups(messages) for message in group.messages]


def sound_groups(messages: Sequence[Any]) -> list[Group]:
    """Return the groups of the repaired conversation, and report its faults.

    Raises:
        InvalidMessageError: It is no list of messages.
    """
    given = _listed(messages)
    groups, is_sound = split_groups(given)
    if is_sound:
        return groups
    repaired, faults = mend(given)
    kinds = ", ".join(sorted({fault.kind for fault in faults}))
    emit("conversation.repaired", faults=len(faults), kinds=kinds)
    return split_groups(repaired)[0]


def _listed(messages: object) -> list[Any]:
    is_state = isinstance(messages, Mapping) or hasattr(messages, "messages")
    if is_state or not isinstance(messages, Iterable):
        raise InvalidMessageError(
            "a conversation manager takes a list of messages, such as state.messages, not"
            f" {type(messages).__name__}"
        )
    given = list[Any](messages)
    for place, each in enumerate(given):
        if not hasattr(each, "role"):
            raise InvalidMessageError(
                f"message {place} has no role and content as attributes: it is a"
                f" {type(each).__name__}"
            )
    return given
