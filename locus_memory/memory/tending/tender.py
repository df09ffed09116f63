"""The consolidation of the memories of one manager, on demand and on schedule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, cast

from locus_memory._internal.quoting import quote
from locus_memory.chat.base import ChatModel
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.moments import as_moment
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.consolidator import Consolidator
from locus_memory.memory.tending.report import ConsolidationReport, FactsReport
from locus_memory.memory.tending.rewriting import FactsConsolidation
from locus_memory.memory.tending.schedule import Schedule
from locus_memory.memory.tending.scopes import scopes_below
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, timestamp

__all__ = ["Moment", "Tender", "model_of"]

Moment = datetime | float | str
"""A moment: a datetime, seconds since the epoch, or an ISO 8601 text; without a zone, UTC."""


def model_of(extractor: object) -> ChatModel | None:
    """Return the model of an extractor that calls one; `None` if it has no use for instructions."""
    model: Any = getattr(extractor, "model", None)
    if not callable(model) or not getattr(model, "follows_instructions", True):
        return None
    return cast("ChatModel", model)


_HOURS: Final = 24.0
"""The hours between two consolidations of a scope."""


class Tender:
    """The consolidation of the scopes below a prefix.

    Args:
        store: The store, which this never closes.
        ledger: The ledger of the memories.
        options: The retention, and whether nothing is done unasked.
        prefix: The prefix of the scopes.
        resolved: Whether a `namespace_resolver` decides where the scopes are.
        clock: Returns seconds since the epoch.
        model: Condenses notes and tidies facts; `None`: neither is done.
    """

    def __init__(
        self,
        store: BaseStore,
        ledger: Ledger,
        options: MemoryOptions,
        *,
        prefix: Namespace,
        resolved: bool,
        clock: Callable[[], float],
        model: ChatModel | None,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._prefix = prefix
        self._resolved = resolved
        self._consolidator = Consolidator(store, ledger, options, clock=clock, model=model)
        self._is_manual = options.extract_mode == "manual"
        self._schedule = Schedule(self._run_due, clock, _HOURS)

    async def consolidate(
        self, scope: Scope | None, now: Moment | None, *, dry_run: bool
    ) -> ConsolidationReport:
        """Consolidate a scope, or with `None` all of them; see `LLMMemoryManager.consolidate`."""
        moment = self._ledger.now() if now is None else _as_text(now)
        return await self._consolidator.run(await self._scopes(scope), moment, dry_run=dry_run)

    async def consolidate_facts(
        self, scope: Scope | None, model: ChatModel, *, dry_run: bool
    ) -> FactsReport:
        """Consolidate the facts of a scope, or with `None` of all; see `consolidate_facts`."""
        work = FactsConsolidation(self._store, self._ledger, model)
        report = FactsReport()
        for each in await self._scopes(scope):
            report += await work.run(each, self._ledger.now(), dry_run=dry_run)
        return report

    def touch(self) -> None:
        """Consolidate in the background if it is time and the options say so."""
        if not self._is_manual:
            self._schedule.touch()

    async def wait(self) -> None:
        """Wait for the consolidation in the background, if one is in progress."""
        await self._schedule.wait()

    async def close(self) -> None:
        """End the consolidation in the background; the next process finishes it."""
        await self._schedule.close()

    async def _run_due(self) -> None:
        await self._consolidator.run_due(await self._scopes(None))

    async def _scopes(self, scope: Scope | None) -> list[Scope]:
        if scope is not None:
            return [scope]
        return await scopes_below(self._store, self._prefix, resolved=self._resolved)


def _as_text(moment: object) -> str:
    """Return a moment in the format of `Ledger.now`.

    Raises:
        InvalidArgumentError: It is not a moment.
    """
    is_number = isinstance(moment, int | float) and not isinstance(moment, bool)
    read = _of_seconds(moment) if is_number else as_moment(moment)
    if read is None:
        raise InvalidArgumentError(
            f"now is a datetime, seconds since the epoch or an ISO 8601 text, not {quote(moment)}"
        )
    return read.isoformat(timespec="microseconds")


def _of_seconds(seconds: Any) -> datetime | None:
    try:
        return timestamp(seconds)
    except (OverflowError, OSError, ValueError):
        return None
