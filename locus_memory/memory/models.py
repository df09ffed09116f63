"""The values of the memory manager: memories, their changes, and the contract of extractors."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final, Literal, Protocol, Self, TypeVar, overload, runtime_checkable

from locus_memory._internal.notebook import table
from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.ledger.likeness import made_up_key
from locus_memory.memory.moments import read_moment
from locus_memory.messages import Message

__all__ = [
    "EXPIRES_AT",
    "FIXED",
    "LONGEST_CONTENT",
    "ORIGIN",
    "QUOTED",
    "ExtractFn",
    "Extractor",
    "Memory",
    "MemoryChange",
    "MemorySearchResult",
    "MemoryType",
    "Origin",
    "OriginName",
    "as_origin",
    "as_origins",
    "as_type",
    "check_origin",
    "has_authority",
    "is_expired",
    "is_fixed",
    "origin_of",
    "own_words",
    "refusal",
    "teller",
]

_Enum = TypeVar("_Enum", bound=StrEnum)

LONGEST_CONTENT: Final = 20_000
"""The highest number of characters of a saved memory; longer stored memories are still read."""


ORIGIN: Final = "origin"
"""The key in a memory's metadata for its `Origin`; a memory without one is the user's."""


EXPIRES_AT: Final = "expires_at"
"""The key in a memory's metadata for the moment from which it is no longer recalled, ISO 8601."""


FIXED: Final = "fixed"
"""The key in the metadata of a memory that a person fixed; its value is true. Such a memory is
always shown and never expires, and only a person changes it."""


QUOTED: Final = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^[ ]{0,3}>[^\n]*"
    r"|^<(?P<tag>[a-z_]{1,30})\b[^>\n]{0,200}>.*?(?:</(?P=tag)>|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""A text that somebody quotes: between fences, or tags that begin a line, or after a `>`."""


class MemoryType(StrEnum):
    """The subject of a memory."""

    USER = "user"
    """The user: name, role, home, tastes."""
    FEEDBACK = "feedback"
    """How the agent should behave: what to do, what to avoid, and why."""
    PROJECT = "project"
    """Current work: goals, decisions, deadlines."""
    REFERENCE = "reference"
    """Where to find resources: trackers, dashboards, documents."""


class Origin(StrEnum):
    """Who told a memory."""

    USER = "user"
    """The user, in a conversation."""
    ASSISTANT = "assistant"
    """A model, also one that calls a memory tool."""
    TOOL = "tool"
    """A tool's output, such as a web page."""
    DOCUMENT = "document"
    """A document, or a text that the user quotes."""
    IMPORT = "import"
    """A file of memories, or another system."""
    PERSON = "person"
    """Whoever writes memories: with the program, on the command line or on the pages."""


OriginName = Literal["user", "assistant", "tool", "document", "import", "person"]
"""The name of an origin, for the schema of a tool."""

_WITH_AUTHORITY: Final = frozenset((Origin.USER, Origin.ASSISTANT, Origin.PERSON))

_TELLERS: Final = {
    Origin.USER: "",
    Origin.ASSISTANT: "told by the assistant",
    Origin.TOOL: "told by a tool",
    Origin.DOCUMENT: "told by a document",
    Origin.IMPORT: "imported",
    Origin.PERSON: "written by hand",
}


@dataclass(frozen=True, slots=True, init=False)
class Memory:
    """One fact worth remembering.

    A sentence is enough: `Memory("I like tea")`. So the only argument without a name is the
    content, unless it is the name of a type.

    `metadata` holds what the manager knows about the memory's source: `thread_id`,
    `message_ids`, `extracted_at`, `extractor`, `importance` (0 to 1), `valid_from`, `origin` (an
    `Origin`, if it is not the user), and for a superseded memory `superseded_at` and
    `superseded_by`. A memory with `expires_at` is not recalled from that moment on; one that is
    `fixed` is always shown. Moments are ISO 8601 in UTC. When it is true stand there as well, if
    that is stated: `valid_from` and `valid_to`, which are also arguments, each a day such as
    `2026-05-12` or a moment. If not, `valid_from` is the moment of its statement.

    Attributes:
        type: The subject of the memory: a `MemoryType` or its name; by default the user.
        key: The name of the fact within its type; a later memory with the same key replaces
            this one. By default it is made of the content, see `made_up_key`, so that the same
            sentence is the same memory.
        content: The fact itself, a sentence for people and models.
        metadata: A JSON object.

    Raises:
        InvalidArgumentError: The type is unknown, the key or the content is empty, or the
            metadata is not a dict.
    """

    type: MemoryType
    key: str
    content: str
    metadata: dict[str, Any]

    @overload
    def __init__(
        self,
        content: str,
        /,
        *,
        metadata: dict[str, Any] | None = None,
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        type: MemoryType | str = ...,
        key: str = ...,
        content: str = ...,
        metadata: dict[str, Any] | None = None,
        *,
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
    ) -> None: ...
    def __init__(
        self,
        type: Any = MemoryType.USER,  # noqa: A002 - the name of the attribute
        key: Any = ...,
        content: Any = ...,
        metadata: dict[str, Any] | None = None,
        *,
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
    ) -> None:
        if key is content is ... and type not in tuple(MemoryType):
            type, content = MemoryType.USER, type  # noqa: A001 - as above
        said = _check_text("content", "" if content is ... else content)
        held: object = {} if metadata is None else metadata
        if not isinstance(held, dict):
            kind = held.__class__.__name__
            raise InvalidArgumentError(f"a memory's metadata is a JSON object, not {kind}")
        for fact, told in (("valid_from", valid_from), ("valid_to", valid_to)):
            if told is not None:
                held = {**held, fact: told.isoformat() if isinstance(told, date) else told}
        name = made_up_key(said) if key is ... else _check_text("key", key)
        object.__setattr__(self, "type", as_type(type))
        object.__setattr__(self, "key", name)
        object.__setattr__(self, "content", said)
        object.__setattr__(self, "metadata", held)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("type", self.type.value),
            ("key", self.key),
            ("content", self.content),
            ("metadata", self.metadata),
        ]
        return table(rows)

    @property
    def id(self) -> str:
        """The id: 8 hexadecimal digits that stand for the type and the key.

        All versions of a memory have the same id.
        """
        return blake2b(
            f"{self.type.value}:{self.key}".encode("utf-8", "replace"), digest_size=4
        ).hexdigest()

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
        """Return the memory of a value that `to_store_value` returned.

        Raises:
            InvalidArgumentError: The value is not a memory.
        """
        try:
            metadata = value.get("metadata") or {}
            return cls(value["type"], value["key"], value["content"], dict(metadata))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError("a stored value that is not a memory") from error


def origin_of(told: Memory | str) -> Origin:
    """Return the origin of a memory, or of a name; the user, if none that is known is named."""
    stated = told.metadata.get(ORIGIN) if isinstance(told, Memory) else told
    return next((each for each in Origin if each == stated), Origin.USER)


def has_authority(told: Memory | str) -> bool:
    """Return whether a memory, or an origin, may be a rule, and stand in a system prompt.

    What a tool, a document or an import told may not.
    """
    return origin_of(told) in _WITH_AUTHORITY


def is_fixed(memory: Memory) -> bool:
    """Return whether a person fixed a memory; see `FIXED`."""
    return memory.metadata.get(FIXED) is True and origin_of(memory) is Origin.PERSON


def refusal(current: Memory | None, kind: MemoryType, origin: Origin) -> str | None:
    """Return why a memory of some origin may not be written, or retire another one.

    Args:
        current: The current memory of its key, if there is one.
        kind: The type of the memory.
        origin: Who tells it, or who wants the current one retired.
    """
    has_none = origin not in _WITH_AUTHORITY
    if has_none and kind is MemoryType.FEEDBACK:
        return f"what has the origin {origin} is never a rule, and never fixed"
    if has_none and current is not None and has_authority(current):
        return f"what has the origin {origin} changes nothing that the user or a person said"
    if origin is not Origin.PERSON and current is not None and is_fixed(current):
        return f"what has the origin {origin} changes nothing that a person fixed"
    return None


def teller(told: Memory | str) -> str:
    """Return a few words for who told a memory, or for an origin; empty if it is the user."""
    return _TELLERS[origin_of(told)]


def own_words(text: str) -> str:
    """Return a text without what it quotes, which is a document's."""
    return QUOTED.sub(" ", text)


def check_origin(memory: Memory) -> Memory:
    """Return a memory whose metadata name an `Origin`; that of a person, if they name none.

    Raises:
        InvalidArgumentError: They name something else.
    """
    origin = as_origin(memory.metadata.get(ORIGIN, Origin.PERSON))
    return replace(memory, metadata={**memory.metadata, ORIGIN: origin.value})


@dataclass(frozen=True, slots=True)
class MemorySearchResult:
    """A fact that a search of a memory manager or provider found.

    Attributes:
        id: Names the fact for the provider that returned it.
        content: The fact itself, as stored: neutralise it before a model sees it.
        score: How well it matches, higher is better; `None`: the provider does not say.
        source: The origin of the fact, such as `turn`, `manual` or the name of an extractor.
        created_at: When the fact became known, ISO 8601; `None`: unknown.
        origin: Who told it; `None`: unknown.
        valid_from: Since when it is true, a day or a moment, ISO 8601; `None`: it does not say.
        valid_to: Until when, likewise; a day to its end.
    """

    id: str
    content: str
    score: float | None = None
    source: str = ""
    created_at: str | None = None
    origin: Origin | None = None
    valid_from: str | None = None
    valid_to: str | None = None


def is_expired(memory: Memory, now: str) -> bool:
    """Return whether a memory has a moment of expiry, and `now` is not before it.

    Args:
        memory: The memory. One that a person fixed never expires, and neither does a value that is
            not a moment.
        now: A moment, ISO 8601 in UTC.
    """
    until, present = read_moment(memory.metadata.get(EXPIRES_AT)), read_moment(now)
    is_over = until is not None and present is not None and until <= present
    return is_over and not is_fixed(memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """A change of the memories that an extractor requests.

    Attributes:
        op: `add` and `update` both write the memory under its key; `delete` retires it.
        type: The memory's type.
        key: The memory's key.
        content: The new content; empty for a delete.
        importance: From 0 to 1; the least important memories stand last.
        sources: The positions of the source messages in the given sequence.
        valid_from: Since when it is true, a day or a moment, ISO 8601; empty: it does not say.
        valid_to: Until when, likewise; a day to its end.
    """

    op: Literal["add", "update", "delete"]
    type: MemoryType
    key: str
    content: str = ""
    importance: float | None = None
    sources: tuple[int, ...] = ()
    valid_from: str = ""
    valid_to: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", as_type(self.type))
        _check_text("key", self.key)
        if self.op != "delete":
            _check_text("content", self.content)


@runtime_checkable
class Extractor(Protocol):
    """A component that decides which memories a conversation adds, changes or retires.

    It may also have `distill`, an async function of the same arguments that returns the
    `Distillate` of a session; without it, `extract` gives the changes.

    Attributes:
        name: The name that is written into the metadata of the extracted memories.
    """

    name: str

    async def extract(
        self, messages: Sequence[Message], memories: Sequence[Memory]
    ) -> Sequence[MemoryChange | Memory]:
        """Return the memories to add, update and retire; a plain `Memory` is written as it is.

        Args:
            messages: The messages since the last extraction, oldest first.
            memories: The existing memories that may be changed.
        """
        ...


class ExtractFn(Protocol):
    """A function that returns the memories of messages, see `FunctionExtractor`."""

    def __call__(self, messages: list[Message], /) -> Awaitable[Sequence[Memory]]:
        """Return the memories worth keeping."""
        ...


def as_type(value: object) -> MemoryType:
    """Return a type, also from its name.

    Raises:
        InvalidArgumentError: It is none.
    """
    if type(value) is MemoryType:
        return value
    return _member(MemoryType, value, "a memory's type")


def as_origin(value: object) -> Origin:
    """Return an origin, also from its name.

    Raises:
        InvalidArgumentError: It is none.
    """
    return _member(Origin, value, "a memory's origin")


def as_origins(values: Iterable[Origin | str] | None) -> frozenset[Origin] | None:
    """Return origins, also from their names; `None`: any.

    Raises:
        InvalidArgumentError: One of them is none.
    """
    return None if values is None else frozenset(map(as_origin, values))


def _member(kind: type[_Enum], value: Any, what: str) -> _Enum:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise InvalidArgumentError(f"{what} is one of {known}, not {quote(value)}") from None


def _check_text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgumentError(f"a memory's {name} is a non-empty text")
    return value
