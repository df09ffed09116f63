"""The work after a recall: counts of what was recalled, and entries of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from locus_memory.events import emit, uncollected
from locus_memory.memory.layers.log import LogEntry, log_put
from locus_memory.memory.layers.vitals import Vitals, VitalsBook
from locus_memory.memory.models import Memory, has_authority
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore

__all__ = ["Afterwards"]

_PAUSE: Final = 0.25
"""Seconds until what was shown is counted: the model works meanwhile, and the turn does not wait
for the database behind a count. The turns of that time are counted together."""

_Use = tuple[str, str]
"""The moment and the thread of a use."""


class Afterwards:
    """Writes in background tasks, which a manager awaits before it closes.

    A failure is an event; what a crash interrupts is lost.

    Args:
        store: The store. A count changes nothing that is shown, so it is not a watched one.
        now: Returns the present moment, ISO 8601 in UTC.
    """

    def __init__(self, store: BaseStore, now: Callable[[], str]) -> None:
        self._store = store
        self._vitals = VitalsBook(store)
        self._now = now
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[Scope, list[tuple[_Use, tuple[str, ...]]]] = {}
        self._timers: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[None]]
        self._timers = WeakKeyDictionary()
        self._lock = Lock()

    def count_uses(self, scope: Scope, recalled: Iterable[str], thread: str) -> None:
        """Count a use of each memory that was recalled, a moment later, in one batch.

        Args:
            scope: The scope of the memories.
            recalled: Their names, see `current_key`.
            thread: The thread that recalled them.
        """
        names = tuple(dict.fromkeys(recalled))
        if not names:
            return
        use = self._now(), thread
        with self._lock:
            self._waiting.setdefault(scope, []).append((use, names))
        self._count_soon()

    def log(self, scope: Scope, entry: LogEntry) -> None:
        """Add an entry to the log of a scope."""
        self.later(self._store.put_batch([log_put(scope, entry)]))

    def later(self, work: Coroutine[Any, Any, object]) -> None:
        """Do some work that no run waits for; a failure is an event."""
        self._start(_reported(work))

    async def wait(self) -> None:
        """Count what was shown, and wait for the tasks of this event loop.

        Those of a loop that ended never continue.
        """
        loop = asyncio.get_running_loop()
        timer = self._timers.pop(loop, None)
        if timer is not None:
            timer.cancel()
        while mine := self._of(loop):
            await asyncio.wait(mine)
            self._tasks.difference_update(mine)
        await self._count()

    def _of(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[None]]:
        return [task for task in self._tasks if task.get_loop() is loop]

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="locus-memory-afterwards", context=uncollected())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _count_soon(self) -> None:
        loop = asyncio.get_running_loop()
        if loop not in self._timers:
            # A task, which a loop that ends cancels.
            self._timers[loop] = asyncio.create_task(self._pause(loop), context=uncollected())

    async def _pause(self, loop: asyncio.AbstractEventLoop) -> None:
        await asyncio.sleep(_PAUSE)
        while self._of(loop):  # noqa: ASYNC110 - none of them knows when the last one ends
            # The database is slow: two counts at a time would only be in each other's way.
            await asyncio.sleep(_PAUSE)
        self._timers.pop(loop, None)
        self._start(self._count())

    async def _count(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for scope, uses in waiting.items():
            changes = {name: partial(_used, each) for name, each in _by_name(uses).items()}
            try:
                await self._vitals.change(scope, changes)
            except Exception as error:  # noqa: BLE001 - reported; not worth a failed run
                emit("memory.count_failed", error=error)


async def _reported(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - reported; an entry is not worth a failed run
        emit("memory.log_failed", error=error)


def _by_name(counted: Iterable[tuple[_Use, Iterable[str]]]) -> dict[str, list[_Use]]:
    """Return the uses of each memory, in order."""
    found: dict[str, list[_Use]] = {}
    for use, names in counted:
        for name in names:
            found.setdefault(name, []).append(use)
    return found


def _used(uses: Sequence[_Use], memory: Memory, vitals: Vitals) -> Vitals:
    trains = has_authority(memory)
    for now, thread in uses:
        vitals = vitals.used(now, thread, trains=trains)
    return vitals
