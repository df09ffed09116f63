"""The messages of a conversation: frozen pydantic models in the field's usual shape.

Everything here is immutable: change a message with `model_copy(update=...)`. Only the mappings
inside (`arguments`, `metadata`) can be changed in place; the next save includes the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self
from uuid import uuid4

import orjson
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.sameness import own_copy, same
from locus_memory.errors import InvalidMessageError

__all__ = ["Message", "Role", "ToolCall", "ToolResult"]

_VERBATIM: Any = {"metadata": True, "tool_calls": {"__all__": {"arguments"}}}


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(BaseModel):
    """A model's request to call a tool.

    Attributes:
        id: Links the call to its result; unique within a conversation.
        name: The tool's name.
        arguments: The tool's arguments, a JSON object.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(default_factory=lambda: f"call_{uuid4().hex[:12]}")
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)

    def to_openai_format(self) -> dict[str, Any]:
        """Return the call in the format of the OpenAI chat API."""
        arguments = orjson.dumps(self.arguments).decode()
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": arguments},
        }


class ToolResult(BaseModel):
    """The result of a tool call.

    Attributes:
        tool_call_id: The call this answers.
        name: The tool's name.
        content: The text that the model sees.
        error: Why the tool failed, or `None`.
        duration_ms: The duration of the call, in milliseconds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool_call_id: str
    name: str
    content: str = ""
    error: str | None = None
    duration_ms: float | None = None

    @property
    def success(self) -> bool:
        """Whether the tool succeeded."""
        return self.error is None


class Message(BaseModel):
    """One message of a conversation.

    Attributes:
        role: The author.
        content: The text, or `None` for an assistant message that only calls tools.
        tool_calls: The calls that an assistant message requests.
        tool_call_id: For a tool message, the id of the call that it answers.
        name: For a tool message, the tool's name; otherwise the author's, if there are several.
        id: An id of the message itself, if the caller sets one.
        metadata: The caller's own annotations; never sent to a model.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    id: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @override
    def __repr__(self) -> str:
        """Return the fields that are set, long ones shortened."""
        fields = ((name, value) for name, value in self if value not in (None, (), {}))
        shown = ", ".join(f"{name}={quote(value)}" for name, value in fields)
        return f"{type(self).__name__}({shown})"

    __str__ = __repr__

    @classmethod
    def system(cls, content: str) -> Message:
        """Return a system message.

        Raises:
            InvalidMessageError: The content is not text. The other roles raise the same.
        """
        return cls(role=Role.SYSTEM, content=_checked_text(content, "system"))

    @classmethod
    def user(cls, content: str) -> Message:
        """Return a user message."""
        return cls(role=Role.USER, content=_checked_text(content, "user"))

    @classmethod
    def assistant(
        cls, content: str | None = None, tool_calls: tuple[ToolCall, ...] | list[ToolCall] = ()
    ) -> Message:
        """Return an assistant message, with or without tool calls."""
        said = None if content is None else _checked_text(content, "assistant")
        return cls(role=Role.ASSISTANT, content=said, tool_calls=_checked_calls(tool_calls))

    @classmethod
    def tool(cls, result: ToolResult) -> Message:
        """Return the message that carries a tool's result; an error becomes its text."""
        given: object = result
        if not isinstance(given, ToolResult):
            raise InvalidMessageError(
                f"a tool's message needs a ToolResult, not {type(given).__name__}:"
                " Message.tool(ToolResult(tool_call_id=..., name=..., content=...))"
            )
        content = result.content
        if result.error is not None and not content:
            content = f"Error: {result.error}"
        return cls(
            role=Role.TOOL, content=content, tool_call_id=result.tool_call_id, name=result.name
        )

    def to_checkpoint(self) -> dict[str, Any]:
        """Return the message as plain JSON, without default values; the caller may change it."""
        copied: dict[str, Any] = own_copy(written_of(self).document)
        return copied

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with `update` applied, without the cached serialised form."""
        copied = super().model_copy(update=update, deep=deep)
        vars(copied).pop("_written", None)
        return copied

    @classmethod
    def from_checkpoint(cls, document: dict[str, Any]) -> Self:
        """Return the message that `to_checkpoint` wrote.

        Raises:
            pydantic.ValidationError: The document is not a message.
        """
        return cls.model_validate(document)

    def to_openai_format(self) -> dict[str, Any]:
        """Return the message in the format of the OpenAI chat API."""
        wire: dict[str, Any] = {"role": self.role.value}
        if self.content is not None:
            wire["content"] = self.content
        if self.tool_calls:
            wire["tool_calls"] = [call.to_openai_format() for call in self.tool_calls]
        if self.tool_call_id is not None:
            wire["tool_call_id"] = self.tool_call_id
        if self.name is not None:
            wire["name"] = self.name
        return wire


def _checked_text(content: object, role: str) -> str:
    if not isinstance(content, str):
        raise InvalidMessageError(
            f"the content of a message is a text, not {type(content).__name__}:"
            f' Message.{role}("...")'
        )
    return content


def _checked_calls(calls: Any) -> tuple[Any, ...]:
    if not isinstance(calls, list | tuple):
        raise InvalidMessageError(
            f"tool_calls is a list of ToolCall, not {type(calls).__name__}:"
            ' [ToolCall(name="...", arguments={...})]'
        )
    return tuple(calls)


@dataclass(frozen=True, slots=True)
class Written:
    """The JSON of one message.

    Attributes:
        document: The JSON; it never changes.
        mappings: The mappings of the message that can change.
        copies: Their content when the JSON was made.
    """

    document: dict[str, Any]
    mappings: tuple[dict[str, Any], ...]
    copies: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, document: dict[str, Any], message: Message) -> Self:
        """Return the JSON of a message, given all of it but its mappings."""
        mappings = (message.metadata, *(call.arguments for call in message.tool_calls))
        copies = tuple(map(_copy, mappings))
        if copies[0]:
            document["metadata"] = copies[0]
        for written, arguments in zip(document.get("tool_calls", ()), copies[1:], strict=False):
            if arguments:
                written["arguments"] = arguments
        return cls(document, mappings, copies)

    def is_true(self) -> bool:
        """Whether the message is unchanged since then."""
        return all(map(_still, self.copies, self.mappings))


def _copy(mapping: dict[str, Any]) -> dict[str, Any]:
    try:
        copied: dict[str, Any] = own_copy(mapping)
    except RecursionError:
        # JSON cannot be this deep: saving the message raises the error.
        return mapping
    return copied


def _still(copy: dict[str, Any], mapping: dict[str, Any]) -> bool:
    return same(copy, mapping) if copy else not mapping


def is_closed(message: Message) -> bool:
    """Whether only the mappings of a message can change."""
    return type(message) is Message and all(type(call) is ToolCall for call in message.tool_calls)


def written_of(message: Message) -> Written:
    """Return the JSON of a message, which is shared and must not be changed.

    It is computed once, and again after a mapping of the message was changed in place.
    """
    written: Written | None = vars(message).get("_written")
    if written is None or not (is_closed(message) and written.is_true()):
        document = message.model_dump(mode="json", exclude_defaults=True, exclude=_VERBATIM)
        # pydantic would rewrite what JSON cannot hold in these; a save must refuse it instead.
        written = vars(message)["_written"] = Written.of(document, message)
    return written
