"""The source of an extraction: messages of one or more sessions, each with its place; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from locus_memory.memory.secrets.answers import WITHHELD, answers_in

__all__ = ["Source", "source_of"]

_MOST_IDS: Final = 50
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Told:
    """A message of a source.

    Attributes:
        message: The message.
        number: Its number in the thread, from 1, without system messages.
        thread: Its thread; empty if it has none.
        said_at: The moment at which it was queued, or its own.
        is_new: Whether it was not extracted from before.
    """

    message: Any
    number: int
    thread: str
    said_at: str
    is_new: bool

    @property
    def id(self) -> str:
        """The id of the message, or its number in the thread, such as `#3`."""
        return getattr(self.message, "id", None) or f"#{self.number}"


class Cited(NamedTuple):
    """What messages say of themselves, as the source of a change.

    Attributes:
        ids: The ids of the messages, at most 50.
        thread: Their thread; empty if they have none.
        said_at: The moment of the last of them; empty without any message.
    """

    ids: list[str]
    thread: str
    said_at: str


@dataclass(frozen=True, slots=True)
class Source:
    """The messages of an extraction, those of a session together and the last session at the end.

    What comes from messages of several sessions is of the last one of them, and what names no
    message, of the last session.

    Attributes:
        told: The messages.
    """

    told: Sequence[Told]

    @property
    def messages(self) -> list[Any]:
        """The messages as an extractor gets them."""
        return [each.message for each in self.told]

    def cited(self, places: Sequence[int] = ()) -> Cited:
        """Return what the messages at some positions say of themselves.

        Those that were extracted from before do not count, nor those of another session than the
        last one. Without positions, all messages of the user count.

        Raises:
            InvalidArgumentError: All of them were extracted from before.
        """
        named = [self.told[each] for each in sorted({*places}) if 0 <= each < len(self.told)]
        new = [each for each in named if each.is_new]
        if named and not new:
            raise InvalidArgumentError("a change comes from a new message")
        new = new or [each for each in self.told if role_of(each.message) == "user"]
        last = [each for each in new if each.thread == new[-1].thread]
        dated = last or self.told
        return Cited(
            ids=[each.id for each in last[-_MOST_IDS:]],
            thread=dated[-1].thread if dated else "",
            said_at=max((each.said_at for each in dated), default=""),
        )


def source_of(jobs: Sequence[Job], *, withholds: bool, zone: tzinfo | None = None) -> Source:
    """Return the messages of jobs; those of a thread stand together.

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
            said_at = document.get("at", job.queued_at)
            marks |= _day_of(said_at, document.get("offset"), zone)
            message = read_document(shown, marks)
            told.append(Told(message, document["number"], job.thread, said_at, is_new))
    return Source(told)


def _documents(session: Sequence[Job]) -> Iterator[tuple[Mapping[str, Any], Job, bool]]:
    """Yield the documents of a session's messages; context that stands before it already, once."""
    last = 0
    for job in session:
        if job.context is not None and job.context["number"] > last:
            yield job.context, job, False
        for document in job.messages:
            last = max(last, document["number"])
            yield document, job, True


def _day_of(moment: str | None, offset: Any, zone: tzinfo | None) -> dict[str, str]:
    """Return the day of a moment where it was said, such as `Friday 2026-05-15`, as metadata."""
    day = local_day(moment, zone if offset is None else timezone(timedelta(minutes=offset)))
    return {} if day is None else {DAY: f"{_DAYS[day.weekday()]} {day}"}
