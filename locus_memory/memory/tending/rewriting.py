"""The consolidation of the facts of a scope by a model, which proposes and never writes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from locus_memory.chat.base import ChatModel
from locus_memory.events import emit
from locus_memory.memory.layers.asking import text_answer
from locus_memory.memory.layers.log import logged
from locus_memory.memory.ledger.ledger import Retirement, Statement
from locus_memory.memory.ledger.revision import importance_of, read_memory
from locus_memory.memory.models import ORIGIN, Memory, Origin, origin_of
from locus_memory.memory.tending.passes import Pass
from locus_memory.memory.tending.proposal import batches, facts_prompt, read_proposal
from locus_memory.memory.tending.pruning import before, pages
from locus_memory.memory.tending.report import FactsChange, FactsReport
from locus_memory.memory.validity import said_at
from locus_memory.store.item import Namespace

if TYPE_CHECKING:
    from locus_memory.memory.manager import LLMMemoryManager

__all__ = ["consolidate_facts", "tidy_facts"]


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


async def tidy_facts(
    work: Pass, model: ChatModel, *, since: str | None = None, most: int | None = None
) -> FactsReport:
    """Let a model tidy the facts of a scope.

    Args:
        work: The pass.
        model: The model.
        since: The last moment at which a model was asked; it is not asked again, if it was shown
            all facts then, and none was written in the day before or later. `None`: it is.
        most: The most calls of the model; `None`: as many as it takes to show it all facts.

    Raises:
        BackendError: The store failed; each change is written whole or not at all.
        Exception: Any error of the model.
    """
    items = [item async for page in pages(work.store, work.scope.current) for item in page]
    facts = [memory for item in items if (memory := read_memory(item)) is not None]
    shown, oldest = batches(facts, work.now[:10]), before(since, 1)
    is_seen = most is None or len(shown) <= most
    if oldest is not None and is_seen and all(item.updated_at < oldest for item in items):
        return FactsReport()
    reports = [await _tidied(work, model, batch) for batch in shown[:most]]
    return sum(reports, FactsReport())


async def _tidied(work: Pass, model: ChatModel, facts: Sequence[Memory]) -> FactsReport:
    """Ask the model about some facts, and make the changes that are accepted."""
    log = logged(work.store, work.scope, "facts", work.now)
    async with nullcontext() if work.dry_run else log:
        answer = await text_answer(model, facts_prompt(facts), "tending")
    changes, refused = read_proposal(answer, facts)
    for reason in refused:
        emit("memory.facts_refused", reason=reason)
    made = [each for each in changes if work.dry_run or await _make(work, each, facts)]
    return FactsReport(asked=len(facts), calls=1, changes=tuple(made), refused=tuple(refused))


async def _make(work: Pass, change: FactsChange, shown: Sequence[Memory]) -> bool:
    """Make a change, unless the fact that stays was changed meanwhile; returns whether it was.

    A fact that would go and was changed meanwhile stays.
    """
    known = {fact.key: fact for fact in shown if fact.type is change.type}
    facts = [known[key] for key in change.keys]
    moment, origin = said_at(facts[0]) or None, origin_of(facts[0])
    only, *others = (fact.metadata.get("sequence", 1) for fact in facts)
    new = _rewritten(facts, change.after, work.now)
    if not await work.ledger.apply(work.scope, [Statement(new, moment, only)]):
        return False
    edits = [
        Retirement(change.type, key, moment, number, origin)
        for key, number in zip(change.keys[1:], others, strict=True)
    ]
    await work.ledger.apply(work.scope, edits)
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
