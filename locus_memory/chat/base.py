"""The protocols of a chat model: an async callable from messages to a message.

Three optional attributes describe a model further. A model with `stream` is a `StreamingModel`. A
model with `follows_instructions = False` ignores instructions, so it is never called to extract
memories. A model whose `context_window` is a number of tokens is shown memories of at most an
eighth of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from locus_memory.messages import Message

__all__ = [
    "CONTEXT_WINDOW",
    "INVALID_ARGUMENTS",
    "ChatModel",
    "StreamingModel",
    "ToolModel",
    "ToolSpec",
    "window_of",
]

CONTEXT_WINDOW: Final[ContextVar[int | None]] = ContextVar("locus_memory_window", default=None)
"""The tokens of the window of the model for which memories are read; `None`: it states none."""

INVALID_ARGUMENTS: Final = "invalid_arguments"
"""The key of an assistant message's metadata that maps the id of a tool call to the reason why
its arguments could not be read. The arguments are then `{}`. Such a call gets a result and is
never run."""


def window_of(model: object) -> int | None:
    """Return the tokens of a model's window, its `context_window`; `None`: it states none."""
    stated = getattr(model, "context_window", None)
    return stated if type(stated) is int and stated > 0 else None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The description of a tool for a model.

    Attributes:
        name: The tool's name.
        description: The purpose of the tool, in one sentence or a few.
        parameters: The JSON Schema of its arguments, an object.
    """

    name: str
    description: str
    parameters: dict[str, Any]

    def to_openai_format(self) -> dict[str, Any]:
        """Return the tool in the format of the OpenAI chat API."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


class ChatModel(Protocol):
    """A model without tools: any async function from messages to a message."""

    def __call__(self, messages: Sequence[Message], /) -> Awaitable[Message]:
        """Return the assistant message that answers the conversation, oldest first."""
        ...


class ToolModel(Protocol):
    """A model that may call tools: it accepts them as a keyword."""

    def __call__(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec]
    ) -> Awaitable[Message]:
        """Return the assistant message, which may request calls of the `tools`."""
        ...


@runtime_checkable
class StreamingModel(Protocol):
    """A model that can also answer piece by piece."""

    def stream(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[str | Message]:
        """Yield the pieces of the text as they arrive, then the whole message."""
        ...
