"""The consolidation of the memories of one manager, on demand and on schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import Any, Final, cast

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory._internal.running.lease import Lease
from locus_memory._internal.running.schedule import Schedule
from locus_memory.chat.asking import check_model
from locus_memory.chat.base import ChatModel
from locus_memory.errors import BackendError
from locus_memory.events import emit
from locus_memory.memory.layers.log import LogEntry, log_put, timed
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.passes import (
    Pass,
    PassRecord,
    is_over,
    read_record,
    write_record,
)
from locus_memory.memory.tending.report import ConsolidationReport, FactsReport
from locus_memory.memory.tending.rewriting import tidy_facts
from locus_memory.memory.tending.scopes import scopes_below
from locus_memory.memory.tending.steps import make_steps
from locus_memory.memory.validity import Moment, moment_in
from locus_memory.store.item import Put

__all__ = ["Tender", "model_of"]


def model_of(extractor: object) -> ChatModel | None:
    """Return the model of an extractor that calls one; `None` if it has no use for instructions."""
    model: Any = getattr(extractor, "model", None)
    if not callable(model) or not getattr(model, "follows_instructions", True):
        return None
    return cast("ChatModel", model)


_HOURS: Final = 24.0
"""The hours between two consolidations of a scope."""

_CALLS: Final = 3
"""The most calls of a model about the facts of a scope in one pass."""

_LEASE: Final = 3_600.0
"""The seconds of a lease, which is renewed before a model is asked about the facts."""


class Tender:
    """The consolidation of the scopes below a prefix.

    Args:
        work: A pass over the scope of the prefix: what all passes have in common.
        resolved: Whether a function decides where the scopes are.
        clock: Returns seconds since the epoch.

    Attributes:
        schedule: Consolidates in the background what is due.
    """

    def __init__(self, work: Pass, *, resolved: bool, clock: Callable[[], float]) -> None:
        self._work = work
        self._clock = clock
        prefix = work.scope.namespace
        self._all_scopes = partial(scopes_below, work.store, prefix, resolved=resolved)
        self.schedule = Schedule(self._run_due, clock, _HOURS, failed=_report)

    async def consolidate(
        self, scope: Scope | None, now: Moment | None, *, dry_run: bool
    ) -> ConsolidationReport:
        """Consolidate a scope, or with `None` all of them; see `LLMMemoryManager.consolidate`."""
        told = self._work.ledger.now() if now is None else now
        moment = moment_in(told, UTC, "now").isoformat(timespec="microseconds")
        return await self._run(await self._scopes(scope), moment, dry_run=dry_run)

    async def consolidate_facts(
        self, scope: Scope | None, model: ChatModel, *, dry_run: bool
    ) -> FactsReport:
        """Consolidate the facts of a scope, or with `None` of all; see `consolidate_facts`."""
        check_model(model)
        report = FactsReport()
        for each in await self._scopes(scope):
            now = self._work.ledger.now()
            work = replace(self._work, scope=each, now=now, model=model, dry_run=dry_run)
            report += await tidy_facts(work, model)
        return report

    async def _scopes(self, scope: Scope | None) -> list[Scope]:
        return await self._all_scopes() if scope is None else [scope]

    async def _run_due(self) -> None:
        """Consolidate the scopes whose interval is over; the interval of a new one begins now."""
        now, due = self._work.ledger.now(), list[Scope]()
        for scope in await self._all_scopes():
            record = await read_record(self._work.store, scope)
            if not record.version:
                await write_record(self._work.store, scope, PassRecord(ran_at=now))
            elif is_over(record.ran_at, now):
                due.append(scope)
        if due:
            await self._run(due, now)

    async def _run(
        self, scopes: Iterable[Scope], now: str, *, dry_run: bool = False
    ) -> ConsolidationReport:
        """Consolidate scopes, one after another; one on which another pass is at work is left out.

        Raises:
            BackendError: The store failed; another pass finishes what this one began.
        """
        report = ConsolidationReport()
        for scope in scopes:
            work = replace(self._work, scope=scope, now=now, dry_run=dry_run)
            report += await self._consolidate(work)
        if not dry_run:
            emit("memory.consolidated", **report.counts())
        return report

    async def _consolidate(self, work: Pass) -> ConsolidationReport:
        """Make a pass, unless another process is at work on the scope."""
        record = await read_record(self._work.store, work.scope)
        with Lease(self._clock() + _LEASE) as lease:
            is_free = work.dry_run or not Lease.holds(record.lease, self._clock())
            taken = await self._hold(work, record, lease) if is_free else None
            if taken is None:
                return ConsolidationReport(busy=1)
            return await self._under(lease, work, taken)

    async def _under(self, lease: Lease, work: Pass, record: PassRecord) -> ConsolidationReport:
        """Make a pass; the right to it is given back, whatever happens."""
        entries: list[LogEntry] = []
        try:
            with timed("consolidate", work.now, entries.append):
                done = await make_steps(work)
                record = await self._hold(work, record, lease) or record
                facts = await self._facts(work, record)
        except BaseException:
            with suppress(BackendError):
                await self._write(work, replace(record, lease=None))
            raise
        facts_at = work.now if facts else record.facts_at
        record = replace(record, lease=None, ran_at=work.now, facts_at=facts_at)
        [entry] = entries
        await self._write(work, record, log_put(work.scope, entry))
        return replace(done, facts=facts, scopes=1, duration_ms=entry.duration_ms)

    async def _hold(self, work: Pass, record: PassRecord, lease: Lease) -> PassRecord | None:
        """Take the right to a pass, or prolong it; `None`: another process was faster."""
        lease.until = self._clock() + _LEASE
        return await self._write(work, replace(record, lease=lease.to_value()))

    async def _write(self, work: Pass, record: PassRecord, *more: Put) -> PassRecord | None:
        """Write the record of a pass, but in a dry run."""
        return (
            record
            if work.dry_run
            else await write_record(self._work.store, work.scope, record, *more)
        )

    async def _facts(self, work: Pass, record: PassRecord) -> tuple[FactsReport, ...]:
        """Ask the model about the facts, at most once a day; a failure is an event."""
        if work.model is None or not is_over(record.facts_at, work.now):
            return ()
        try:
            return (await tidy_facts(work, work.model, since=record.facts_at, most=_CALLS),)
        except Exception as error:  # noqa: BLE001 - reported; the pass itself is done
            raise_if_cancelled(error)
            emit("memory.facts_failed", error=error)
            return ()


def _report(error: Exception) -> None:
    emit("memory.consolidate_failed", error=error)
