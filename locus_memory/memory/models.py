"""The values of the memory manager: memories, what may happen to them, and who decides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, Protocol, Self, runtime_checkable

from locus_memory._internal.notebook import table
from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.messages import Message

__all__ = [
    "LONGEST_CONTENT",
    "ORIGIN",
    "TOOL",
    "Extractor",
    "Memory",
    "MemoryChange",
    "MemoryType",
    "is_of_tool",
]

LONGEST_CONTENT: Final = 20_000
"""How many characters a memory may have that is saved; longer ones in a store are still read."""


ORIGIN: Final = "origin"
"""The key of a memory's metadata that says whose word it is, where it is not the user's."""

TOOL: Final = "tool"
"""The origin of what a tool said."""


class MemoryType(StrEnum):
    """What a memory is about."""

    USER = "user"
    """Who the user is: name, role, home, tastes."""
    FEEDBACK = "feedback"
    """How the agent is to behave: what to do, what to avoid, and why."""
    PROJECT = "project"
    """What is going on: goals, decisions, deadlines."""
    REFERENCE = "reference"
    """Where things are: trackers, dashboards, documents."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing worth remembering.

    What the manager knows of its origin is in `metadata`, where it is known: `thread_id`,
    `message_ids`, `extracted_at`, `extractor`, `importance` (0 to 1), `valid_from`, `origin`
    (`"tool"` for what a tool's output says rather than the user), and for one that was replaced
    `superseded_at` and `superseded_by`. Moments are ISO 8601 in UTC.

    Attributes:
        type: What it is about; the name of a `MemoryType` will do.
        key: Names the fact within its type: what is remembered under the same key later
            replaces it.
        content: The fact itself, a sentence for people and models.
        metadata: A JSON object.

    Raises:
        InvalidArgumentError: An unknown type, a key or content that is empty, or metadata that
            is no dict.
    """

    type: MemoryType
    key: str
    content: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("type", self.type.value),
            ("key", self.key),
            ("content", self.content),
            ("metadata", self.metadata),
        ]
        return table(rows)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", _memory_type(self.type))
        _check_text("key", self.key)
        _check_text("content", self.content)
        metadata: object = self.metadata
        if not isinstance(metadata, dict):
            kind = type(metadata).__name__
            raise InvalidArgumentError(f"a memory's metadata is a JSON object, not {kind}")

    def to_store_value(self) -> dict[str, Any]:
        """Return the memory as plain JSON."""
        return {
            "type": self.type.value,
            "key": self.key,
            "content": self.content,
            "metadata": self.metadata,
        }

    @classmethod
    def from_store_value(cls, value: Mapping[str, Any]) -> Self:
        """Return the memory that `to_store_value` wrote.

        Raises:
            InvalidArgumentError: The value is not a memory.
        """
        try:
            metadata = value.get("metadata") or {}
            return cls(value["type"], value["key"], value["content"], dict(metadata))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError("a stored value that is not a memory") from error


def is_of_tool(memory: Memory) -> bool:
    """Whether a memory says that a tool told it."""
    return memory.metadata.get(ORIGIN) == TOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """What an extractor wants done.

    Attributes:
        op: `add` and `update` both write the memory under its key; `delete` retires it.
        type: The memory's type.
        key: The memory's key.
        content: The new content; empty for a delete.
        importance: From 0 to 1: what is kept longest when there are too many.
        sources: Which of the messages say so, as places in the sequence that was given.
    """

    op: Literal["add", "update", "delete"]
    type: MemoryType
    key: str
    content: str = ""
    importance: float | None = None
    sources: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", _memory_type(self.type))
        _check_text("key", self.key)
        if self.op != "delete":
            _check_text("content", self.content)


@runtime_checkable
class Extractor(Protocol):
    """Decides what of a conversation is worth keeping.

    Attributes:
        name: Written into the metadata of what it extracts.
    """

    name: str

    async def extract(
        self, messages: Sequence[Message], memories: Sequence[Memory]
    ) -> Sequence[MemoryChange | Memory]:
        """Return what to remember, to correct and to retire; a `Memory` is written as it is.

        Args:
            messages: What was said since the last extraction, oldest first.
            memories: What is remembered already and may be changed.
        """
        ...


def _memory_type(value: object) -> MemoryType:
    try:
        return MemoryType(value)  # type: ignore[arg-type] # whatever it is, it is checked
    except ValueError:
        known = ", ".join(MemoryType)
        raise InvalidArgumentError(
            f"a memory's type is one of {known}, not {quote(value)}"
        ) from None


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgumentError(f"a memory's {name} is a text that is not empty")
