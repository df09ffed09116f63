"""The steps of a pass over one scope.

Each write names the version it replaces or is done already, and depends on the stored records and
the moment of the pass alone. So a pass that ends after any write is finished by the next one of the
same moment, with the same result.

Episodes are decayed and merged before the facts are looked at, since their mentions count. The
decay, the promotion and the eviction of a fact do not depend on other facts, so they are made
fifty facts at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory._internal.offload import in_thread
from locus_memory.chat.base import ChatModel
from locus_memory.errors import InvalidArgumentError, VersionConflictError
from locus_memory.events import emit
from locus_memory.memory.batch import rewritten
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, read_episode
from locus_memory.memory.layers.identity import IdentityBook
from locus_memory.memory.layers.log import LogEntry, log_put
from locus_memory.memory.layers.vitals import Vitals, VitalsBook, vitals_put
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory
from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import TendingOptions
from locus_memory.memory.scope import Scope, split_key
from locus_memory.memory.tending.episodes import merge, recent
from locus_memory.memory.tending.facts import is_spent, tended
from locus_memory.memory.tending.narrative import is_stale, write_narrative
from locus_memory.memory.tending.pruning import before, pages, prune_log, prune_turns
from locus_memory.memory.tending.report import ConsolidationReport
from locus_memory.memory.tending.words import Mentions, content_words
from locus_memory.store.base import BaseStore, write_together
from locus_memory.store.item import Delete, Put, StoreItem

__all__ = ["Steps"]

_LOG_DAYS: Final = 30.0
_AT_ONCE: Final = 50

_Stored = Mapping[str, tuple[StoreItem, Episode]]


class Steps:
    """The steps of one pass.

    Args:
        store: The store.
        ledger: The ledger of the memories.
        scope: The scope.
        options: The salience floor and the retention.
        now: The moment of the pass, in the format of `Ledger.now`.
        model: Writes the narrative; `None`: it stays.
        dry_run: Only count; nothing is written.
    """

    def __init__(
        self,
        store: BaseStore,
        ledger: Ledger,
        scope: Scope,
        options: TendingOptions,
        *,
        now: str,
        model: ChatModel | None = None,
        dry_run: bool = False,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._scope = scope
        self._floor = options.salience_floor
        self._days = options.episode_retention_days
        self._now = now
        self._model = model
        self._dry_run = dry_run

    async def run(self) -> ConsolidationReport:
        """Make the pass.

        Raises:
            BackendError: The store failed; another pass finishes this one.
        """
        of_episodes, mentions = await self._episodes()
        of_facts = await self._facts(mentions)
        if not self._dry_run:
            await self._sweep()
        return of_episodes + of_facts + await self._rest()

    async def _episodes(self) -> tuple[ConsolidationReport, Mentions]:
        """Let episodes fade, merge and end; returns what the recent ones mention as well."""
        stored = await self._stored()
        faded = {key: episode.decayed(self._now) for key, (_, episode) in stored.items()}
        # The comparison of many episodes takes a while.
        merger = await in_thread(merge, list(faded.values()))
        ended = [each.key for each in merger.kept.values() if self._is_old(each)]
        decayed = sum(faded[key].salience < each.salience for key, (_, each) in stored.items())
        if not self._dry_run:
            await self._write(stored, merger.kept)
            await self._take_over(stored, merger.gone)
            for start in range(0, len(ended), _AT_ONCE):
                names = ended[start : start + _AT_ONCE]
                await self._store.delete_batch([(self._scope.episodes, name) for name in names])
                await asyncio.sleep(0)
        left = [each for key, each in merger.kept.items() if key not in set(ended)]
        report = ConsolidationReport(
            decayed=decayed, merged=len(merger.gone), pruned_episodes=len(ended)
        )
        return report, Mentions(recent(left, self._now))

    async def _stored(self) -> _Stored:
        """Return the episodes by key, the oldest first."""
        found: dict[str, tuple[StoreItem, Episode]] = {}
        async for item, episode in EpisodeBook(self._store).scan(self._scope):
            # An item under another key than its own is not this library's to change.
            if item.key == episode.key:
                found[item.key] = item, episode
            if len(found) % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return dict(sorted(found.items()))

    async def _write(self, stored: _Stored, kept: Mapping[str, Episode]) -> None:
        """Write the episodes that changed; one that another writer changed meanwhile stays."""
        changed = [(stored[key][0], each) for key, each in kept.items() if each != stored[key][1]]
        for start in range(0, len(changed), _AT_ONCE):
            puts = [
                await rewritten(self._store, item, each.text, each.to_value())
                for item, each in changed[start : start + _AT_ONCE]
            ]
            await self._put_unchanged(puts)
            await asyncio.sleep(0)

    async def _put_unchanged(self, puts: Sequence[Put]) -> None:
        """Write the puts whose items are still at the version that they name."""
        try:
            await self._store.put_batch(puts)
        except VersionConflictError:
            for put in puts:
                with suppress(VersionConflictError):
                    await self._store.put_batch([put])

    async def _take_over(self, stored: _Stored, gone: Mapping[str, str]) -> None:
        """Erase merged episodes whose content is in the older one by now."""
        for key, into in gone.items():
            episode = stored[key][1]
            item = await self._store.get_item(self._scope.episodes, into)
            held = None if item is None else read_episode(item)
            if held is None or held != held.joined(episode.decayed(self._now)):
                continue
            with suppress(VersionConflictError):
                await write_together(self._store, [_removal(stored[key][0])])

    def _is_old(self, episode: Episode) -> bool:
        oldest = before(self._now, self._days) if self._days else None
        ended = read_moment(episode.ended_at)
        return oldest is not None and ended is not None and ended < oldest

    async def _facts(self, mentions: Mentions) -> ConsolidationReport:
        report = ConsolidationReport()
        async for items in pages(self._store, self._scope.current):
            found = {item.key: (item, memory) for item in items if (memory := read_memory(item))}
            seen = await self._tend({key: memory for key, (_, memory) in found.items()}, mentions)
            spent = [
                (item, memory)
                for key, (item, memory) in found.items()
                if key in seen
                and is_spent(memory, seen[key][1], item.created_at, self._now, self._floor)
            ]
            report += ConsolidationReport(
                decayed=sum(self._fades(found[key][1], old) for key, (old, _) in seen.items()),
                promoted=sum(old.promoted_on != new.promoted_on for old, new in seen.values()),
                evicted=await self._evict(spent),
            )
        return report

    def _fades(self, memory: Memory, vitals: Vitals) -> bool:
        return tended(memory, vitals, 0, self._now, self._floor).salience < vitals.salience

    async def _tend(
        self, memories: Mapping[str, Memory], mentions: Mentions
    ) -> dict[str, tuple[Vitals, Vitals]]:
        """Write the vital signs of some facts; returns the old and the new ones."""
        seen: dict[str, tuple[Vitals, Vitals]] = {}

        def change(memory: Memory, old: Vitals, *, key: str) -> Vitals:
            count = mentions.count(content_words(memory.content))
            new = tended(memory, old, count, self._now, self._floor)
            seen[key] = old, new
            return new

        changes = {key: partial(change, key=key) for key in memories}
        book = VitalsBook(self._store)
        current = await book.change(self._scope, changes, dry_run=self._dry_run)
        return {key: pair for key, pair in seen.items() if key in current}

    async def _evict(self, spent: Sequence[tuple[StoreItem, Memory]]) -> int:
        if self._dry_run:
            return len(spent)
        count = 0
        for item, memory in spent:
            kind, key = memory.type, memory.key
            gone = await self._ledger.evict(
                self._scope, kind, key, version=item.version, at=self._now
            )
            if gone:
                emit("memory.faded", type=kind.value, key=key)
                count += 1
        return count

    async def _sweep(self) -> None:
        """Mark the vital signs of facts that can be brought back, and erase those of no fact."""
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
        """Erase old turns and old entries of the log, and write the narrative."""
        pruned = purged = 0
        oldest = before(self._now, self._days) if self._days else None
        if oldest is not None:
            pruned = await prune_turns(self._store, self._scope, oldest, dry_run=self._dry_run)
        logged = before(self._now, _LOG_DAYS)
        if logged is not None:
            purged = await prune_log(self._store, self._scope, logged, dry_run=self._dry_run)
        narratives = int(await self._narrate())
        return ConsolidationReport(pruned_turns=pruned, purged=purged, narratives=narratives)

    async def _narrate(self) -> bool:
        """Write the narrative if facts were derived since; a failure keeps the old one."""
        book = IdentityBook(self._store)
        identity = await book.read(self._scope)
        if self._model is None or not is_stale(identity):
            return False
        if self._dry_run:
            return True
        started, failure, text = time.monotonic(), None, ""
        try:
            text = await write_narrative(self._model, identity)
        except Exception as error:  # noqa: BLE001 - reported; the old narrative stays
            raise_if_cancelled(error)
            emit("memory.narrative_failed", error=error)
            failure = type(error).__name__
        if failure is None:
            # The facts that it tells may have been erased meanwhile.
            facts = identity.facts
            kept = await book.change(
                self._scope,
                lambda it: it.with_content(text, self._now) if it.facts == facts else it,
            )
            if kept.facts != facts:
                return False
        took = (time.monotonic() - started) * 1000.0
        entry = LogEntry(
            kind="narrative", at=self._now, duration_ms=took, ok=failure is None, error=failure
        )
        await self._store.put_batch([log_put(self._scope, entry)])
        return failure is None


def _removal(item: StoreItem) -> Delete:
    return Delete(namespace=item.namespace, key=item.key, if_version=item.version)


def _read(item: StoreItem) -> Vitals | None:
    try:
        return Vitals.from_value(item.value)
    except InvalidArgumentError:
        return None
