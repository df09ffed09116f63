"""The turns of jobs: those of conversations that took place elsewhere, and their transcript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import partial
from hashlib import blake2b
from typing import Any, Final, TypedDict, cast

from locus_memory._internal.offload import aside
from locus_memory._internal.quoting import quote
from locus_memory.conversation.roles import REMEMBER
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.extraction.thread import (
    SPEAKERS,
    conversation,
    document,
    roles_and_texts,
    text_of,
)
from locus_memory.memory.forms import read_messages
from locus_memory.memory.moments import read_moment
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.scope import Scope, metadata_of
from locus_memory.memory.secrets.detection import secrets_in
from locus_memory.memory.validity import moment_in
from locus_memory.messages import Message
from locus_memory.retrieval.turns import Turn, turn_puts
from locus_memory.store.item import Put
from locus_memory.store.json_values import encode_json

__all__ = ["Ingested", "marked_turns", "moment_of", "said_messages", "transcribed"]

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


async def transcribed(job: Job, *, is_on: bool, allow_secrets: bool) -> Sequence[Put]:
    """Return the puts of a job's turns in the transcript; always the same for the same job.

    That is one for each message of a user or an assistant that has text. The metadata of a turn
    names its message: its id, if it has one, and its number in the thread.

    An ingested message is recorded unless it was before; any other one if the memory records what
    runs say. A message that looks like it holds a secret, or answers a request for one, never is,
    with an event.

    Args:
        job: The job.
        is_on: Whether the turns of runs are recorded.
        allow_secrets: Whether messages that look like they hold a secret are recorded.
    """
    found = [each for each in job.messages if not each.get("recorded", not is_on)]
    if not found:
        return ()
    said = roles_and_texts(job.messages)
    kinds = [] if allow_secrets else await secrets_in(said, asked=job.asked)
    told = zip(job.messages, kinds, strict=bool(kinds))
    secrets = {each["number"]: kind for each, kind in told if kind is not None and each in found}
    for kind in secrets.values():
        emit("memory.secret_dropped", type="transcript", kind=kind)
    turns = [
        Turn(
            text=text,
            speaker=_speaker_of(each),
            said_at=read_moment(each.get("at") or job.queued_at),
            id=each["id"],
            metadata={"number": each["number"]},
        )
        for each in found
        if each["role"] in SPEAKERS and each["number"] not in secrets
        if (text := each["content"].strip())
    ]
    space, first = Scope(job.namespace).transcript(job.thread), found[0]["number"]
    size = sum(len(each.text) for each in turns)
    return await aside(size, partial(turn_puts, space, turns, session=job.thread, first=first))


def _speaker_of(message: Mapping[str, Any]) -> str:
    """Return the role, or the name of somebody else than the user; in a run, it is an agent's."""
    is_named = message["role"] != "user" and "turn" in message and message["name"]
    return str(message["name" if is_named else "role"])
