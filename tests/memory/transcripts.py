"""Turns as a transcript has them, for tests that begin with some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locus_memory.conversation.roles import role_of
from locus_memory.memory.extraction.thread import SPEAKERS, text_of
from locus_memory.memory.moments import read_moment
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.turns import Turn, turn_puts
from locus_memory.store.item import Put


def transcript_puts(
    scope: Scope, thread: str, messages: Sequence[Any], first: int, said_at: str
) -> list[Put]:
    """Return a put for each message of a user or an assistant that has text; never for a tool's.

    The same messages always get the same keys, so recording them again changes nothing. The
    metadata of a turn names its message: its id, if it has one, and its number in the thread. The
    speaker is the role, or the name of somebody else than the user.

    Args:
        scope: The scope of the memories.
        thread: The thread.
        messages: New messages of the thread, oldest first.
        first: The number of the first of them in the thread.
        said_at: The moment of those without one of their own, `at`; ISO 8601 in UTC.
    """
    turns = [
        Turn(
            text=text,
            speaker=_speaker_of(message),
            said_at=read_moment(getattr(message, "at", None) or said_at),
            id=getattr(message, "id", None),
            metadata={"number": number},
        )
        for number, message in enumerate(messages, first)
        if role_of(message) in SPEAKERS and (text := text_of(message).strip())
    ]
    return turn_puts(scope.transcript(thread), turns, session=thread, first=first)


def _speaker_of(message: Any) -> str:
    role = role_of(message)
    return role if role == "user" else getattr(message, "name", None) or role
