"""The ingestion of conversations that took place elsewhere, or before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from hashlib import blake2b
from typing import Any, Final, TypedDict, cast

from locus_memory._internal.quoting import quote
from locus_memory.conversation.roles import REMEMBER
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.thread import conversation, document, text_of
from locus_memory.memory.forms import read_messages
from locus_memory.memory.scope import metadata_of
from locus_memory.memory.validity import moment_in
from locus_memory.messages import Message
from locus_memory.store.json_values import encode_json

__all__ = ["Ingested", "marked_turns", "moment_of", "said_messages"]

_FIELDS: Final = ("user", "assistant")


class Ingested(TypedDict):
    """What `ingest` did.

    Attributes:
        turns: The turns that were not ingested before.
        episodes: The episodes of them.
        facts: The memories that were written.
        pending: The jobs of the conversation that still wait.
    """

    turns: int
    episodes: int
    facts: int
    pending: int


def marked_turns(
    turns: Iterable[Any],
    session_date: str | None,
    offset: int | None = None,
    zone: tzinfo | None = None,
) -> list[dict[str, Any]]:
    """Return the documents of a conversation's messages, each with the mark of its `turn`.

    A mark depends on the date, the place of the turn among the turns, and its texts: repeating an
    ingestion changes nothing, and a conversation that grew adds its new turns.

    Args:
        turns: Mappings with `user`, `assistant` or both, each a text; or messages, and dicts of
            one, each of which is a turn. A message without text, and one of the system, is none.
            With `said_at` in its metadata, it has a moment of its own, `at`.
        session_date: The moment of all of them, if one was given.
        offset: The minutes by which the clock of the conversation was ahead of UTC, if it is known.
        zone: The time zone of a moment without an offset; `None`: that of the machine.

    Raises:
        InvalidArgumentError: One is not a turn; the message names its place and quotes nothing.
    """
    given: object = turns
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidArgumentError("turns are a list of {user, assistant}")
    known = {} if offset is None else {"offset": offset}
    found: list[dict[str, Any]] = []
    for place, turn in enumerate(turns):
        if hasattr(turn, "role") or (isinstance(turn, Mapping) and "role" in turn):
            told = conversation(read_messages([turn], name=f"turns[{place}]"))
            parts: list[Any] = [
                [str(each.role), getattr(each, "name", None), text_of(each)] for each in told
            ]
        else:
            said = _texts_of(turn, place)
            told = [Message.user(said[0]), Message.assistant(said[1])]
            parts = [*said]
        key = encode_json([session_date, place, *parts])
        mark = {"turn": blake2b(key, digest_size=12).hexdigest()} | known
        found += [
            document(each) | mark | _own_moment(each, zone)
            for each in told
            if text_of(each).strip()
        ]
    return found


def _own_moment(message: Any, zone: tzinfo | None) -> dict[str, Any]:
    """Return the moment of a message, and its offset, if its metadata has one."""
    said_at = (getattr(message, "metadata", None) or {}).get("said_at")
    if said_at is None:
        return {}
    at, offset = moment_of(said_at, "", zone)
    return {"at": at} | ({} if offset is None else {"offset": offset})


def _texts_of(turn: Any, place: int) -> list[str]:
    """Return the texts of a turn, the user's first; one that is not there is empty."""
    if not isinstance(turn, Mapping):
        raise InvalidArgumentError(f"turns[{place}] is an object with user and assistant")
    fields = cast("Mapping[str, Any]", turn)
    unknown = [name for name in fields if name not in _FIELDS]
    if unknown:
        raise InvalidArgumentError(
            f"turns[{place}] has user and assistant, not {quote(unknown[0])}"
        )
    texts = [fields.get(name) for name in _FIELDS]
    if any(text is not None and not isinstance(text, str) for text in texts):
        raise InvalidArgumentError(f"turns[{place}]: user and assistant are texts")
    # Half characters cannot be stored.
    said = [(text or "").encode("utf-8", "replace").decode() for text in texts]
    if not any(text.strip() for text in said):
        raise InvalidArgumentError(f"turns[{place}] has no text of the user or the assistant")
    return said


def moment_of(
    session_date: str | datetime | None, now: str, zone: tzinfo | None = None
) -> tuple[str, int | None]:
    """Return the moment of a session, ISO 8601 in UTC with microseconds, and its offset, if any.

    Args:
        session_date: The moment, ISO 8601.
        now: The present moment, which it is if there is no `session_date`.
        zone: The time zone of a moment without an offset; `None`: that of the machine.

    Raises:
        InvalidArgumentError: It is not a date.
    """
    if session_date is None:
        return now, None
    read = moment_in(str(session_date), zone, "a moment, such as session_date,")
    offset = datetime.fromisoformat(str(session_date).strip()).utcoffset()
    minutes = None if offset is None else int(offset.total_seconds() // 60)
    return read.isoformat(timespec="microseconds"), minutes


def said_messages(messages: Any) -> list[Any]:
    """Return the conversation of messages, see `read_messages`; a text is one of the user.

    Raises:
        InvalidArgumentError: They are not messages.
    """
    if metadata_of(messages).get(REMEMBER) is False:
        return []
    return conversation(read_messages(messages))
