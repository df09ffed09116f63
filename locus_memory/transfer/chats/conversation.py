"""What readers yield: conversations, and the names of what they could not read; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from locus_memory.conversation.roles import REMEMBER
from locus_memory.errors import ValueNotSerializableError
from locus_memory.store.json_values import encode_json

__all__ = [
    "Asked",
    "Conversation",
    "Entry",
    "Reader",
    "Unread",
    "UnreadError",
    "checked",
    "each_one",
    "field_of",
    "is_off_record",
    "moment_in",
    "named",
    "said_at",
]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, ready to become a thread and memories.

    Attributes:
        thread_id: The id of its thread; empty if the file names none.
        messages: Its messages, in the format of a state. `said_at` in the metadata of one is its
            moment, ISO 8601.
        metadata: The metadata of the conversation, such as its `title`.
        source: The file.
        moment: The moment at which it began, ISO 8601; `None`: unknown.
        agent: The agent; `None`: unknown.
    """

    thread_id: str
    messages: list[dict[str, Any]]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    source: str = ""
    moment: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A conversation that could not be read.

    Attributes:
        why: The file, the place and the reason, in one sentence.
    """

    why: str


class UnreadError(ValueError):
    """An entry cannot be read; the message has its place and the reason."""


class Entry(NamedTuple):
    """One entry of a file.

    Attributes:
        value: The value; an exception if there is none.
        number: The number of the entry or of the line, from 1; 0 if it is the only one.
        is_line: Whether it is a line.
    """

    value: Any
    number: int = 0
    is_line: bool = False

    def place(self, unit: str) -> str:
        """Return the end of a place, such as `, line 3` or `, conversation 3`."""
        return f", {'line' if self.is_line else unit} {self.number}" if self.number else ""

    def read(self, where: str) -> Any:
        """Return the value.

        Raises:
            UnreadError: There is none.
        """
        if isinstance(self.value, Exception):
            raise UnreadError(f"{where}: {self.value}")
        return self.value


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reader is told.

    Attributes:
        source: The name of the file, for errors.
        name: The id of a conversation for which the file has none.
        me: The speaker who is the user; `None`: unknown.
    """

    source: str
    name: str
    me: str | None = None


Reader = Callable[[Iterable[Entry], Asked], Iterator[Conversation | Unread]]


def each_one(read: Callable[[Any, str], Conversation | None]) -> Reader:
    """Return the reader of entries of which each is a conversation.

    Args:
        read: Reads one, given its place; returns `None` if nothing is said in it.
    """

    def reader(entries: Iterable[Entry], asked: Asked) -> Iterator[Conversation | Unread]:
        for entry in entries:
            where = asked.source + entry.place("conversation")
            try:
                found = read(entry.read(where), where)
            except UnreadError as error:
                yield Unread(str(error))
                continue
            if found is not None:
                yield named(found, asked, entry.number)

    return reader


def named(found: Conversation, asked: Asked, number: int) -> Conversation:
    """Return a conversation with a name and its source; one without gets that of the file."""
    default = f"{asked.name}-{number}" if number else asked.name
    return replace(found, thread_id=found.thread_id or default, source=asked.source)


_KINDS: Final[Mapping[type[Any], str]] = {str: "a string", list: "a list", dict: "an object"}


def field_of(entry: Any, name: str, kind: type[Any], where: str, *, optional: bool = False) -> Any:
    """Return a field of an object.

    Raises:
        UnreadError: It is no object, or the field is missing or of another type.
    """
    if not isinstance(entry, dict):
        raise UnreadError(f"{where}: not an object")
    value = entry.get(name)
    if value is None and optional:
        return None
    if not isinstance(value, kind):
        what = "is missing" if name not in entry else f"is not {_KINDS[kind]}"
        raise UnreadError(f"{where}: {name!r} {what}")
    return value


def checked(document: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a document that can be stored.

    Raises:
        UnreadError: It cannot be stored.
    """
    try:
        # A state, and even more a delta, nests a message deeper than its file does.
        encode_json([[[[[[[[document]]]]]]]])
    except ValueNotSerializableError as error:
        reason = error.reason.partition(":")[0]
        told = "the JSON is nested too deeply" if "nested" in reason else f"it has {reason}"
        raise UnreadError(f"{where}: {told}") from None
    return document


_LATEST: Final = 1e11
"""The greatest number that is taken for seconds since 1970; a greater one is milliseconds."""


def moment_in(value: Any) -> str | None:
    """Return a moment as ISO 8601: of seconds or milliseconds since 1970, or of ISO 8601."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value > _LATEST else value
            return datetime.fromtimestamp(seconds, UTC).isoformat()
        read = datetime.fromisoformat(str(value))
        # At the ends of the calendar, a moment has no place in another time zone.
        read.astimezone(UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return read.isoformat()


_MOMENTS: Final = ("said_at", "created_at", "timestamp", "create_time")


def said_at(message: Mapping[str, Any]) -> str | None:
    """Return the moment of a message, if it says one."""
    known = {**_foreign_fields(message), **(message.get("metadata") or {})}
    return next(filter(None, (moment_in(known.get(name)) for name in _MOMENTS)), None)


def is_off_record(message: Mapping[str, Any]) -> bool:
    """Return whether a message is for its thread alone: neither searched nor remembered."""
    # LangChain has its own field for what others keep in the metadata.
    places = (message.get("metadata"), _foreign_fields(message).get("additional_kwargs"))
    return any(isinstance(each, dict) and each.get(REMEMBER) is False for each in places)


def _foreign_fields(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a message that only its own format has."""
    kept = (message.get("metadata") or {}).get("openai")
    fields = kept.get("fields") if isinstance(kept, dict) else None
    return fields if isinstance(fields, dict) else {}
