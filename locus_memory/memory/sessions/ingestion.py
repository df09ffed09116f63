"""The ingestion of conversations that took place elsewhere, or before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b
from typing import Any, Final, TypedDict, cast
from uuid import uuid4

from pydantic import ValidationError

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.thread import MarkedTurn, conversation, document
from locus_memory.memory.queue.queue import ExtractionQueue
from locus_memory.memory.queue.worker import Worker
from locus_memory.memory.scope import Scope
from locus_memory.memory.sessions.distillation import Distillation
from locus_memory.messages import Message
from locus_memory.store.json_values import encode_json

__all__ = ["Ingested", "Ingestion", "marked_turns", "moment_of", "new_thread", "said_messages"]

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


class Ingestion:
    """A service that ingests conversations.

    Args:
        queue: Gets their turns.
        worker: Distils them.
        distillation: Counts what is written.
    """

    def __init__(
        self,
        queue: ExtractionQueue,
        worker: Worker,
        distillation: Distillation,
    ) -> None:
        self._queue = queue
        self._worker = worker
        self._distillation = distillation

    async def run(
        self,
        scope: Scope,
        agent: str,
        conversation_id: str,
        turns: Sequence[MarkedTurn],
        at: str,
        *,
        skips_extraction: bool,
    ) -> Ingested:
        """Ingest turns of a conversation; those that are known by their marks are left out.

        Args:
            scope: The scope of the memories.
            agent: The agent.
            conversation_id: The name of the conversation, which is the thread.
            turns: The turns, oldest first.
            at: The moment of all of them, ISO 8601 in UTC.
            skips_extraction: Whether they are only recorded.

        Raises:
            BackendError: The store failed.
        """
        lane = scope.lane(conversation_id)
        if skips_extraction:
            new = await self._queue.record_turns(scope, conversation_id, turns, at)
            return await self._ingested(new, {}, lane)
        job = await self._queue.add_turns(scope, conversation_id, turns, at, agent)
        new = 0 if job is None else len({each["turn"] for each in job.messages})
        with self._distillation.counting(lane) as counts:
            if job is not None:
                self._worker.add(job)
            await self._worker.flush(lane)
            return await self._ingested(new, counts, lane)

    async def _ingested(self, new: int, counts: Mapping[str, int], lane: str) -> Ingested:
        return {
            "turns": new,
            "episodes": counts.get("episodes", 0),
            "facts": counts.get("facts", 0),
            "pending": len(await self._queue.waiting(lane)),
        }


def marked_turns(
    turns: Iterable[Any], session_date: str | None, offset: int | None = None
) -> list[MarkedTurn]:
    """Return the turns of a conversation with their marks.

    A mark depends on the date, the place of the turn among the turns, and its texts: repeating an
    ingestion changes nothing, and a conversation that grew adds its new turns.

    Args:
        turns: Mappings with `user`, `assistant` or both, each a text.
        session_date: The moment of all of them, if one was given.
        offset: The minutes by which the clock of the conversation was ahead of UTC, if it is known.

    Raises:
        InvalidArgumentError: One is not a turn; the message names its place and quotes nothing.
    """
    given: object = turns
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidArgumentError("turns are a list of {user, assistant}")
    return [_marked(turn, place, session_date, offset) for place, turn in enumerate(turns)]


def _marked(turn: Any, place: int, session_date: str | None, offset: int | None) -> MarkedTurn:
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
    key = encode_json([session_date, place, *said])
    mark = blake2b(key, digest_size=12).hexdigest()
    messages = [make(text) for make, text in zip(_MAKERS, said, strict=True) if text.strip()]
    known: dict[str, Any] = {"turn": mark} | ({} if offset is None else {"offset": offset})
    return MarkedTurn(mark, tuple({**document(each), **known} for each in messages))


_MAKERS: Final = (Message.user, Message.assistant)


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
    try:
        read = datetime.fromisoformat(str(session_date))
        offset = read.utcoffset()
        told = read if offset is not None or zone is None else read.replace(tzinfo=zone)
        moment = told.astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidArgumentError(
            f"session_date is ISO 8601, not {quote(session_date)}"
        ) from error
    return moment, None if offset is None else int(offset.total_seconds() // 60)


def said_messages(messages: Any) -> list[Any]:
    """Return the conversation of messages, which may be dicts; a text is one of the user.

    Raises:
        InvalidArgumentError: They are not messages.
    """
    # A message that is a pydantic model is iterable as well.
    is_one = isinstance(messages, str | Mapping) or hasattr(messages, "role")
    if not is_one and not isinstance(messages, Iterable):
        raise InvalidArgumentError(f"messages are a list, not {quote(messages)}")
    listed: list[Any] = [messages] if is_one else list(messages)
    return conversation([_message(each, place) for place, each in enumerate(listed)])


def _message(value: Any, place: int) -> Any:
    if isinstance(value, str):
        return Message.user(value)
    if not isinstance(value, Mapping):
        if not hasattr(value, "role"):
            raise InvalidArgumentError(f"messages[{place}] has a role and a content")
        return value
    try:
        return Message.model_validate(value)
    except ValidationError as error:
        raise InvalidArgumentError(f"messages[{place}] is not a message") from error


def new_thread() -> str:
    """Return a name for a thread that nobody named."""
    return uuid4().hex
