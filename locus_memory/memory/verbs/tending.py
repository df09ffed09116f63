"""The consolidation of the memories of a manager, on demand and on schedule."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from functools import partial
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
from locus_memory.memory.tending.facts import tidy_facts
from locus_memory.memory.tending.passes import (
    LEASE,
    Pass,
    PassRecord,
    is_over,
    make_steps,
    scopes_below,
)
from locus_memory.memory.tending.report import ConsolidationReport, FactsReport
from locus_memory.memory.validity import Moment, moment_in
from locus_memory.memory.verbs.single import SingleMemories
from locus_memory.store.item import Namespace

__all__ = ["TendingVerbs"]

_CALLS: Final = 3
"""The most calls of a model about the facts of a scope in one pass."""


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
        work = partial(self._pass, now=moment, model=self._model, dry_run=dry_run)
        report = await _all_made(work(scope=each) for each in scopes)
        if not dry_run:
            emit("memory.consolidated", **report.counts())
        return report

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
            now = self._ledger.now()
            work = self._pass(scope=each, now=now, model=model, dry_run=dry_run)
            report += await tidy_facts(work, model)
        return report

    async def _all_scopes(self) -> list[Scope]:
        resolved = self._resolver is not None
        return await scopes_below(self._store, self.namespace_prefix, resolved=resolved)

    @override
    async def _run_due(self) -> None:
        """Consolidate the scopes whose interval is over; the interval of a new one begins now."""
        work = partial(self._pass, now=self._ledger.now(), model=self._model)
        passes = [work(scope=each) for each in await self._all_scopes()]
        due = [each for each in passes if await each.is_due()]
        if due:
            emit("memory.consolidated", **(await _all_made(due)).counts())


async def _all_made(passes: Iterable[Pass]) -> ConsolidationReport:
    """Make passes, one after another; a scope on which another one is at work is left out.

    Raises:
        BackendError: The store failed; another pass finishes what this one began.
    """
    return sum([await _made(each) for each in passes], ConsolidationReport())


async def _made(work: Pass) -> ConsolidationReport:
    """Make a pass, unless another process is at work on the scope."""
    record = await work.record()
    with Lease(work.clock() + LEASE) as lease:
        is_free = work.dry_run or not Lease.holds(record.lease, work.clock())
        taken = await work.write(record, lease=lease) if is_free else None
        return ConsolidationReport(busy=1) if taken is None else await _under(lease, work, taken)


async def _under(lease: Lease, work: Pass, record: PassRecord) -> ConsolidationReport:
    """Make a pass; the right to it is given back, whatever happens."""
    entries: list[LogEntry] = []
    try:
        with timed("consolidate", work.now, entries.append):
            done = await make_steps(work)
            record = await work.write(record, lease=lease) or record
            facts = await _facts(work, record)
    except BaseException:
        with suppress(BackendError):
            await work.write(record)
        raise
    [entry] = entries
    record = replace(record, ran_at=work.now, facts_at=work.now if facts else record.facts_at)
    await work.write(record, log_put(work.scope, entry))
    return replace(done, facts=facts, scopes=1, duration_ms=entry.duration_ms)


async def _facts(work: Pass, record: PassRecord) -> tuple[FactsReport, ...]:
    """Ask the model about the facts, at most once a day; a failure is an event."""
    if work.model is None or not is_over(record.facts_at, work.now):
        return ()
    try:
        return (await tidy_facts(work, work.model, since=record.facts_at, most=_CALLS),)
    except Exception as error:  # noqa: BLE001 - reported; the pass itself is done
        raise_if_cancelled(error)
        emit("memory.facts_failed", error=error)
        return ()
