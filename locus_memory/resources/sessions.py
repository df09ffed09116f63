"""Commits of sessions: an archive of what was said, and memories taken from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from locus_memory._internal.offload import in_thread
from locus_memory._internal.running.retrying import until_first
from locus_memory.errors import MemoryExtractionFailed
from locus_memory.events import Event, emit, subscribe
from locus_memory.memory.extraction.thread import Cursor, text_of
from locus_memory.memory.layers.records import record_of, value_of
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.queue.turns import said_messages
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.resources.operations import (
    MemoryOpCommit,
)
from locus_memory.resources.storing.nodes import prepared
from locus_memory.resources.storing.places import Path
from locus_memory.resources.storing.plans import Plans
from locus_memory.resources.uri import MemoryURI, as_uri
from locus_memory.store.base import write_together
from locus_memory.store.item import Put

__all__ = ["SESSIONS", "Fact", "SessionRecord", "Sessions", "dropped"]

Fact = tuple[str, str, str]

SESSIONS: Final = "sessions"
"""The top folder of the archives."""

_Spoken = tuple[str, str | None]
"""The role and the text of a message as it is archived; `None`: it looks like it holds a secret."""

_MOST_USED: Final = 200
_MOST_SAID: Final = 3
_LONGEST_SAID: Final = 1_000
_LEFT_OUT: Final = "(left out, since it looks like a secret)"


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What is known of a committed session.

    Attributes:
        cursor: How much of it is archived.
        said: The last three messages of the user.
        used: The URIs of the entries that helped.
    """

    cursor: Cursor = field(default_factory=Cursor)
    said: tuple[str, ...] = ()
    used: tuple[str, ...] = ()


class Sessions:
    """The archives of one tree.

    Args:
        plans: The plans of the tree.
        manager: Returns the memory manager that extracts.
        now: Returns the moment, UTC.
    """

    def __init__(
        self,
        plans: Plans,
        manager: Callable[[], LLMMemoryManager],
        now: Callable[[], datetime],
    ) -> None:
        self._plans = plans
        self._manager = manager
        self._now = now

    async def record(self, session_id: str) -> tuple[SessionRecord, int]:
        """Return what is known of a session, and the version of its item; 0: nothing."""
        places = self._plans.places
        item = await self._plans.store.get_item(places.sessions, session_id)
        if item is None:
            return SessionRecord(), 0
        return record_of(SessionRecord, item.value), item.version

    async def commit(self, op: MemoryOpCommit) -> Path | None:
        """Archive what is new in a session, and queue it for extraction.

        The queue comes first: a process that ends between both leaves messages that are extracted
        and are still to be archived, and the next commit archives them.

        Returns:
            The path of the archive; `None` if nothing is new.

        Raises:
            InvalidArgumentError: The messages are not messages, the session's id is no segment of
                a URI, or what was used is no URI.
            BackendError: The store failed; commit again.
        """
        # Before anything is queued.
        MemoryURI((SESSIONS, op.session_id))
        given = [op.used_uris] if isinstance(op.used_uris, str) else op.used_uris
        # As a search has them.
        used = [str(as_uri(each)) for each in given]
        said = said_messages(op.messages)
        await self._manager().add(said, thread_id=op.session_id)
        return await until_first(lambda: self._archived(op, said, used))

    async def _archived(
        self, op: MemoryOpCommit, said: Sequence[Any], uris: Sequence[str]
    ) -> Path | None:
        known, version = await self.record(op.session_id)
        start, before = known.cursor.unseen(said)
        new = said[start:]
        used = tuple(dict.fromkeys((*known.used, *uris)))[-_MOST_USED:]
        if not new and used == known.used:
            return None
        spoken = await in_thread(_spoken, new)
        now_said = (*known.said, *_of_user(spoken))[-_MOST_SAID:]
        session = SessionRecord(known.cursor.after(said, start, before), now_said, used)
        cursor = Put(
            namespace=self._plans.places.sessions,
            key=op.session_id,
            value=value_of(session),
            if_version=version,
            text="",
        )
        if not new:
            await write_together(self._plans.store, [cursor])
            return None
        now = self._now()
        at = now.isoformat(timespec="microseconds")
        path = await self._free(op.session_id, now.strftime("%Y%m%dT%H%M%S.%fZ"))
        text = await prepared(transcript(spoken), path[-1])
        _, operations = await self._plans.put(path, None, text, {"session": op.session_id}, at)
        await write_together(self._plans.store, [*operations, cursor])
        return path

    async def _free(self, session_id: str, time: str) -> Path:
        """Return a path that nothing has: the clock may stand still."""
        path, count = (SESSIONS, session_id, time), 1
        while await self._plans.item(path) is not None:
            count += 1
            path = (SESSIONS, session_id, f"{time}-{count}")
        return path

    async def extracted(
        self, session_id: str, before: Collection[Fact], given_up: Collection[Event]
    ) -> int:
        """Extract now; returns how many memories of the session were written since.

        Args:
            session_id: The session.
            before: What `facts` returned before the commit.
            given_up: What `dropped` collects since before the commit.

        Raises:
            MemoryExtractionFailed: Messages still wait, since the extractor failed, or it failed
                too often, and they are given up.
        """
        waiting = await self._manager().sync_now()
        if given_up:
            raise MemoryExtractionFailed(
                "the session is archived, and the extractor failed too often: its messages are"
                " given up"
            )
        if waiting:
            raise MemoryExtractionFailed(
                "the session is archived, and the extractor failed: commit it again"
            )
        return len(await self.facts(session_id) - set(before))

    async def facts(self, session_id: str) -> set[Fact]:
        """Return the type, the key and the content of each memory of a session."""
        return {
            (memory.type.value, memory.key, memory.content)
            async for memory in self._manager().memories()
            if memory.metadata.get("thread_id") == session_id
        }


@contextmanager
def dropped(session_id: str) -> Generator[list[Event]]:
    """Collect the events that messages of a session are given up, whichever task does it."""
    found: list[Event] = []

    def note(event: Event) -> None:
        if event.name == "memory.extract_dropped" and event.attributes["thread"] == session_id:
            found.append(event)

    unsubscribe = subscribe(note)
    try:
        yield found
    finally:
        unsubscribe()


def transcript(messages: Sequence[_Spoken]) -> str:
    """Return messages as Markdown, a paragraph each."""
    return "\n\n".join(
        f"**{role}**: {_LEFT_OUT if text is None else text}" for role, text in messages
    )


def _spoken(messages: Sequence[Any]) -> list[_Spoken]:
    """Return messages as they are archived: secrets are left out, as memories leave them out."""
    found: list[_Spoken] = []
    for message in messages:
        # Half characters, which no database can store, become question marks.
        text = text_of(message).encode("utf-8", "replace").decode()
        kind = find_secret(text)
        if kind is not None:
            emit("memory.secret_dropped", type="archive", kind=kind)
        found.append((str(message.role), None if kind else text))
    return found


def _of_user(messages: Sequence[_Spoken]) -> list[str]:
    texts = [text or "" for role, text in messages if role == "user"]
    return [text[:_LONGEST_SAID] for text in texts if text.strip()]
