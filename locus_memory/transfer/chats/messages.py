"""Readers of messages: OpenAI's and their likes, sessions of named speakers, and pairs of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from locus_memory.retrieval.ranking.dates import find_dates
from locus_memory.transfer.chats.conversation import (
    Asked,
    Conversation,
    Entry,
    Unread,
    UnreadError,
    checked,
    each_one,
    field_of,
    moment_in,
    named,
)
from locus_memory.transfer.chats.openai import read_message

__all__ = [
    "AGENT",
    "TURN",
    "day_of",
    "is_conversation",
    "is_turn",
    "read_messages",
    "read_sessions",
    "read_turns",
]

TURN = "locus_memory.turn"
"""In the metadata of a message that was told as part of a turn: the number of the turn."""

AGENT = "locus_memory.agent"
"""In the metadata of such a message: the agent of its session, if not that of the first one."""

_IDS = ("thread_id", "id")
_MOMENTS = ("session_date", "created_at", "create_time", "timestamp", "date")


def is_conversation(value: Any) -> bool:
    """Return whether an entry is a list of messages, or an object with one."""
    return isinstance(value, list) or (isinstance(value, dict) and "messages" in value)


def read_messages(entries: Iterable[Entry], asked: Asked) -> Iterator[Conversation | Unread]:
    """Yield conversations of messages; messages that stand alone are one conversation."""
    read_whole = each_one(_read_conversation)
    for is_whole, group in groupby(entries, key=lambda entry: is_conversation(entry.value)):
        if is_whole:
            yield from read_whole(group, asked)
        else:
            yield _alone(list(group), asked)


def _alone(entries: list[Entry], asked: Asked) -> Conversation | Unread:
    messages: list[dict[str, Any]] = []
    for entry in entries:
        # An only message is the first of a list as well.
        at = entry if entry.number else entry._replace(number=1)
        where = asked.source + at.place("message")
        try:
            messages.append(_message(entry.read(where), where))
        except UnreadError as error:
            return Unread(str(error))
    return named(Conversation("", messages), asked, 0)


def _message(value: Any, where: str) -> dict[str, Any]:
    return checked(read_message(value, where), where)


def _read_conversation(value: Any, where: str) -> Conversation:
    document = value if isinstance(value, dict) else {"messages": value}
    metadata = field_of(document, "metadata", dict, where, optional=True) or {}
    messages = [
        _message(each, f"{where}, message {place}")
        for place, each in enumerate(field_of(document, "messages", list, where), 1)
    ]
    if not messages:
        raise UnreadError(f"{where}: the conversation has no messages")
    return Conversation(
        name_in(document), messages, checked(metadata, where), moment=_moment_of(document)
    )


def name_in(document: dict[str, Any]) -> str:
    """Return the id of a conversation, or an empty text."""
    return next((each for each in map(document.get, _IDS) if isinstance(each, str) and each), "")


def _moment_of(document: dict[str, Any]) -> str | None:
    return next(filter(None, map(moment_in, map(document.get, _MOMENTS))), None)


def read_sessions(entry: Any, where: str) -> Conversation:
    """Return the conversation of an object with `speakers` and `sessions`.

    Raises:
        UnreadError: It is none.
    """
    if not isinstance(entry, dict):
        raise UnreadError(f"{where}: not an object with 'speakers' and 'sessions'")
    speakers = field_of(entry, "speakers", list, where)
    if not all(isinstance(speaker, str) for speaker in speakers):
        raise UnreadError(f"{where}: 'speakers' is not a list of names")
    messages: list[dict[str, Any]] = []
    for number, session in enumerate(field_of(entry, "sessions", list, where), 1):
        spot = f"{where}, session {number}"
        date = field_of(session, "date_time", str, spot, optional=True)
        for place, turn in enumerate(field_of(session, "turns", list, spot), 1):
            message = _read_turn(turn, speakers, f"{spot}, turn {place}")
            message["metadata"] = {"session": number, **message["metadata"]}
            if date:
                message["metadata"]["session_date"] = date
            messages.append(checked(message, f"{spot}, turn {place}"))
    if not messages:
        raise UnreadError(f"{where}: the conversation has no messages")
    return Conversation(name_in(entry), messages, {"speakers": speakers})


def day_of(moment: object) -> str | None:
    """Return the ISO date of a text such as `9:05 pm on 17 February, 2025`."""
    found = find_dates(moment) if isinstance(moment, str) else ()
    if len(found) != 1 or found[0].every_year or found[0].first != found[0].last:
        return None
    return found[0].first.isoformat()


def _read_turn(turn: Any, speakers: list[str], where: str) -> dict[str, Any]:
    speaker = field_of(turn, "speaker", str, where)
    if speaker not in speakers:
        raise UnreadError(f"{where}: speaker {speaker!r} is not one of 'speakers'")
    message = {
        # The first speaker is the user, all others are assistants.
        "role": "user" if speaker == speakers[0] else "assistant",
        "content": field_of(turn, "text", str, where),
        "name": speaker,
    }
    turn_id = field_of(turn, "id", str, where, optional=True)
    if turn_id:
        message["id"] = turn_id
    caption = field_of(turn, "image_caption", str, where, optional=True)
    return {**message, "metadata": {"image_caption": caption} if caption else {}}


_FIELDS = ("agent_id", "conversation_id", "session_date", "turns")
_SAID = ("user", "assistant")


def is_turn(value: Any) -> bool:
    """Return whether an entry is a turn with the texts `user`, `assistant` or both."""
    return isinstance(value, dict) and bool(value) and value.keys() <= set(_SAID)


def read_turns(entries: Iterable[Entry], asked: Asked) -> Iterator[Conversation | Unread]:
    """Yield conversations of pairs of texts; sessions of one name that follow are one."""
    for name, group in groupby(entries, key=lambda entry: _name_of(entry.value, asked)):
        try:
            yield _of_turns(name, list(group), asked)
        except UnreadError as error:
            yield Unread(str(error))


def _name_of(value: Any, asked: Asked) -> str:
    name = value.get("conversation_id") if isinstance(value, dict) else None
    is_name = isinstance(name, str | int) and not isinstance(name, bool)
    return str(name) if is_name else asked.name


def _of_turns(name: str, entries: list[Entry], asked: Asked) -> Conversation:
    messages: list[dict[str, Any]] = []
    agents: list[str | None] = []
    for place, entry in enumerate(entries, 1):
        where = asked.source + entry.place("turn")
        value = entry.read(where)
        if "turns" not in _object(value):
            messages += _pair(value, place, None, where)
            continue
        unknown = [key for key in value if key not in _FIELDS]
        if unknown:
            known = ", ".join(_FIELDS)
            raise UnreadError(f"{where}: unknown field {unknown[0]!r}; known: {known}")
        agent = field_of(value, "agent_id", str, where, optional=True)
        if agent == "":
            raise UnreadError(f"{where}: 'agent_id' is empty")
        date = field_of(value, "session_date", str, where, optional=True)
        if date is not None and moment_in(date) is None:
            raise UnreadError(f"{where}: session_date is ISO 8601, not {date!r}")
        agents.append(agent)
        about = {AGENT: agent} if agent != agents[0] else {}
        for number, turn in enumerate(field_of(value, "turns", list, where), 1):
            for message in _pair(turn, f"{place}.{number}", date, f"{where}, turn {number}"):
                messages.append({**message, "metadata": message["metadata"] | about})
    if not messages:
        raise UnreadError(f"{asked.source}: there are no turns in it")
    return Conversation(name, messages, source=asked.source, agent=next(iter(agents), None))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _pair(turn: Any, number: object, date: str | None, where: str) -> list[dict[str, Any]]:
    if not is_turn(turn):
        raise UnreadError(f"{where}: not an object with 'user', 'assistant' or both")
    metadata = {TURN: number} | ({"said_at": date} if date else {})
    texts = {role: field_of(turn, role, str, where, optional=True) for role in _SAID}
    said = [
        {"role": role, "content": text, "metadata": metadata}
        for role, text in texts.items()
        if text and text.strip()
    ]
    if not said:
        raise UnreadError(f"{where}: no text of the user or the assistant")
    return said
