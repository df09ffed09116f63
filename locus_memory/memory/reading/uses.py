"""The work after a recall: counts of what was recalled, and records of what was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from locus_memory._internal.running.background import BackgroundTasks
from locus_memory.events import emit
from locus_memory.memory.layers.log import LogEntry, write_log
from locus_memory.memory.layers.vitals import VitalsBook, VitalsChange
from locus_memory.memory.models import has_authority
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore

__all__ = ["Afterwards", "report_log"]


class Afterwards(BackgroundTasks):
    """Writes in background tasks, which a manager awaits before it closes.

    A failure is an event; what a crash interrupts is lost.

    Args:
        store: The store. A count changes nothing that is shown, so it is not a watched one.
        now: Returns the present moment, ISO 8601 in UTC.
    """

    def __init__(self, store: BaseStore, now: Callable[[], str]) -> None:
        super().__init__()
        self._store = store
        self._vitals = VitalsBook(store)
        self._now = now

    def count_uses(self, scope: Scope, recalled: Iterable[str], thread: str) -> None:
        """Count a use of each memory that was recalled.

        Args:
            scope: The scope of the memories.
            recalled: Their names, see `current_key`.
            thread: The thread that recalled them.
        """
        now = self._now()
        changes: dict[str, VitalsChange] = dict.fromkeys(
            recalled, lambda memory, told: told.used(now, thread, trains=has_authority(memory))
        )
        if changes:
            self.later(self._vitals.change(scope, changes), _report_count)

    def log(self, scope: Scope, entry: LogEntry) -> None:
        """Write an entry to the log of a scope."""
        self.later(write_log(self._store, scope, [entry]), report_log)

    def later(
        self, work: Coroutine[Any, Any, object], failed: Callable[[Exception], None]
    ) -> asyncio.Task[None]:
        """Do some work that no run waits for.

        Args:
            work: The work.
            failed: Reports an error.
        """
        return self.start(_reported(work, failed))


async def _reported(work: Coroutine[Any, Any, object], failed: Callable[[Exception], None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - reported; not worth a failed run
        failed(error)


def report_log(error: Exception) -> None:
    """Report that a record of what happened was not written."""
    emit("memory.log_failed", error=error)


def _report_count(error: Exception) -> None:
    emit("memory.count_failed", error=error)
