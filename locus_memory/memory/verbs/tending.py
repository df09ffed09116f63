"""The consolidation of the memories of a manager, on demand and on schedule."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from typing import Final

from typing_extensions import override

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory._internal.running.lease import Lease
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
from locus_memory.memory.verbs.single import SingleMemories
from locus_memory.store.item import Namespace, Put

__all__ = ["TendingVerbs"]

_CALLS: Final = 3
"""The most calls of a model about the facts of a scope in one pass."""

_LEASE: Final = 3_600.0
"""The seconds of a lease, which is renewed before a model is asked about the facts."""


class TendingVerbs(SingleMemories):
    """The part of a memory manager that consolidates the memories of its scopes."""

    async def consolidate(
        self,
        now: Moment | None = None,
        *,
        dry_run: bool = False,
    ) -> ConsolidationReport:
        """End what has expired, and erase what is too old.

        It is done in the scope that this manager is bound to, or else in all scopes below
        `namespace_prefix`, those of users included. Expired facts move to the history, from which
        `undo` brings them back. Episodes, transcripts and log entries older than their retention
        are erased. If the extractor calls a model, it condenses the oldest notes, and once a day
        tidies the facts, see `consolidate_facts`.

        Args:
            now: The moment; `None`: the present one.
            dry_run: Only report; nothing is written.

        Raises:
            InvalidArgumentError: `now` is not a moment.
            BackendError: The store failed; call it again.
        """
        told = self._ledger.now() if now is None else now
        moment = moment_in(told, UTC, "now").isoformat(timespec="microseconds")
        scopes = [self._scope] if self._bound else await self._all_scopes()
        return await self._run(scopes, moment, dry_run=dry_run)

    async def consolidate_facts(
        self,
        model: ChatModel,
        *,
        scope: Namespace | None = None,
        dry_run: bool = False,
    ) -> FactsReport:
        """Let a model tidy the facts; see `locus_memory.memory.consolidate_facts`."""
        check_model(model)
        owner = self._scope if scope is None else Scope(scope)
        is_one = self._bound or scope is not None
        report = FactsReport()
        for each in [owner] if is_one else await self._all_scopes():
            work = self._pass(each, self._ledger.now(), model, dry_run=dry_run)
            report += await tidy_facts(work, model)
        return report

    async def _all_scopes(self) -> list[Scope]:
        resolved = self._resolver is not None
        return await scopes_below(self._store, self.namespace_prefix, resolved=resolved)

    def _pass(self, scope: Scope, now: str, model: ChatModel | None, *, dry_run: bool) -> Pass:
        return Pass(
            store=self._store,
            ledger=self._ledger,
            options=self._options,
            scope=scope,
            now=now,
            model=model,
            dry_run=dry_run,
        )

    @override
    async def _run_due(self) -> None:
        """Consolidate the scopes whose interval is over; the interval of a new one begins now."""
        now, due = self._ledger.now(), list[Scope]()
        for scope in await self._all_scopes():
            record = await read_record(self._store, scope)
            if not record.version:
                await write_record(self._store, scope, PassRecord(ran_at=now))
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
            work = self._pass(scope, now, self._model, dry_run=dry_run)
            report += await self._consolidate(work)
        if not dry_run:
            emit("memory.consolidated", **report.counts())
        return report

    async def _consolidate(self, work: Pass) -> ConsolidationReport:
        """Make a pass, unless another process is at work on the scope."""
        record = await read_record(self._store, work.scope)
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
            record if work.dry_run else await write_record(self._store, work.scope, record, *more)
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
