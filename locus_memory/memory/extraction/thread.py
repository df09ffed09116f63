"""A thread as extraction reads it: what was said, and how much of it was seen before; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

from locus_memory.memory.inject import strip
from locus_memory.messages import Message, Role
from locus_memory.store.json_values import encode_json

__all__ = [
    "Cursor",
    "Fork",
    "conversation",
    "document",
    "fork_of",
    "is_worth_reading",
    "latest_user_text",
    "read_document",
    "text_of",
]

_TAIL: Final = 4
"""How many of the last messages a cursor knows."""

_LONGEST_RESULT: Final = 4000
"""Characters of a tool's answer that are kept for extraction; what people said is kept whole."""


def conversation(messages: Sequence[Any]) -> list[Any]:
    """Return what was said: no system message and no block of memories."""
    return [message for message in strip(messages) if message.role != "system"]


def text_of(message: Any) -> str:
    """Return the text of a message; of one in parts, that of its parts of text."""
    content = getattr(message, "content", None)
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    return "\n".join(filter(None, map(_text_of_part, content)))


def _text_of_part(part: Any) -> str:
    text = part.get("text") if isinstance(part, Mapping) else getattr(part, "text", part)
    return text if isinstance(text, str) else ""


def latest_user_text(messages: Sequence[Any]) -> str | None:
    """Return what the user said last, or `None`."""
    for message in reversed(messages):
        if message.role == "user" and (text := text_of(message).strip()):
            return text
    return None


def is_worth_reading(messages: Sequence[Any]) -> bool:
    """Whether somebody said something: the user or the assistant."""
    return any(
        message.role in ("user", "assistant") and text_of(message).strip() for message in messages
    )


def document(message: Any) -> dict[str, Any]:
    """Return what extraction needs of a message, as plain JSON.

    Half characters, which no database can hold, become question marks.
    """
    role = str(message.role)
    text = _whole(text_of(message))
    found = {
        "role": role,
        "content": text[:_LONGEST_RESULT] if role == "tool" else text,
        "name": getattr(message, "name", None),
        "id": getattr(message, "id", None),
        "tool_call_id": getattr(message, "tool_call_id", None),
        "tools": [_whole(str(call.name)) for call in getattr(message, "tool_calls", None) or ()],
    }
    return {key: _whole(part) if isinstance(part, str) else part for key, part in found.items()}


def read_document(found: Mapping[str, Any]) -> Message:
    """Return the message that `document` wrote; of tool calls, only the names are left."""
    return Message.model_validate(
        {
            "role": Role(found["role"]),
            "content": found["content"],
            "name": found["name"],
            "id": found["id"],
            "tool_call_id": found["tool_call_id"],
            "tool_calls": tuple({"name": name} for name in found["tools"]),
        }
    )


def _whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a thread comes from.

    Attributes:
        thread: The thread it was forked from.
        shared: How many messages of its conversation it began with.
    """

    thread: str
    shared: int


def fork_of(state: Any) -> Fork | None:
    """Return where a run's thread comes from, by `forked_from` in its state's metadata.

    That is `{"thread_id": ..., "messages": ...}`: the thread, and how many of all the messages of
    the state it began with. `None` where that is not said.
    """
    origin = (getattr(state, "metadata", None) or {}).get("forked_from")
    if not isinstance(origin, Mapping):
        return None
    thread, messages = origin.get("thread_id"), origin.get("messages")
    if not isinstance(thread, str) or type(messages) is not int:
        return None
    return Fork(thread, len(conversation(state.messages[: max(0, messages)]))) if thread else None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How much of a thread was seen.

    Attributes:
        place: How many messages of the conversation, as it was then, were seen.
        count: How many were seen in all, those included that were trimmed since.
        tail: Fingerprints of the last ones seen, oldest first.
        sequence: How many times messages of the thread were queued.
    """

    place: int = 0
    count: int = 0
    tail: tuple[str, ...] = ()
    sequence: int = 0

    def unseen(self, said: Sequence[Any]) -> tuple[int, int]:
        """Return where in the conversation the messages begin that were not seen.

        The last ones seen are looked for where they were, then everywhere else: messages may
        have been trimmed before them. Where they are not found, the last of them may have been
        edited, and the ones before are looked for. Where there is no trace of them, everything
        is new: reading twice does no harm, and skipping does.

        Returns:
            The place, and how many messages the thread had before it.
        """
        length = len(self.tail)
        last = list(map(_fingerprint, said[max(0, self.place - length) : self.place]))
        if tuple(last) == self.tail:
            return self.place, self.count
        marks = list(map(_fingerprint, said))
        for size in range(length, 0, -1):
            found = [
                place for place in range(1, len(said) + 1) if _meets(marks, place, self.tail[:size])
            ]
            if found:
                return _nearest(found, self.place), self.count - (length - size)
        return 0, self.count

    def after(self, said: Sequence[Any], start: int, before: int) -> Self:
        """Return the cursor once all of the conversation is seen.

        Args:
            said: The conversation.
            start: As `unseen` returned it.
            before: As `unseen` returned it.
        """
        tail = tuple(map(_fingerprint, said[-_TAIL:]))
        return type(self)(len(said), before + len(said) - start, tail, self.sequence + 1)

    def forked(self, said: Sequence[Any], shared: int) -> Self:
        """Return the cursor that a fork of the thread begins with.

        Args:
            said: The conversation of the fork.
            shared: How many of its messages are the thread's own; those that the thread has seen
                are not new.
        """
        place = min(self.place, shared, len(said))
        tail = tuple(map(_fingerprint, said[max(0, place - _TAIL) : place]))
        return type(self)(place, self.count - (self.place - place), tail)

    def to_value(self) -> dict[str, Any]:
        """Return the cursor as plain JSON."""
        return {
            "place": self.place,
            "count": self.count,
            "tail": list(self.tail),
            "sequence": self.sequence,
        }

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Self:
        """Return the cursor that `to_value` wrote."""
        return cls(value["place"], value["count"], tuple(value["tail"]), value["sequence"])


def _meets(marks: Sequence[str], place: int, tail: Sequence[str]) -> bool:
    """Whether what was seen last may have ended at a place of the conversation.

    One message alone proves it only at the beginning of the conversation: answers like "Noted."
    are given more than once.
    """
    run = 0
    for mark, seen in zip(
        reversed(marks[max(0, place - len(tail)) : place]), reversed(tail), strict=False
    ):
        if mark != seen:
            break
        run += 1
    return run == place or (run == len(tail) and run > 1)


def _nearest(places: Sequence[int], place: int) -> int:
    before = [each for each in places if each <= place]
    return before[-1] if before else places[0]


def _fingerprint(message: Any) -> str:
    parts = encode_json([value for _, value in sorted(document(message).items())])
    return blake2b(parts, digest_size=12).hexdigest()
