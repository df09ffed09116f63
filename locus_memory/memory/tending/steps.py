"""The steps of a pass over one scope.

Each write names the version it replaces or is done already, and depends on the stored records and
the moment of the pass alone. So a pass that ends after any write is finished by the next one of the
same moment, with the same result.

What is done to an episode or a fact depends on no other one, so it is done fifty at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from locus_memory.chat.base import ChatModel
from locus_memory.conversation.tokens import as_token_counter, expected_tokens
from locus_memory.events import emit
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, read_episode
from locus_memory.memory.layers.identity import IdentityBook, derived
from locus_memory.memory.layers.log import LOG_DAYS
from locus_memory.memory.ledger.ledger import Ledger, Statement
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory, is_expired
from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.condensing import condense, to_condense
from locus_memory.memory.tending.pruning import (
    before,
    pages,
    prune_log,
    prune_runs,
    prune_turns,
)
from locus_memory.memory.tending.report import ConsolidationReport
from locus_memory.store.base import BaseStore
from locus_memory.store.item import StoreItem

__all__ = ["Steps"]

_SHARE: Final = 4
"""Notes are condensed once they take more than this part of the budget of a block."""

_READ: Final = 1_000


class Steps:
    """The steps of one pass.

    Args:
        store: The store.
        ledger: The ledger of the memories.
        scope: The scope.
        options: The retention, and the budget of a block.
        now: The moment of the pass, in the format of `Ledger.now`.
        model: Condenses notes; `None`: they stay.
        dry_run: Only count; nothing is written.
    """

    def __init__(
        self,
        store: BaseStore,
        ledger: Ledger,
        scope: Scope,
        options: MemoryOptions,
        *,
        now: str,
        model: ChatModel | None = None,
        dry_run: bool = False,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._scope = scope
        self._days = options.retention
        self._room = options.memory_budget_tokens // _SHARE
        self._count = as_token_counter(options.token_counter or expected_tokens)
        self._now = now
        self._model = model
        self._dry_run = dry_run

    async def run(self) -> ConsolidationReport:
        """Make the pass.

        Raises:
            BackendError: The store failed; another pass finishes this one.
        """
        if not self._dry_run:
            await adopt(self._store, self._ledger, self._scope)
        ended = await self._episodes()
        expired = await self._facts()
        if not self._dry_run:
            await EpisodeBook(self._store).drop_condensed(self._scope)
            await self._condense()
        return replace(await self._rest(), pruned_episodes=ended, evicted=expired)

    async def _episodes(self) -> int:
        """Erase the notes of old sessions; returns of how many."""
        count = 0
        async for items in pages(self._store, self._scope.episodes):
            read = [(item, episode) for item in items if (episode := read_episode(item))]
            # An item under another key than its own is not this library's to change.
            own = [episode for item, episode in read if item.key == episode.key]
            ended = [(self._scope.episodes, each.key) for each in own if self._is_old(each)]
            count += len(ended)
            if not self._dry_run:
                await self._store.delete_batch(ended)
        return count

    def _is_old(self, episode: Episode) -> bool:
        oldest = before(self._now, self._days) if self._days else None
        ended = read_moment(episode.ended_at)
        return oldest is not None and ended is not None and ended < oldest

    async def _facts(self) -> int:
        """Move facts that have expired to the history; returns how many."""
        count = 0
        async for items in pages(self._store, self._scope.current):
            for item in items:
                memory = read_memory(item)
                if memory is not None and is_expired(memory, self._now):
                    count += self._dry_run or await self._end(item, memory)
        return count

    async def _end(self, item: StoreItem, memory: Memory) -> bool:
        kind, key = memory.type, memory.key
        gone = await self._ledger.evict(self._scope, kind, key, version=item.version, at=self._now)
        if gone:
            emit("memory.expired", type=kind.value, key=key)
        return gone

    async def _rest(self) -> ConsolidationReport:
        """Erase old turns, entries of the log and records of runs."""
        pruned = purged = 0
        oldest = before(self._now, self._days) if self._days else None
        if oldest is not None:
            pruned = await prune_turns(self._store, self._scope, oldest, dry_run=self._dry_run)
        logged = before(self._now, LOG_DAYS)
        if logged is not None:
            purged = await prune_log(self._store, self._scope, logged, dry_run=self._dry_run)
            purged += await prune_runs(
                self._store, self._scope, logged, oldest, dry_run=self._dry_run
            )
        return ConsolidationReport(pruned_turns=pruned, purged=purged)

    async def _condense(self) -> None:
        """Condense the oldest notes, if they take too much of a block; a failure is an event."""
        if self._model is None or not self._room:
            return
        book = EpisodeBook(self._store)
        shown = await book.shown(self._scope, _READ)
        taken = to_condense(shown, self._room, self._count)
        if not taken:
            return
        made = await condense(self._store, self._scope, self._model, taken, self._now)
        if made is not None:
            await book.condense(self._scope, made)
            emit("memory.condensed", sessions=len(made.condenses), notes=len(made.notes))


async def adopt(store: BaseStore, ledger: Ledger, scope: Scope) -> None:
    """Make memories of what earlier versions derived about the owner beside them.

    Raises:
        BackendError: The store failed; what is left is made memories of the next time.
    """
    book = IdentityBook(store)
    found = derived(await book.read(scope))
    if found:
        edits = [Statement(each, said_at=each.metadata["valid_from"]) for each in found]
        await ledger.apply(scope, edits)
        await book.change(scope, lambda identity: replace(identity, facts=()))
