"""The jobs of the queue: new messages of threads that wait for extraction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field

from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.extraction.thread import Cursor, document
from locus_memory.memory.layers.records import record_of
from locus_memory.memory.moments import read_moment
from locus_memory.store.item import Delete, Namespace, Put, StoreItem

__all__ = ["DIGITS", "Job", "Outcome", "numbered", "sessions_of"]

DIGITS: Final = 16
"""The digits of a job's number in its thread, at the end of its key."""


def _said(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Check the parts of messages that decide when they are read."""
    kinds = {"role": str, "content": str, "number": int}
    if not messages or not all(
        isinstance(each.get(name), kind) for each in messages for name, kind in kinds.items()
    ):
        raise ValueError("a job has messages")
    return messages


@dataclass(frozen=True, slots=True)
class Job:
    """New messages of one thread that wait for extraction.

    Attributes:
        key: Its key in the queue; the jobs of one lane are in the order of their keys.
        version: The store's version of it; 0: it is not queued.
        namespace: The scope of the memories.
        thread: The thread.
        messages: A `document` of each message, with its `number` in the thread.
        cursor: The thread's cursor once this job was queued.
        queued_at: The moment it was queued, ISO 8601 in UTC.
        attempts: How often it was tried.
        lease: The lease of the process that works on it, or `None`.
        agent: The agent, if it is known.
        context: A `document` of the assistant's message that the first of the user answers, if it
            is in no message of the job: shown once more, and never new.
        asked: Whether that message, known or not, asked for a secret.
        by_extractor: Whether it waits for an extractor, such as a model, which phrases do not
            replace.
    """

    key: Annotated[str, Field(exclude=True)]
    version: Annotated[int, Field(exclude=True)]
    namespace: Namespace
    thread: str
    messages: Annotated[list[dict[str, Any]], AfterValidator(_said)]
    cursor: Cursor
    queued_at: str
    attempts: int = 0
    lease: Mapping[str, Any] | None = None
    agent: str | None = None
    context: dict[str, Any] | None = None
    asked: bool = False
    by_extractor: bool = False

    @classmethod
    def unqueued(cls, namespace: Namespace, thread: str, said: Iterable[Any], now: str) -> Self:
        """Return a job of messages that wait nowhere, and are a conversation of their own."""
        return cls("", 0, namespace, thread, numbered(said), Cursor(), now)

    @property
    def lane(self) -> str:
        """The thread's part of the key."""
        return self.key[:-DIGITS]

    @property
    def characters(self) -> int:
        """How many characters the user and the assistant said."""
        return sum(
            len(each["content"].strip())
            for each in self.messages
            if each["role"] in ("user", "assistant")
        )

    @staticmethod
    def from_item(item: StoreItem) -> Job | None:
        """Return the job of an item, or `None` if it is not one of this library."""
        # A job of the first version does not say when it was queued.
        queued_at = item.created_at.isoformat(timespec="microseconds")
        try:
            told = item.value.get("queued_at") or queued_at
            own = {"key": item.key, "version": item.version, "queued_at": told}
            return record_of(Job, {**item.value, **own})
        except (AttributeError, TypeError, InvalidArgumentError) as error:
            emit("memory.queue_unreadable", error=error)
            return None


def numbered(messages: Iterable[Any], first: int = 1) -> list[dict[str, Any]]:
    """Return the documents of messages with their numbers in the thread, and own moments if any."""
    return [
        {**document(each), **_own_moment(each), "number": number}
        for number, each in enumerate(messages, first)
    ]


def _own_moment(message: Any) -> dict[str, str]:
    moment = read_moment((getattr(message, "metadata", None) or {}).get("said_at"))
    return {} if moment is None else {"at": moment.isoformat(timespec="microseconds")}


def sessions_of(jobs: Iterable[Job]) -> list[list[Job]]:
    """Return jobs by their threads; those of a thread stand together."""
    return [list(each) for _, each in groupby(jobs, key=lambda job: job.lane)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of jobs, which are written together with their deletion.

    Attributes:
        jobs: The jobs that are done; of a thread, oldest first.
        operations: Returns the writes, planned on what is stored now; called again if that changed.
            `None`: there are none.
        written: Reports the results, once they are written.
    """

    jobs: Sequence[Job]
    operations: Callable[[], Awaitable[Sequence[Put | Delete]]] | None = None
    written: Callable[[], None] = lambda: None
