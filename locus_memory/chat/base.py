"""What a chat model is: an async callable from messages to a message.

A model may say more of itself by two attributes, both optional. With `stream` it is a
`StreamingModel`. With `follows_instructions = False` it says that it only plays a part, and
that nobody should ask it to extract memories.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from locus_memory.messages import Message

__all__ = ["INVALID_ARGUMENTS", "ChatModel", "StreamingModel", "ToolModel", "ToolSpec"]

INVALID_ARGUMENTS: Final = "invalid_arguments"
"""The key of an assistant message's metadata that maps the id of a tool call to why its
arguments, which then are `{}`, could not be read. Such a call is answered, never run."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool.

    Attributes:
        name: The tool's name.
        description: What it does, in a sentence or a few.
        parameters: The JSON Schema of its arguments, an object.
    """

    name: str
    description: str
    parameters: dict[str, Any]

    def to_openai_format(self) -> dict[str, Any]:
        """Return the tool as the OpenAI chat API writes it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


class ChatModel(Protocol):
    """A model that only talks: any async function from messages to a message."""

    def __call__(self, messages: Sequence[Message], /) -> Awaitable[Message]:
        """Return the assistant message that answers the conversation, oldest first."""
        ...


class ToolModel(Protocol):
    """A model that may call tools: it takes them as a keyword."""

    def __call__(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec]
    ) -> Awaitable[Message]:
        """Return the assistant message, which may ask for calls of the `tools`."""
        ...


@runtime_checkable
class StreamingModel(Protocol):
    """A model that can also answer piece by piece."""

    def stream(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[str | Message]:
        """Yield the pieces of the text as they come, and last the whole message."""
        ...
