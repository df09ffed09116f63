"""Chat transcripts: reading files into conversations, and writing conversations to files.

Two formats are supported. OpenAI messages: a JSON list of messages, an object with `messages`,
a list of such objects, or JSON Lines of either. Sessions: an object, or a list of objects, with
`speakers` and `sessions`, each with a `date_time` and `turns` of `speaker` and `text`.

A message of a state has `role` and `content`, and optionally `name`, `id`, `tool_calls`,
`tool_call_id` and `metadata`, as `locus_memory.messages.Message` reads them. Other fields of the
OpenAI format are kept in the metadata under `openai`, so that an exported message equals the
imported one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import Any, Final

import orjson

from locus_memory.cli.conversations.openai_format import read_message, write_message
from locus_memory.cli.options.exact_json import InexactNumberError, parse_json
from locus_memory.cli.printing.outcome import CommandError
from locus_memory.errors import ValueNotSerializableError
from locus_memory.store.json_values import encode_json

__all__ = ["Conversation", "Format", "read_conversations", "write_messages"]


class Format(StrEnum):
    """The format of a file."""

    AUTO = "auto"
    OPENAI = "openai"
    SESSIONS = "sessions"
    FACTS = "facts"
    ARCHIVE = "archive"
    LANGGRAPH = "langgraph"
    LANGGRAPH_STORE = "langgraph-store"
    OPENAI_AGENTS = "openai-agents"
    ADK = "adk"
    MEM0 = "mem0"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, ready to become a thread.

    Attributes:
        thread_id: The id of its thread.
        messages: Its messages, in the format of a state.
        metadata: The metadata of the conversation.
        source: The file.
    """

    thread_id: str
    messages: list[dict[str, Any]]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    source: str = ""


def read_conversations(
    content: bytes, source: str, *, thread_id: str | None = None, kind: Format = Format.AUTO
) -> list[Conversation]:
    """Return the conversations of one file.

    Args:
        content: The bytes of the file.
        source: The file's name, for error messages and as the default of the thread's id.
        thread_id: The thread's id, for a file with one conversation.
        kind: The format of the file.

    Raises:
        CommandError: The file is not valid; the error names the file and the entry.
    """
    entries = _split(_parse(content, source))
    if thread_id is not None and len(entries) != 1:
        raise CommandError(
            f"{source}: --thread needs one conversation, the file has {len(entries)}"
        )
    found = []
    for place, (where, entry) in enumerate(entries, 1):
        read = _reader(entry, kind, f"{source}{where}")
        messages, metadata = read(entry, f"{source}{where}")
        name = thread_id or _name(entry, source, place if len(entries) > 1 else None)
        if not messages:
            raise CommandError(f"{source}{where}: the conversation has no messages")
        found.append(Conversation(name, messages, metadata, source))
    return found


def write_messages(messages: list[Any], *, bare: bool = False) -> list[dict[str, Any]]:
    """Return a state's messages in the OpenAI format.

    Args:
        messages: The messages of a state.
        bare: Whether to leave out `id` and `metadata`, which the OpenAI API does not accept.

    Raises:
        CommandError: An entry is not a message.
    """
    for place, message in enumerate(messages, 1):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise CommandError(f"message {place} is not a message: it has no role")
    return [write_message(message, bare=bare) for message in messages]


def _parse(content: bytes, source: str) -> Any:
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise CommandError(f"{source}, line {line}: not UTF-8") from None
    if not content.strip():
        raise CommandError(f"{source}: the file is empty")
    try:
        return parse_json(content)
    except InexactNumberError as error:
        raise CommandError(f"{source}: {error}") from None
    except orjson.JSONDecodeError as error:
        lines = [line.strip() for line in content.splitlines()]
        filled = [(number, line) for number, line in enumerate(lines, 1) if line]
        if len(filled) == 1 or not _is_object(filled[0][1]):
            raise CommandError(f"{source}: not JSON: {error}") from None
    return _Lines([(number, _parse_line(line, source, number)) for number, line in filled])


class _Lines(list[tuple[int, Any]]):
    """The documents of a JSON Lines file, each with its line number."""


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict | list)
    except orjson.JSONDecodeError:
        return False


def _parse_line(line: bytes, source: str, number: int) -> Any:
    try:
        return parse_json(line)
    except orjson.JSONDecodeError as error:
        raise CommandError(f"{source}, line {number}: not JSON: {error}") from None


def _split(document: Any) -> list[tuple[str, Any]]:
    """Return the conversations of a document, each with its position as text."""
    if isinstance(document, _Lines):
        if _is_message(document[0][1]):
            return [("", document)]
        return [(f", line {number}", entry) for number, entry in document]
    if isinstance(document, list) and document and not _is_message(document[0]):
        return [(f", conversation {place}", entry) for place, entry in enumerate(document, 1)]
    return [("", document)]


def _is_message(entry: Any) -> bool:
    return isinstance(entry, dict) and "role" in entry


Reader = Callable[[Any, str], tuple[list[dict[str, Any]], dict[str, Any]]]


def _reader(entry: Any, kind: Format, where: str) -> Reader:
    is_sessions = isinstance(entry, dict) and "sessions" in entry
    if kind is Format.SESSIONS or (kind is Format.AUTO and is_sessions):
        return _read_sessions
    if isinstance(entry, list) or (isinstance(entry, dict) and {"role", "messages"} & entry.keys()):
        return _read_openai
    raise CommandError(
        f"{where}: neither messages (an object with 'messages', or objects with 'role') nor "
        "sessions (an object with 'speakers' and 'sessions')"
    )


def _name(entry: Any, source: str, place: int | None) -> str:
    if isinstance(entry, dict) and not _is_message(entry):
        for key in ("thread_id", "id"):
            if isinstance(entry.get(key), str) and entry[key]:
                return str(entry[key])
    stem = PurePath(source).stem
    return stem if place is None else f"{stem}-{place}"


def _read_openai(entry: Any, where: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    metadata: dict[str, Any] = {}
    if isinstance(entry, dict) and "messages" in entry:
        metadata = _field(entry, "metadata", dict, where, optional=True) or {}
        entry = _field(entry, "messages", list, where)
    elif isinstance(entry, dict):
        entry = [entry]
    messages = []
    for place, message in _placed(entry):
        spot = f"{where}, {place}"
        messages.append(_checked(read_message(message, spot), spot))
    return messages, _checked(metadata, where)


def _placed(entry: list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(entry, _Lines):
        return ((f"line {number}", message) for number, message in entry)
    return ((f"message {place}", message) for place, message in enumerate(entry, 1))


def _checked(document: dict[str, Any], where: str) -> dict[str, Any]:
    try:
        # A state, and even more a delta, nests a message deeper than its file does.
        encode_json([[[[[[[[document]]]]]]]])
    except ValueNotSerializableError:
        # Parsed JSON can always be written again, but not at any depth.
        raise CommandError(f"{where}: the JSON is nested too deeply") from None
    return document


def _read_sessions(entry: Any, where: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if not isinstance(entry, dict):
        raise CommandError(f"{where}: not an object with 'speakers' and 'sessions'")
    speakers = _field(entry, "speakers", list, where)
    if not all(isinstance(speaker, str) for speaker in speakers):
        raise CommandError(f"{where}: 'speakers' is not a list of names")
    messages = []
    for number, session in enumerate(_field(entry, "sessions", list, where), 1):
        spot = f"{where}, session {number}"
        date = _field(session, "date_time", str, spot, optional=True)
        for place, turn in enumerate(_field(session, "turns", list, spot), 1):
            message = _read_turn(turn, speakers, f"{spot}, turn {place}")
            message["metadata"] = {"session": number, **message["metadata"]}
            if date:
                message["metadata"]["session_date"] = date
            messages.append(_checked(message, f"{spot}, turn {place}"))
    return messages, {"speakers": speakers}


def _read_turn(turn: Any, speakers: list[str], where: str) -> dict[str, Any]:
    speaker = _field(turn, "speaker", str, where)
    if speaker not in speakers:
        raise CommandError(f"{where}: speaker {speaker!r} is not one of 'speakers'")
    message = {
        # The first speaker is the user, all others are assistants.
        "role": "user" if speaker == speakers[0] else "assistant",
        "content": _field(turn, "text", str, where),
        "name": speaker,
    }
    turn_id = _field(turn, "id", str, where, optional=True)
    if turn_id:
        message["id"] = turn_id
    caption = _field(turn, "image_caption", str, where, optional=True)
    return {**message, "metadata": {"image_caption": caption} if caption else {}}


_KINDS: Final[Mapping[type[Any], str]] = {str: "a string", list: "a list", dict: "an object"}


def _field(entry: Any, name: str, kind: type[Any], where: str, *, optional: bool = False) -> Any:
    if not isinstance(entry, dict):
        raise CommandError(f"{where}: not an object")
    value = entry.get(name)
    if value is None and optional:
        return None
    if not isinstance(value, kind):
        what = "is missing" if name not in entry else f"is not {_KINDS[kind]}"
        raise CommandError(f"{where}: {name!r} {what}")
    return value
