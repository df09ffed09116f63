"""The consolidation of the facts of a scope by a model, which proposes and never writes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from locus_memory.chat.asking import check_model
from locus_memory.chat.base import ChatModel
from locus_memory.events import emit
from locus_memory.memory.layers.log import LogEntry, log_put
from locus_memory.memory.layers.vitals import written_at
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.ledger.revision import importance_of, read_memory
from locus_memory.memory.models import ORIGIN, Memory, Origin, origin_of
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.asking import text_answer
from locus_memory.memory.tending.proposal import batches, facts_prompt, read_proposal
from locus_memory.memory.tending.pruning import before, pages
from locus_memory.memory.tending.report import FactsChange, FactsReport
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace

if TYPE_CHECKING:
    from locus_memory.memory.manager import LLMMemoryManager

__all__ = ["FactsConsolidation", "consolidate_facts"]


async def consolidate_facts(
    manager: LLMMemoryManager,
    model: ChatModel,
    *,
    scope: Namespace | None = None,
    dry_run: bool = False,
) -> FactsReport:
    """Let a model merge facts that say the same, and retire those that a newer one makes untrue.

    The model sees all facts but those that end by themselves, what a tool told apart from what the
    user said. It proposes changes. One that could lose a fact is refused, with the event
    `memory.facts_refused`; a fact that is not named stays as it is. Each change is in the history,
    and `undo` takes it back.

    Args:
        manager: The manager of the memories.
        model: Any async function from messages to a message.
        scope: The namespace of the facts of one owner; `None`: the manager's own scope if it is
            bound to one, else all scopes below its prefix.
        dry_run: Only report, see `FactsReport.diff`; nothing is written.

    Raises:
        ConfigurationError: The model is not a function.
        BackendError: The store failed; each change is written whole or not at all.
        Exception: Any error of the model.
    """
    return await manager.consolidate_facts(model, scope=scope, dry_run=dry_run)


class FactsConsolidation:
    """The consolidation of facts.

    Args:
        store: The store of the facts.
        ledger: Their ledger.
        model: The model.

    Raises:
        ConfigurationError: The model is not a function.
    """

    def __init__(self, store: BaseStore, ledger: Ledger, model: ChatModel) -> None:
        check_model(model)
        self._store = store
        self._ledger = ledger
        self._model = model

    async def run(
        self,
        scope: Scope,
        now: str,
        *,
        since: str | None = None,
        most: int | None = None,
        dry_run: bool = False,
    ) -> FactsReport:
        """Consolidate the facts of a scope.

        Args:
            scope: The scope.
            now: The present moment, in the format of `Ledger.now`.
            since: The last moment at which a model was asked; it is not asked again, if it was
                shown all facts then, and none was written in the day before or later. `None`: it
                is.
            most: The most calls of the model; `None`: as many as it takes to show it all facts.
            dry_run: Only report; nothing is written.

        Raises:
            BackendError: The store failed; each change is written whole or not at all.
            Exception: Any error of the model.
        """
        items = [item async for page in pages(self._store, scope.current) for item in page]
        oldest = None if since is None else before(since, 1)
        report = FactsReport()
        facts = [memory for item in items if (memory := read_memory(item)) is not None]
        shown = batches(facts, now[:10])
        is_seen = most is None or len(shown) <= most
        if oldest is not None and is_seen and all(item.updated_at < oldest for item in items):
            return report
        for batch in shown[:most]:
            report += await self._tidy(scope, batch, now, dry_run=dry_run)
        return report

    async def _tidy(
        self, scope: Scope, facts: Sequence[Memory], now: str, *, dry_run: bool
    ) -> FactsReport:
        """Ask the model about some facts, and make the changes that are accepted."""
        started, failure = time.monotonic(), None
        try:
            answer = await text_answer(self._model, facts_prompt(facts))
        except BaseException as error:
            failure = type(error).__name__
            raise
        finally:
            if not dry_run:
                took = (time.monotonic() - started) * 1000.0
                entry = LogEntry(
                    kind="facts", at=now, duration_ms=took, ok=failure is None, error=failure
                )
                await self._store.put_batch([log_put(scope, entry)])
        changes, refused = read_proposal(answer, facts)
        for reason in refused:
            emit("memory.facts_refused", reason=reason)
        made = [each for each in changes if dry_run or await self._make(scope, each, facts, now)]
        return FactsReport(asked=len(facts), calls=1, changes=tuple(made), refused=tuple(refused))

    async def _make(
        self, scope: Scope, change: FactsChange, shown: Sequence[Memory], now: str
    ) -> bool:
        """Make a change, unless the fact that stays was changed meanwhile; returns whether it was.

        A fact that would go and was changed meanwhile stays.
        """
        known = {fact.key: fact for fact in shown if fact.type is change.type}
        facts = [known[key] for key in change.keys]
        said_at, origin = written_at(facts[0]) or None, origin_of(facts[0])
        only, *others = (fact.metadata.get("sequence", 1) for fact in facts)
        new = _rewritten(facts, change.after, now)
        if not await self._ledger.apply(scope, [Statement(new, said_at, only)]):
            return False
        edits = [
            Retirement(change.type, key, said_at, number, origin)
            for key, number in zip(change.keys[1:], others, strict=True)
        ]
        await self._ledger.apply(scope, edits)
        return True


def _rewritten(facts: Sequence[Memory], content: str, now: str) -> Memory:
    """Return what the first of some facts becomes."""
    stays = facts[0]
    sources = [
        {"type": fact.type.value, "key": fact.key, "sequence": fact.metadata.get("sequence")}
        for fact in facts
    ]
    metadata = {
        **stays.metadata,
        "importance": max(map(importance_of, facts)),
        "consolidated_at": now,
        "merged_from": sources,
    }
    if Origin.ASSISTANT in map(origin_of, facts):
        metadata[ORIGIN] = Origin.ASSISTANT.value
    return Memory(stays.type, stays.key, content, metadata)
