"""The steps of a pass over one scope.

Each write names the version it replaces or is done already, and depends on the stored records and
the moment of the pass alone. So a pass that ends after any write is finished by the next one of the
same moment, with the same result.

What is done to an episode or a fact depends on no other one, so it is done fifty at a time.
"""

from __future__ import annotations

from typing import Final

from locus_memory.conversation.tokens import as_token_counter, expected_tokens
from locus_memory.events import emit
from locus_memory.memory.layers.episodes import EpisodeBook
from locus_memory.memory.layers.identity import adopt
from locus_memory.memory.layers.log import LOG_DAYS
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import is_expired
from locus_memory.memory.tending.condensing import condense, to_condense
from locus_memory.memory.tending.passes import Pass
from locus_memory.memory.tending.pruning import (
    before,
    pages,
    prune_log,
    prune_notes,
    prune_turns,
)
from locus_memory.memory.tending.report import ConsolidationReport

__all__ = ["make_steps"]

_SHARE: Final = 4
"""Notes are condensed once they take more than this part of the budget of a block."""

_READ: Final = 1_000


async def make_steps(work: Pass) -> ConsolidationReport:
    """Make the steps of a pass, but the one in which a model tidies the facts.

    Raises:
        BackendError: The store failed; another pass finishes this one.
    """
    days = work.options.retention
    oldest = before(work.now, days) if days else None
    long_ago = before(work.now, LOG_DAYS)
    if not work.dry_run:
        await adopt(work.store, work.ledger, work.scope)
    notes = 0 if oldest is None else await prune_notes(work, oldest)
    expired = await _expire(work)
    if not work.dry_run:
        await EpisodeBook(work.store).drop_condensed(work.scope)
        await _condense(work)
    return ConsolidationReport(
        evicted=expired,
        pruned_episodes=notes,
        pruned_turns=0 if oldest is None else await prune_turns(work, oldest),
        purged=0 if long_ago is None else await prune_log(work, long_ago, oldest),
    )


async def _expire(work: Pass) -> int:
    """Move facts that have expired to the history; returns how many."""
    count = 0
    async for items in pages(work.store, work.scope.current):
        for item in items:
            memory = read_memory(item)
            if memory is not None and is_expired(memory, work.now):
                count += work.dry_run or await work.ledger.expire(
                    work.scope, memory.type, memory.key, version=item.version, at=work.now
                )
    return count


async def _condense(work: Pass) -> None:
    """Condense the oldest notes, if they take too much of a block; a failure is an event."""
    room = work.options.memory_budget_tokens // _SHARE
    if work.model is None or not room:
        return
    book, count = EpisodeBook(work.store), work.options.token_counter or expected_tokens
    shown = await book.shown(work.scope, _READ)
    taken = to_condense(shown, room, as_token_counter(count))
    if not taken:
        return
    made = await condense(work.store, work.scope, work.model, taken, work.now)
    if made is not None:
        await book.condense(work.scope, made)
        emit("memory.condensed", sessions=len(made.condenses), notes=len(made.notes))
