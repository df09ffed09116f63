"""The jobs of the queue: new messages of threads that wait for extraction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final, Protocol, Self

from locus_memory.events import emit
from locus_memory.memory.extraction.thread import Cursor, roles_and_texts
from locus_memory.memory.secrets.answers import asks_at_end
from locus_memory.store.item import Delete, Namespace, Put, StoreItem

__all__ = ["DIGITS", "Job", "News", "Outcome", "Waiting", "sessions_of"]

DIGITS: Final = 16
"""The digits of a job's number in its thread, at the end of its key."""


@dataclass(frozen=True, slots=True)
class News:
    """New messages of a thread.

    Attributes:
        cursor: The cursor behind them.
        messages: Their documents with their numbers.
        asked: Whether the assistant asked for a secret right before them.
        context: The document of the assistant's message before them, if it is known.
    """

    cursor: Cursor
    messages: list[dict[str, Any]]
    asked: bool
    context: dict[str, Any] | None = None

    @classmethod
    def of(
        cls, before: Cursor, after: Cursor, messages: list[dict[str, Any]], context: Any = None
    ) -> Self:
        """Return news; the cursor after them knows what the assistant asked for last."""
        told = roles_and_texts([] if context is None else [context])
        asked = asks_at_end(told, asked=before.asked)
        moved = replace(after, asked=asks_at_end(roles_and_texts(messages), asked=asked))
        return cls(moved, messages, asked, context)


@dataclass(frozen=True, slots=True)
class Job:
    """New messages of one thread that wait for extraction.

    Attributes:
        key: Its key in the queue; the jobs of one lane are in the order of their keys.
        version: The store's version of it.
        namespace: The scope of the memories.
        thread: The thread.
        messages: A `document` of each message, with its `number` in the thread.
        cursor: The thread's cursor once this job was queued.
        attempts: How often it was tried.
        lease: The lease of the process that works on it, or `None`.
        queued_at: The moment it was queued, ISO 8601 in UTC; `None` if unknown.
        agent: The agent, if it is known.
        context: A `document` of the assistant's message that the first of the user answers, if it
            is in no message of the job: shown once more, and never new.
        asked: Whether that message, known or not, asked for a secret.
    """

    key: str
    version: int
    namespace: Namespace
    thread: str
    messages: list[dict[str, Any]]
    cursor: Cursor
    attempts: int = 0
    lease: Mapping[str, Any] | None = None
    queued_at: str | None = None
    agent: str | None = None
    context: dict[str, Any] | None = None
    asked: bool = False

    @property
    def lane(self) -> str:
        """The thread's part of the key."""
        return self.lane_of(self.key)

    @property
    def message_ids(self) -> list[str]:
        """The ids of the messages; without an id, the number in the thread, such as `#3`."""
        return [each["id"] or f"#{each['number']}" for each in self.messages]

    @property
    def characters(self) -> int:
        """How many characters the user and the assistant said."""
        return sum(
            len(each["content"].strip())
            for each in self.messages
            if each["role"] in ("user", "assistant")
        )

    @property
    def is_ingested(self) -> bool:
        """Whether the messages are of a conversation that was ingested."""
        return "turn" in self.messages[0]

    @staticmethod
    def lane_of(key: str) -> str:
        """Return the thread's part of a key."""
        return key[:-DIGITS]

    def report_dropped(self, error: BaseException) -> None:
        """Emit the event that the job failed too often."""
        emit(
            "memory.extract_dropped",
            error=error,
            thread=self.thread,
            messages=len(self.messages),
            message_ids=self.message_ids,
            attempts=self.attempts,
        )

    def to_value(self) -> dict[str, Any]:
        """Return the job as plain JSON."""
        rare = {
            "agent": self.agent,
            "context": self.context,
            "asked": self.asked or None,
        }
        return {
            **{name: value for name, value in rare.items() if value is not None},
            "namespace": list(self.namespace),
            "thread": self.thread,
            "messages": self.messages,
            "cursor": self.cursor.to_value(),
            "attempts": self.attempts,
            "lease": None if self.lease is None else dict(self.lease),
            "queued_at": self.queued_at,
        }

    @classmethod
    def from_item(cls, item: StoreItem) -> Self | None:
        """Return the job of an item, or `None` if it is not one of this library."""
        value = item.value
        try:
            return cls(
                item.key,
                item.version,
                tuple(value["namespace"]),
                value["thread"],
                value["messages"],
                Cursor.from_value(value["cursor"]),
                value["attempts"],
                value["lease"],
                value.get("queued_at"),
                value.get("agent"),
                value.get("context"),
                value.get("asked", False),
            )
        except (KeyError, TypeError) as error:
            emit("memory.queue_unreadable", error=error)
            return None


@dataclass(slots=True)
class Waiting:
    """The jobs of one thread that wait, as far as their names and moments say.

    Attributes:
        keys: Their keys, each with its `characters`.
        queued_at: The moment of the last of them, ISO 8601 in UTC; `None` if unknown.
    """

    keys: dict[str, int] = field(default_factory=dict[str, int])
    queued_at: str | None = None


def sessions_of(jobs: Iterable[Job]) -> list[list[Job]]:
    """Return jobs by their threads; those of a thread stand together."""
    return [list(each) for _, each in groupby(jobs, key=lambda job: job.lane)]


class Outcome(Protocol):
    """The results of jobs, which are written together with their deletion."""

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs that are done; of a thread, oldest first."""
        ...

    async def operations(self) -> Sequence[Put | Delete]:
        """Return the writes, planned on what is stored now; called again if that changed."""
        ...

    def written(self) -> None:
        """Report the results, once they are written."""
        ...
