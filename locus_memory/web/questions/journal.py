"""The journal: the newest events of this process, for a list and for a stream."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field

from locus_memory._internal.quoting import quote
from locus_memory.events import Event, subscribe
from locus_memory.web.models import Answer, Asked, Limit

__all__ = ["EventEntry", "EventsAsked", "EventsPage", "Journal"]

_KEPT: Final = 1_000

_PLAIN = (str, int, float, bool, type(None))


class EventEntry(Answer):
    """An event of the library."""

    id: int
    """Its number in this process, from 1."""
    at: datetime
    name: str
    """A dotted name, such as `memory.duplicate_dropped`."""
    attributes: dict[str, Any]
    """Facts about it; never a stored value or a password."""
    error: str | None
    """The class of the error that was survived."""


class EventsAsked(Asked):
    """Which events to return."""

    after: int = Field(default=0, ge=0)
    """Only events with a higher number."""
    limit: Limit = 100


class EventsPage(Answer):
    """The newest events of the process that serves the request, oldest first."""

    events: list[EventEntry]


class Journal:
    """The newest 1,000 events since it was opened. Any thread may emit; one event loop reads."""

    def __init__(self) -> None:
        self._entries: deque[EventEntry] = deque(maxlen=_KEPT)
        # Garbage collection may emit an event meanwhile.
        self._lock = threading.RLock()
        self._is_stopped = False
        self._count = 0
        self._readers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._unsubscribe = _nothing

    @property
    def readers(self) -> int:
        """How many streams follow the events."""
        return len(self._readers)

    def open(self) -> None:
        """Take note of events from now on."""
        self._unsubscribe = subscribe(self._note)

    def stop(self) -> None:
        """End the streams, so that a server that stops need not wait for them."""
        self._is_stopped = True
        self._wake()

    def close(self) -> None:
        """Take note of no more events."""
        self.stop()
        self._unsubscribe()

    def page(self, after: int, limit: int) -> list[EventEntry]:
        """Return the newest entries with a higher number, oldest first."""
        with self._lock:
            return [each for each in self._entries if each.id > after][-limit:]

    async def follow(self, after: int, patience: float) -> AsyncGenerator[EventEntry | None]:
        """Yield entries with a higher number as they come, and `None` if none comes for a while.

        Args:
            after: The number of the last known entry.
            patience: Seconds to wait for an entry.
        """
        woken = asyncio.Event()
        with self._lock:
            self._readers[woken] = asyncio.get_running_loop()
            # A number of an earlier process means nothing here.
            after = after if after <= self._count else 0
        try:
            while not self._is_stopped:
                woken.clear()
                for entry in self.page(after, _KEPT):
                    after = entry.id
                    yield entry
                try:
                    await asyncio.wait_for(woken.wait(), patience)
                except TimeoutError:
                    yield None
        finally:
            with self._lock:
                self._readers.pop(woken, None)

    def _note(self, event: Event) -> None:
        attributes = {name: _plain(value) for name, value in event.attributes.items()}
        error = None if event.error is None else type(event.error).__name__
        with self._lock:
            self._count += 1
            self._entries.append(
                EventEntry(
                    id=self._count,
                    at=datetime.now(UTC),
                    name=event.name,
                    attributes=attributes,
                    error=error,
                )
            )
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            readers = list(self._readers.items())
        for woken, loop in readers:
            if not loop.is_closed():
                loop.call_soon_threadsafe(woken.set)


def _plain(value: Any) -> Any:
    return value if isinstance(value, _PLAIN) else quote(value)


def _nothing() -> None:
    return None
