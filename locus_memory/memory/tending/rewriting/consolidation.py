"""The consolidation of the facts of a scope by a model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory._internal.offload import in_thread
from locus_memory.chat.asking import check_model
from locus_memory.chat.base import ChatModel
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.layers.log import LogEntry, log_put
from locus_memory.memory.layers.vitals import Vitals, VitalsBook, written_at
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.ledger.likeness import same_content
from locus_memory.memory.ledger.revision import importance_of, read_memory
from locus_memory.memory.models import ORIGIN, Memory, MemoryType, Origin, has_authority, origin_of
from locus_memory.memory.options import check_whole
from locus_memory.memory.scope import Scope, current_key
from locus_memory.memory.tending.narrative import text_answer
from locus_memory.memory.tending.pruning import pages
from locus_memory.memory.tending.rewriting.groups import (
    Call,
    Pair,
    calls,
    near_vectors,
    word_pairs,
)
from locus_memory.memory.tending.rewriting.prompt import prompt
from locus_memory.memory.tending.rewriting.proposal import Operation, Proposal, read_proposal
from locus_memory.memory.tending.rewriting.report import FactsChange, FactsReport
from locus_memory.memory.tending.words import content_words
from locus_memory.retrieval.embedders.marks import mark_of
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Namespace, StoreItem

if TYPE_CHECKING:
    from locus_memory.memory.manager import LLMMemoryManager

__all__ = ["FactsConsolidation", "consolidate_facts"]

_BATCH = 60

_Fact = tuple[StoreItem, Memory]


async def consolidate_facts(
    manager: LLMMemoryManager,
    model: ChatModel,
    *,
    scope: Namespace | None = None,
    dry_run: bool = False,
    batch: int = _BATCH,
) -> FactsReport:
    """Let a model merge facts that say the same, and retire those that a newer one contradicts.

    The model sees groups of facts that are near each other, and proposes operations. One that
    could lose a fact is refused, with the event `memory.facts_refused`; a fact that is not named
    stays as it is. Each change is in the history, and `undo` takes it back.

    Args:
        manager: The manager of the memories.
        model: Any async function from messages to a message.
        scope: The namespace of the facts of one owner; `None`: the manager's own scope if it is
            bound to one, else all scopes below its prefix.
        dry_run: Only report, see `FactsReport.diff`; nothing is written.
        batch: The most facts that one call shows, at least 2.

    Raises:
        ConfigurationError: `batch` is less than 2, or the model is not a function.
        BackendError: The store failed; each change is written whole or not at all.
        Exception: Any error of the model.
    """
    return await manager.consolidate_facts(model, scope=scope, dry_run=dry_run, batch=batch)


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
        self, scope: Scope, now: str, *, dry_run: bool = False, batch: int = _BATCH
    ) -> FactsReport:
        """Consolidate the facts of a scope.

        Raises:
            ConfigurationError: `batch` is less than 2.
            BackendError: The store failed; each change is written whole or not at all.
            Exception: Any error of the model.
        """
        check_whole(2, batch=batch)
        report = FactsReport()
        for call in await self._calls(scope, batch):
            report += await self._ask(scope, call, now, dry_run=dry_run)
        return report

    async def _calls(self, scope: Scope, batch: int) -> list[Call]:
        # What a tool told is never shown with what the user said: it could ask to retire that.
        kinds: dict[tuple[MemoryType, bool], list[_Fact]] = {}
        async for items in pages(self._store, scope.current):
            for item in items:
                memory = read_memory(item)
                if memory is not None:
                    kind = memory.type, has_authority(memory)
                    kinds.setdefault(kind, []).append((item, memory))
        found: list[Call] = []
        for facts in kinds.values():
            pairs = await self._pairs(facts)
            found += calls([memory for _, memory in facts], pairs, batch)
        return found

    async def _pairs(self, facts: Sequence[_Fact]) -> set[Pair]:
        """Return the places of facts that are near each other, by their words or vectors."""
        contents = [memory.content for _, memory in facts]
        pairs = await in_thread(_by_words, contents)
        if not await has_semantic_search(self._store):
            return pairs
        models: dict[tuple[str, int], tuple[list[int], list[Sequence[float]]]] = {}
        for place, (item, _) in enumerate(facts):
            vector = await self._store.get_embedding(item.namespace, item.key)
            if vector is not None:
                mark = mark_of(item.metadata)
                name = "" if mark is None else mark.model
                places, vectors = models.setdefault((name, len(vector)), ([], []))
                places.append(place)
                vectors.append(vector)
        for places, vectors in models.values():
            pairs |= await in_thread(lambda p, v: set(near_vectors(p, v)), places, vectors)
        return pairs

    async def _ask(self, scope: Scope, call: Call, now: str, *, dry_run: bool) -> FactsReport:
        """Ask the model about some facts, and make what it proposes and is not refused."""
        started, failure = time.monotonic(), None
        try:
            proposal = await self._proposal(call)
        except Exception as error:
            raise_if_cancelled(error)
            failure = type(error).__name__
            raise
        finally:
            if not dry_run:
                took = (time.monotonic() - started) * 1000.0
                entry = LogEntry(
                    kind="facts", at=now, duration_ms=took, ok=failure is None, error=failure
                )
                await self._store.put_batch([log_put(scope, entry)])
        changes: list[FactsChange] = []
        for operation in proposal.operations:
            if dry_run or await self._make(scope, call, operation, now):
                changes.append(_change(call, operation))
            await asyncio.sleep(0)
        asked = len(call.facts)
        return FactsReport(asked=asked, calls=1, changes=tuple(changes), refused=proposal.refused)

    async def _proposal(self, call: Call) -> Proposal:
        """Return what the model proposes; an answer that cannot be read proposes nothing."""
        asking = prompt(call)
        answer = await text_answer(self._model, asking)
        try:
            proposal = read_proposal(answer, call, asking[1].content or "")
        except InvalidArgumentError as error:
            proposal = Proposal((), (str(error),))
        for reason in proposal.refused:
            emit("memory.facts_refused", reason=reason)
        return proposal

    async def _make(self, scope: Scope, call: Call, operation: Operation, now: str) -> bool:
        """Make an operation, unless a fact of it was changed meanwhile; returns whether it was."""
        first, *others = (call.facts[place] for place in operation.places)
        if not await self._is_current(scope, others):
            return False
        if operation.op != "merge":
            return await self._retire(scope, [first], origin_of(first))
        merged = _merged(first, others, operation.content, now)
        said_at = max(map(written_at, (first, *others))) or None
        known = await VitalsBook(self._store).of(scope, (first, *others))
        edit = Statement(merged, said_at=said_at, only=_number(first))
        written = await self._ledger.apply(scope, [edit])
        if not written and not same_content(first.content, merged.content):
            return False
        name = current_key(first.type, first.key)
        taken = [vitals for key, vitals in known.items() if key != name]
        await VitalsBook(self._store).change(scope, {name: lambda _, own: _with(own, taken)})
        return await self._retire(scope, others, origin_of(merged))

    async def _retire(self, scope: Scope, facts: Sequence[Memory], origin: Origin) -> bool:
        edits = [Retirement(each.type, each.key, None, _number(each), origin) for each in facts]
        before = await self._is_current(scope, facts)
        await self._ledger.apply(scope, edits)
        return before

    async def _is_current(self, scope: Scope, facts: Sequence[Memory]) -> bool:
        names = [(scope.current, current_key(each.type, each.key)) for each in facts]
        stored = await self._store.get_batch(names)
        return all(
            (stored.get(name) or {}).get("content") == each.content
            for name, each in zip(names, facts, strict=True)
        )


def _by_words(contents: Sequence[str]) -> set[Pair]:
    return set(word_pairs([content_words(each) for each in contents]))


def _number(memory: Memory) -> int | None:
    number = memory.metadata.get("sequence")
    return number if isinstance(number, int) else None


def _merged(first: Memory, others: Sequence[Memory], content: str, now: str) -> Memory:
    """Return the memory that the first one becomes."""
    facts = (first, *others)
    metadata: dict[str, Any] = {
        **first.metadata,
        "consolidated_at": now,
        "merged_from": [
            {"type": each.type.value, "key": each.key, "sequence": _number(each)} for each in facts
        ],
    }
    if any("importance" in each.metadata for each in facts):
        metadata["importance"] = max(map(importance_of, facts))
    others = [each for each in facts if origin_of(each) is not Origin.USER]
    if others:
        metadata[ORIGIN] = origin_of(others[-1]).value
    return Memory(first.type, first.key, content, metadata)


def _with(own: Vitals, others: Sequence[Vitals]) -> Vitals:
    """Return vital signs that take over the use of other ones."""
    every = (own, *others)
    return replace(
        own,
        salience=max(each.salience for each in every),
        use_count=sum(each.use_count for each in every),
        last_used=max(each.last_used or "" for each in every) or None,
    )


def _change(call: Call, operation: Operation) -> FactsChange:
    facts = [call.facts[place] for place in operation.places]
    contents = {"merge": operation.content, "supersede": facts[-1].content}
    return FactsChange(
        op=operation.op,
        type=facts[0].type,
        keys=tuple(each.key for each in facts),
        before=tuple(each.content for each in facts),
        after=contents.get(operation.op),
    )
