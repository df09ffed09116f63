"""The source of an extraction: messages of one or more sessions, each with its place; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta, timezone, tzinfo
from typing import Any, Final, NamedTuple

from locus_memory.conversation.roles import role_of
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.thread import (
    CONTEXT,
    DAY,
    SESSION,
    read_document,
    roles_and_texts,
)
from locus_memory.memory.moments import local_day
from locus_memory.memory.queue.jobs import Job, sessions_of
from locus_memory.memory.secrets.detection import WITHHELD, answers_in
from locus_memory.messages import Message

__all__ = ["Told", "cited", "source_of"]

_MOST_IDS: Final = 50
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Told(NamedTuple):
    """A message of a source.

    Attributes:
        message: The message, as an extractor gets it.
        name: Its id, or its number in the thread, such as `#3`.
        thread: Its thread; empty if it has none.
        said_at: The moment at which it was queued, or its own.
        is_new: Whether it was not extracted from before.
    """

    message: Message
    name: str
    thread: str
    said_at: str
    is_new: bool


def cited(source: Sequence[Told], places: Sequence[int] = ()) -> tuple[list[str], str, str]:
    """Return what the messages at some positions say of themselves, as the source of a change.

    Those that were extracted from before do not count, nor those of another session than the
    last one. Without positions, all messages of the user count.

    Args:
        source: The messages of an extraction.
        places: The positions.

    Returns:
        The names of the messages, at most 50; their thread; and the moment of the last of them.

    Raises:
        InvalidArgumentError: All of them were extracted from before.
    """
    named = [source[each] for each in sorted({*places}) if 0 <= each < len(source)]
    new = [each for each in named if each.is_new]
    if named and not new:
        raise InvalidArgumentError("a change comes from a new message")
    new = new or [each for each in source if role_of(each.message) == "user"]
    last = [each for each in new if each.thread == new[-1].thread]
    dated = last or source
    return (
        [each.name for each in last[-_MOST_IDS:]],
        dated[-1].thread if dated else "",
        max((each.said_at for each in dated), default=""),
    )


def source_of(jobs: Sequence[Job], *, withholds: bool, zone: tzinfo | None = None) -> list[Told]:
    """Return the messages of jobs: those of a session together, and the last session at the end.

    What a session answers stands before it, with `CONTEXT` in its metadata. Where there are
    several sessions, the metadata of their messages name the threads, under `SESSION`. The day on
    which a message was said, where it was said, is under `DAY`.

    Args:
        jobs: The jobs.
        withholds: Whether answers to requests for a secret are left out.
        zone: The time zone of messages without an offset; `None`: that of the machine.
    """
    sessions = sessions_of(jobs)
    told: list[Told] = []
    for session in sessions:
        found = list(_documents(session))
        texts = roles_and_texts([document for document, _, _ in found])
        hidden = answers_in(texts, asked=session[0].asked)
        for (document, job, is_new), is_hidden in zip(found, hidden, strict=True):
            shown = {**document, "content": WITHHELD} if is_hidden and withholds else document
            marks: dict[str, Any] = {SESSION: job.thread} if len(sessions) > 1 else {}
            marks |= {} if is_new else {CONTEXT: True}
            said_at, offset = document.get("at", job.queued_at), document.get("offset")
            where = zone if offset is None else timezone(timedelta(minutes=offset))
            if (day := local_day(said_at, where)) is not None:
                marks[DAY] = f"{_DAYS[day.weekday()]} {day}"
            name = document["id"] or f"#{document['number']}"
            told.append(Told(read_document(shown, marks), name, job.thread, said_at, is_new))
    return told


def _documents(session: Sequence[Job]) -> Iterator[tuple[Mapping[str, Any], Job, bool]]:
    """Yield the documents of a session's messages; context that stands before it already, once."""
    last = 0
    for job in session:
        if job.context is not None and job.context["number"] > last:
            yield job.context, job, False
        for document in job.messages:
            last = max(last, document["number"])
            yield document, job, True
