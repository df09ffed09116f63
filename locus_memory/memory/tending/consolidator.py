"""The consolidator: it decides which scopes are consolidated, one pass at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory.chat.base import ChatModel
from locus_memory.events import emit
from locus_memory.memory.layers.log import LogEntry
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.queue.lease import Lease
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.passes import PassBook, PassRecord
from locus_memory.memory.tending.report import ConsolidationReport, FactsReport
from locus_memory.memory.tending.rewriting import FactsConsolidation
from locus_memory.memory.tending.steps import Steps
from locus_memory.store.base import BaseStore

__all__ = ["Consolidator"]

_CALLS: Final = 3
"""The most calls of a model about the facts of a scope in one pass."""

_LEASE: Final = 3_600.0
"""The seconds of a lease, which is renewed before a model is asked about the facts."""


class Consolidator:
    """A consolidator of the scopes in a store.

    Args:
        store: The store, which this never closes.
        ledger: The ledger of the memories.
        options: The retention.
        clock: Returns seconds since the epoch.
        model: Condenses notes and tidies facts; `None`: neither is done.
    """

    def __init__(
        self,
        store: BaseStore,
        ledger: Ledger,
        options: MemoryOptions,
        *,
        clock: Callable[[], float],
        model: ChatModel | None = None,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._options = options
        self._clock = clock
        self._model = model
        self._passes = PassBook(store)

    async def run(
        self, scopes: Iterable[Scope], now: str, *, dry_run: bool = False
    ) -> ConsolidationReport:
        """Consolidate scopes, one after another; one on which another pass is at work is left out.

        Args:
            scopes: The scopes.
            now: The moment of the pass, in the format of `Ledger.now`.
            dry_run: Only report; nothing is written.

        Raises:
            BackendError: The store failed; another pass finishes what this one began.
        """
        report = ConsolidationReport()
        for scope in scopes:
            report += await self._consolidate(scope, now, dry_run=dry_run)
        if not dry_run:
            emit("memory.consolidated", **report.counts())
        return report

    async def run_due(self, scopes: Iterable[Scope]) -> ConsolidationReport:
        """Consolidate the scopes whose interval is over; the interval of a new one begins now.

        Raises:
            BackendError: The store failed.
        """
        now, due = self._ledger.now(), list[Scope]()
        for scope in scopes:
            record = await self._passes.read(scope)
            if record.ran_at is None:
                await self._passes.note(scope, now)
            elif record.is_due(now):
                due.append(scope)
        return await self.run(due, now) if due else ConsolidationReport()

    async def _consolidate(self, scope: Scope, now: str, *, dry_run: bool) -> ConsolidationReport:
        started = time.monotonic()
        record = await self._passes.read(scope)
        if dry_run:
            done = await self._steps(scope, now, dry_run=True).run()
            facts = await self._facts(scope, record, now, dry_run=True)
        else:
            with Lease(self._clock() + _LEASE) as lease:
                taken = await self._passes.take(scope, record, lease, self._clock())
                if taken is None:
                    return ConsolidationReport(busy=1)
                done, facts = await self._under(lease, scope, taken, now)
        took = (time.monotonic() - started) * 1000.0
        return replace(done, facts=facts, scopes=1, duration_ms=took)

    async def _under(
        self, lease: Lease, scope: Scope, record: PassRecord, now: str
    ) -> tuple[ConsolidationReport, tuple[FactsReport, ...]]:
        """Make a pass under a lease, which ends with it."""
        started = time.monotonic()
        try:
            done = await self._steps(scope, now).run()
            # A model may take long.
            lease.until = self._clock() + _LEASE
            renewed = await self._passes.take(scope, record, lease, self._clock())
            record = record if renewed is None else renewed
            facts = await self._facts(scope, record, now)
        except BaseException:
            await self._passes.give_back(scope, record)
            raise
        if facts:
            record = replace(record, facts_at=now)
        took = (time.monotonic() - started) * 1000.0
        entry = LogEntry(kind="consolidate", at=now, duration_ms=took)
        await self._passes.finish(scope, replace(record, ran_at=now), entry)
        return done, facts

    def _steps(self, scope: Scope, now: str, *, dry_run: bool = False) -> Steps:
        return Steps(
            self._store,
            self._ledger,
            scope,
            self._options,
            now=now,
            model=self._model,
            dry_run=dry_run,
        )

    async def _facts(
        self, scope: Scope, record: PassRecord, now: str, *, dry_run: bool = False
    ) -> tuple[FactsReport, ...]:
        """Ask the model about the facts, at most once a day; a failure is an event."""
        if self._model is None or not record.asks_model(now):
            return ()
        work = FactsConsolidation(self._store, self._ledger, self._model)
        try:
            since, most = record.facts_at, _CALLS
            return (await work.run(scope, now, since=since, most=most, dry_run=dry_run),)
        except Exception as error:  # noqa: BLE001 - reported; the pass itself is done
            raise_if_cancelled(error)
            emit("memory.facts_failed", error=error)
            return ()
