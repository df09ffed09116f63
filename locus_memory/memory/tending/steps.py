"""The steps of a pass over one scope.

Each write names the version it replaces or is done already, and depends on the stored records and
the moment of the pass alone. So a pass that ends after any write is finished by the next one of the
same moment, with the same result.

What is done to an episode or a fact depends on no other one, so it is done fifty at a time.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory.chat.base import ChatModel
from locus_memory.conversation.tokens import as_token_counter, expected_tokens
from locus_memory.errors import InvalidArgumentError, VersionConflictError
from locus_memory.events import emit
from locus_memory.memory.batch import rewritten
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, read_episode
from locus_memory.memory.layers.identity import IdentityBook
from locus_memory.memory.layers.log import LOG_DAYS, LogEntry, LogKind, log_put
from locus_memory.memory.layers.vitals import Vitals, VitalsBook, vitals_put
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory, is_expired
from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.scope import Scope, split_key
from locus_memory.memory.tending.condensing import condensed, to_condense
from locus_memory.memory.tending.facts import tended
from locus_memory.memory.tending.narrative import is_stale, write_narrative
from locus_memory.memory.tending.pruning import (
    before,
    pages,
    prune_log,
    prune_runs,
    prune_turns,
)
from locus_memory.memory.tending.report import ConsolidationReport
from locus_memory.store.base import BaseStore, write_together
from locus_memory.store.item import Delete, Put, StoreItem

__all__ = ["Steps"]

_Answer = TypeVar("_Answer")

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
        model: Condenses notes and writes the narrative; `None`: they stay.
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
        of_episodes = await self._episodes()
        of_facts = await self._facts()
        if not self._dry_run:
            await self._sweep()
            await self._condense()
        return of_episodes + of_facts + await self._rest()

    async def _episodes(self) -> ConsolidationReport:
        """Let episodes fade and end; one that another writer changes meanwhile stays."""
        report = ConsolidationReport()
        async for items in pages(self._store, self._scope.episodes):
            read = [(item, episode) for item in items if (episode := read_episode(item))]
            # An item under another key than its own is not this library's to change.
            known = [(item, episode) for item, episode in read if item.key == episode.key]
            ended = [(self._scope.episodes, each.key) for _, each in known if self._is_old(each)]
            left = [
                (item, episode, episode.decayed(self._now))
                for item, episode in known
                if not self._is_old(episode)
            ]
            if not self._dry_run:
                await self._store.delete_batch(ended)
                puts = [
                    await rewritten(self._store, item, new.text, new.to_value())
                    for item, old, new in left
                    if new != old
                ]
                await self._put_unchanged(puts)
            decayed = sum(new.salience < old.salience for _, old, new in left)
            report += ConsolidationReport(decayed=decayed, pruned_episodes=len(ended))
        return report

    async def _put_unchanged(self, puts: Sequence[Put]) -> None:
        """Write the puts whose items are still at the version that they name."""
        try:
            await self._store.put_batch(puts)
        except VersionConflictError:
            for put in puts:
                with suppress(VersionConflictError):
                    await self._store.put_batch([put])

    def _is_old(self, episode: Episode) -> bool:
        oldest = before(self._now, self._days) if self._days else None
        ended = read_moment(episode.ended_at)
        return oldest is not None and ended is not None and ended < oldest

    async def _facts(self) -> ConsolidationReport:
        """Let facts fade; those that have expired move to the history."""
        report = ConsolidationReport()
        async for items in pages(self._store, self._scope.current):
            found = {item.key: (item, memory) for item in items if (memory := read_memory(item))}
            decayed = await self._tend(found)
            ended = [pair for pair in found.values() if is_expired(pair[1], self._now)]
            report += ConsolidationReport(decayed=decayed, evicted=await self._end(ended))
        return report

    async def _tend(self, keys: Iterable[str]) -> int:
        """Write the vital signs of some facts; returns how many lost salience."""
        fading: dict[str, bool] = {}

        def change(memory: Memory, old: Vitals, *, key: str) -> Vitals:
            new = tended(memory, old, self._now)
            fading[key] = new.salience < old.salience
            return new

        changes = {key: partial(change, key=key) for key in keys}
        book = VitalsBook(self._store)
        current = await book.change(self._scope, changes, dry_run=self._dry_run)
        return sum(fading[key] for key in current)

    async def _end(self, expired: Sequence[tuple[StoreItem, Memory]]) -> int:
        """Move expired facts to the history; returns how many."""
        if self._dry_run:
            return len(expired)
        count = 0
        for item, memory in expired:
            kind, key = memory.type, memory.key
            gone = await self._ledger.evict(
                self._scope, kind, key, version=item.version, at=self._now
            )
            if gone:
                emit("memory.expired", type=kind.value, key=key)
                count += 1
        return count

    async def _sweep(self) -> None:
        """Mark the vital signs of facts that can be brought back, and erase those of no fact.

        Condensed notes of a session that is no more go as well.
        """
        await EpisodeBook(self._store).drop_condensed(self._scope)
        async for items in pages(self._store, self._scope.vitals):
            names = [(self._scope.current, item.key) for item in items]
            current = await self._store.get_batch(names)
            for item in (each for each in items if (self._scope.current, each.key) not in current):
                with suppress(VersionConflictError):
                    await self._settle(item)

    async def _settle(self, item: StoreItem) -> None:
        named = split_key(item.key)
        left = None if named is None else await self._ledger.last_change(self._scope, *named)
        vitals = _read(item)
        if left is None or vitals is None:
            await write_together(self._store, [_removal(item)])
        elif vitals.retired_at is None:
            vitals = vitals.retired(left or self._now)
            put = vitals_put(self._scope, item.key, vitals, item.version)
            await self._store.put_batch([put])

    async def _rest(self) -> ConsolidationReport:
        """Erase old turns, entries of the log and records of runs, and write the narrative."""
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
        narratives = int(await self._narrate())
        return ConsolidationReport(pruned_turns=pruned, purged=purged, narratives=narratives)

    async def _condense(self) -> None:
        """Condense the oldest notes, if they take too much of a block; a failure is an event."""
        if self._model is None or not self._room:
            return
        book = EpisodeBook(self._store)
        shown = await book.shown(self._scope, _READ)
        taken = to_condense(shown, self._room, self._count)
        made = await self._asked("condense", condensed(self._model, taken)) if taken else None
        if made is not None:
            await book.condense(self._scope, made)
            emit("memory.condensed", sessions=len(made.condenses), notes=len(made.notes))

    async def _asked(self, kind: LogKind, answer: Awaitable[_Answer]) -> _Answer | None:
        """Return the answer of a model, and log it; `None`, with an event, if it failed."""
        started, failure, found = time.monotonic(), None, None
        try:
            found = await answer
        except Exception as error:  # noqa: BLE001 - reported; what was there stays
            raise_if_cancelled(error)
            if kind == "condense":
                emit("memory.condense_failed", error=error)
            else:
                emit("memory.narrative_failed", error=error)
            failure = type(error).__name__
        took = (time.monotonic() - started) * 1000.0
        entry = LogEntry(
            kind=kind, at=self._now, duration_ms=took, ok=failure is None, error=failure
        )
        await self._store.put_batch([log_put(self._scope, entry)])
        return found

    async def _narrate(self) -> bool:
        """Write the narrative if facts were derived since; a failure keeps the old one."""
        book = IdentityBook(self._store)
        identity = await book.read(self._scope)
        if self._model is None or not is_stale(identity):
            return False
        if self._dry_run:
            return True
        text = await self._asked("narrative", write_narrative(self._model, identity))
        if text is None:
            return False
        # The facts that it tells may have been erased meanwhile.
        facts = identity.facts
        kept = await book.change(
            self._scope, lambda it: it.with_content(text, self._now) if it.facts == facts else it
        )
        return kept.facts == facts


def _removal(item: StoreItem) -> Delete:
    return Delete(namespace=item.namespace, key=item.key, if_version=item.version)


def _read(item: StoreItem) -> Vitals | None:
    try:
        return Vitals.from_value(item.value)
    except InvalidArgumentError:
        return None
