"""The formats of chats, and the walk over a file that reads all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, groupby
from typing import Any, BinaryIO, Final

from locus_memory.transfer.chats.assistants import read_chatgpt, read_claude, read_runs
from locus_memory.transfer.chats.conversation import (
    Asked,
    Conversation,
    Entry,
    Reader,
    Unread,
    UnreadError,
    each_one,
)
from locus_memory.transfer.chats.entries import Lines, entries_of
from locus_memory.transfer.chats.messages import (
    is_conversation,
    is_turn,
    read_messages,
    read_sessions,
    read_turns,
)
from locus_memory.transfer.chats.speakers import (
    read_slack,
    read_whatsapp,
    slack_header,
    whatsapp_header,
)

__all__ = ["ChatFormat", "read_chats"]


class ChatFormat(StrEnum):
    """A format of chats in a file."""

    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    LANGSMITH = "langsmith"
    SESSIONS = "sessions"
    TURNS = "turns"
    OPENAI = "openai"
    WHATSAPP = "whatsapp"
    SLACK = "slack"


@dataclass(frozen=True, slots=True)
class _Format:
    """One row of the table.

    Attributes:
        looks_like: Whether an entry is one of this format: a line, or a value of JSON.
        read: Reads the entries.
        is_text: Whether the entries are lines of text.
    """

    looks_like: Callable[[Any], bool]
    read: Reader
    is_text: bool = False


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and any(name in value for name in names)


def _is_message(value: Any) -> bool:
    kinds = ("human", "ai", "constructor")
    return _has("role")(value) or (isinstance(value, dict) and value.get("type") in kinds)


# The first that fits is taken: a message may have fields of any name.
_FORMATS: Final = {
    ChatFormat.OPENAI: _Format(
        lambda value: is_conversation(value) or _is_message(value), read_messages
    ),
    ChatFormat.CHATGPT: _Format(_has("mapping"), each_one(read_chatgpt)),
    ChatFormat.CLAUDE: _Format(_has("chat_messages"), each_one(read_claude)),
    ChatFormat.LANGSMITH: _Format(_has("run_type", "parent_run_id", "trace_id"), read_runs),
    ChatFormat.SESSIONS: _Format(_has("sessions"), each_one(read_sessions)),
    ChatFormat.TURNS: _Format(lambda value: is_turn(value) or _has("turns")(value), read_turns),
    ChatFormat.WHATSAPP: _Format(
        lambda line: whatsapp_header(line) is not None, read_whatsapp, is_text=True
    ),
    ChatFormat.SLACK: _Format(
        lambda line: slack_header(line) is not None, read_slack, is_text=True
    ),
}
_HEAD: Final = 2**16
_LOOKED_AT: Final = 50
"""How many entries are looked at until one is of a format."""


def read_chats(
    file: BinaryIO, asked: Asked, kind: ChatFormat | None = None
) -> Iterator[Conversation | Unread]:
    """Yield the conversations of a file, and what could not be read of it.

    Memory holds one conversation at a time, unless a reader says otherwise.

    Args:
        file: The file, which can be read from its beginning more than once.
        asked: What the readers are told.
        kind: The format; `None`: found by looking at the file.
    """
    head = file.read(_HEAD)
    file.seek(0)
    try:
        text = kind if kind is not None else _text_format(head)
        if text is not None and _FORMATS[text].is_text:
            yield from _FORMATS[text].read(Lines(file), asked)
        elif not head.removeprefix(b"\xef\xbb\xbf").strip() and len(head) < _HEAD:
            yield Unread(f"{asked.source}: the file is empty")
        else:
            yield from _of_json(entries_of(file), asked, kind)
    except UnreadError as error:
        yield Unread(f"{asked.source}{error}")


def _text_format(head: bytes) -> ChatFormat | None:
    """Return the format of text of which a line is a header; JSON has none of them."""
    lines = [line for line in head.decode(errors="ignore").lstrip("\ufeff").splitlines() if line]
    # WhatsApp's lines begin with a bracket as well; in JSON, not even the first is a header.
    looked_at = lines[:1] if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{") else lines
    for name, each in _FORMATS.items():
        if each.is_text and any(map(each.looks_like, looked_at)):
            return name
    return None


def _of_json(
    entries: Iterator[Entry], asked: Asked, kind: ChatFormat | None
) -> Iterator[Conversation | Unread]:
    first: list[Entry] = []
    for entry in entries:
        first.append(entry)
        if kind is not None or _format_of(entry.value) or len(first) == _LOOKED_AT:
            break
    if not first:
        yield Unread(f"{asked.source}: the conversation has no messages")
        return
    last = kind or _format_of(first[-1].value)
    if last is None:
        faults = (each for each in first if isinstance(each.value, Exception))
        seen = next(faults, first[0]).value
        yield Unread(f"{asked.source}: {_seen(seen)}; {_KNOWN}")
        return

    present = last

    def format_at(entry: Entry) -> ChatFormat:
        # What looks like nothing is told by the reader of what stood before it.
        nonlocal present
        present = kind or _format_of(entry.value) or present
        return present

    whole: Iterable[Entry] = chain(first, entries)
    for name, group in groupby(whole, key=format_at):
        yield from _FORMATS[name].read(group, asked)


_KNOWN: Final = "what can be read: " + ", ".join(ChatFormat)


def _format_of(value: Any) -> ChatFormat | None:
    names = (n for n, each in _FORMATS.items() if not each.is_text and each.looks_like(value))
    return next(names, None)


_KINDS: Final = {str: "a text", bool: "true or false", int: "a number", float: "a number"}


def _seen(value: Any) -> str:
    """Return what an entry is that nothing can read."""
    if isinstance(value, Exception):
        return str(value)
    if isinstance(value, dict):
        names = ", ".join(repr(name[:40]) for name in list(value)[:6])
        return f"saw an object with {names}" if names else "saw an empty object"
    return f"saw {'null' if value is None else _KINDS.get(type(value), 'a list')}"
