"""The view of a thread for extraction: its messages, and which of them were seen before; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final, Self

from locus_memory.conversation.roles import is_documents_block, is_off_record, role_of
from locus_memory.memory.inject import strip
from locus_memory.messages import Message, Role
from locus_memory.store.json_values import encode_json

__all__ = [
    "CONTEXT",
    "DAY",
    "OTHERS",
    "SESSION",
    "SPEAKERS",
    "Cursor",
    "Fork",
    "asked",
    "conversation",
    "document",
    "fork_of",
    "is_worth_reading",
    "others_of",
    "query_of",
    "read_document",
    "roles_and_texts",
    "text_in",
    "text_of",
    "told_in",
]

_ROLES: Final = frozenset(("user", "assistant", "tool"))

_TAIL: Final = 4
"""The number of last messages in a cursor."""

_LONGEST_RESULT: Final = 4000
"""Characters of a tool's message that extraction keeps; other messages are kept whole."""


CONTEXT: Final = "locus_memory.context"
"""In the metadata of a message that an extractor is shown once more, for what follows it."""

DAY: Final = "locus_memory.day"
"""The name in the metadata of a message of the day on which it was said, where it was said."""

SPEAKERS: Final = frozenset(("user", "assistant"))
"""The roles whose words are recorded."""

SESSION: Final = "locus_memory.session"
"""In the metadata of a message: its thread, where an extractor gets several."""


def conversation(messages: Sequence[Any]) -> list[Any]:
    """Return the conversation that memories may be made of.

    These are the messages without system messages, memories, documents and what is off the record.
    """
    return [
        message
        for message in strip(messages)
        if role_of(message) in _ROLES and not is_documents_block(message)
        if not is_off_record(message)
    ]


def told_in(state: Any) -> list[Any]:
    """Return the conversation of a state; nothing if all of it is off the record."""
    return [] if is_off_record(state) else conversation(state.messages)


def text_of(message: Any) -> str:
    """Return the text of a message; of one in parts, the text of its text parts."""
    return text_in(getattr(message, "content", None))


def text_in(content: Any) -> str:
    """Return the text of a content; of one in parts, the text of its text parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    return "\n".join(filter(None, map(_text_of_part, content)))


def _text_of_part(part: Any) -> str:
    text = part.get("text") if isinstance(part, Mapping) else getattr(part, "text", part)
    return text if isinstance(text, str) else ""


def asked(messages: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the role and the text of the last messages: the user's, and the one it answers.

    They begin with the assistant's last text before the user's last one. Blocks of memories do not
    count. Only as many messages are read as it takes: a thread may be long.
    """
    found: list[dict[str, Any]] = []
    for message in reversed(messages):
        told = map(document, strip((message,)) if role_of(message) in SPEAKERS else ())
        found += [each for each in told if each["content"].strip()]
        roles = [each["role"] for each in found]
        if roles[-1:] == ["assistant"] and "user" in roles:
            break
    return roles_and_texts(found[::-1])


def query_of(said: Iterable[tuple[str, str]]) -> str | None:
    """Return the user's last text of some roles and texts, or `None`."""
    texts = [text for role, text in said if role == "user"]
    return texts[-1].strip() if texts else None


def is_worth_reading(messages: Sequence[Any]) -> bool:
    """Return whether the user or the assistant said anything."""
    return any(
        message.role in ("user", "assistant") and text_of(message).strip() for message in messages
    )


def document(message: Any) -> dict[str, Any]:
    """Return the parts of a message that extraction needs, as plain JSON.

    Half characters, which no database can store, become question marks.
    """
    role, text = role_of(message), _whole(text_of(message))
    named = {name: getattr(message, name, None) for name in ("name", "id", "tool_call_id")}
    return {
        "role": role,
        "content": text[:_LONGEST_RESULT] if role == "tool" else text,
        **{name: None if each is None else _whole(str(each)) for name, each in named.items()},
        "tools": [_whole(str(call.name)) for call in getattr(message, "tool_calls", None) or ()],
    }


def roles_and_texts(documents: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the role and the text of each `document`."""
    return [(each["role"], each["content"]) for each in documents]


def read_document(found: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> Message:
    """Return the message of a `document`; only the names of its tool calls are left."""
    return Message.model_validate(
        {
            "role": Role(found["role"]),
            "content": found["content"],
            "name": found["name"],
            "id": found["id"],
            "tool_call_id": found["tool_call_id"],
            "tool_calls": tuple({"name": name} for name in found["tools"]),
            "metadata": dict(metadata or {}),
        }
    )


def _whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Fork:
    """The source of a forked thread.

    Attributes:
        thread: The thread from which it was forked.
        shared: How many messages of its conversation the fork began with.
    """

    thread: str
    shared: int


def fork_of(state: Any) -> Fork | None:
    """Return the source of a run's thread, from `forked_from` in its state's metadata.

    That is `{"thread_id": ..., "messages": ...}`: the source thread, and how many of all the
    messages of the state the fork began with. `None` if the metadata has none.
    """
    match (getattr(state, "metadata", None) or {}).get("forked_from"):
        case {"thread_id": str(thread), "messages": messages} if thread and type(messages) is int:
            return Fork(thread, len(conversation(state.messages[: max(0, messages)])))
        case _:
            return None


OTHERS: Final = "messages_of_others"
"""The name in a state's metadata of how many of its first messages may be another user's."""


def others_of(state: Any) -> int:
    """Return how many messages of a run's conversation may be another user's, see `OTHERS`."""
    count = (getattr(state, "metadata", None) or {}).get(OTHERS)
    return len(conversation(state.messages[: max(0, count)])) if type(count) is int else 0


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position in a thread up to which its messages were seen.

    Attributes:
        place: How many messages of the conversation, as it was then, were seen.
        count: How many were seen in all, including messages that were trimmed since.
        tail: Fingerprints of the last messages seen, oldest first.
        sequence: How many times messages of the thread were queued.
        marks: The marks of the turns that were ingested, oldest first; `~` is before the mark of
            one that was only recorded.
        asked: Whether the assistant's last message asked for a secret.
        passed: Whether the last messages were off the record, and only passed.
        staged: Whether a role was given in the thread, or a text handed in: then phrases state no
            facts in it, unless a message as a whole asks to remember one.
    """

    place: int = 0
    count: int = 0
    tail: tuple[str, ...] = ()
    sequence: int = 0
    marks: tuple[str, ...] = ()
    asked: bool = False
    passed: bool = False
    staged: bool = False

    def unseen(self, said: Sequence[Any]) -> tuple[int, int]:
        """Return the position of the first unseen message in the conversation.

        The last messages seen are searched at their old position first, then everywhere else:
        messages before them may have been trimmed. If they are not found, the last of them may
        have been edited, and the earlier ones are searched. If none is found, all messages are
        new: reading a message twice does no harm, but skipping one does.

        Returns:
            The position, and how many messages the thread had before it.
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
                nearest = max((each for each in found if each <= self.place), default=found[0])
                return nearest, self.count - (length - size)
        return 0, self.count

    def after(self, said: Sequence[Any], start: int, before: int, *, passed: bool = False) -> Self:
        """Return the cursor for the moment when the whole conversation is seen.

        Args:
            said: The conversation.
            start: The position that `unseen` returned.
            before: The count that `unseen` returned.
            passed: Whether what is new is off the record.
        """
        tail = tuple(map(_fingerprint, said[-_TAIL:]))
        count, sequence = before + len(said) - start, self.sequence + 1
        place = len(said)
        return replace(self, place=place, count=count, tail=tail, sequence=sequence, passed=passed)

    def taking(
        self, turns: Sequence[dict[str, Any]], *, reads: bool
    ) -> tuple[Self, list[dict[str, Any]]]:
        """Return the cursor behind the turns that are new, and their messages.

        Args:
            turns: A `document` of each message of a conversation that is ingested, with the mark of
                its `turn`: the same for the same turn at the same place, and no other one.
            reads: Whether the messages are queued; otherwise, they are only recorded. A message
                that was recorded before says so.
        """
        known = set(self.marks)
        new = [
            {**each, "recorded": f"~{each['turn']}" in known}
            for each in turns
            if each["turn"] not in known and (reads or f"~{each['turn']}" not in known)
        ]
        marks = dict.fromkeys(each["turn"] for each in new)
        kept = (mark for mark in self.marks if mark.removeprefix("~") not in marks)
        moved = replace(
            self,
            count=self.count + len(new),
            sequence=self.sequence + reads,
            marks=(*kept, *(mark if reads else f"~{mark}" for mark in marks)),
        )
        return moved, [{**each, "number": n} for n, each in enumerate(new, self.count + 1)]

    def forked(self, said: Sequence[Any], shared: int) -> Self:
        """Return the first cursor of a fork of the thread.

        Args:
            said: The conversation of the fork.
            shared: How many of its messages are from the thread; those that were seen in the
                thread are not new.
        """
        place = min(self.place, shared, len(said))
        tail = tuple(map(_fingerprint, said[max(0, place - _TAIL) : place]))
        count = self.count - (self.place - place)
        return type(self)(place, count, tail, staged=self.staged)


def _meets(marks: Sequence[str], place: int, tail: Sequence[str]) -> bool:
    """Return whether the messages seen last may end at a position of the conversation.

    A single message proves it only at the beginning of the conversation: answers such as "Noted."
    occur more than once.
    """
    seen = marks[max(0, place - len(tail)) : place]
    return list(tail[-len(seen) :]) == seen and (len(seen) == place or len(seen) > 1)


def _fingerprint(message: Any) -> str:
    parts = encode_json([value for _, value in sorted(document(message).items())])
    return blake2b(parts, digest_size=12).hexdigest()
