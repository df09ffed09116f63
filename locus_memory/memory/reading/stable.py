"""The stable part of what a run is shown: built when a thread begins, the same for all its runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any, Final, Self
from uuid import uuid4

from locus_memory.conversation.tokens import TokenCounter
from locus_memory.errors import VersionConflictError
from locus_memory.events import emit
from locus_memory.memory.layers.episodes import EpisodeBook
from locus_memory.memory.layers.fading import faded
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.models import has_authority
from locus_memory.memory.moments import read_moment
from locus_memory.memory.reading.fixed import FixedBook
from locus_memory.memory.reading.lines import (
    NOTE,
    Line,
    fact_line,
    fitting,
    grouped,
    note_lines,
    oldest_word,
    quote_line,
)
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put, StoreItem

__all__ = ["Known", "Stable", "StableBook", "Unread"]

_FACTS: Final = 1_000
_NOTES: Final = 200
_TURNS: Final = 600
"""How many of the newest are looked at: more do not fit into any usual budget."""

_ATTEMPTS: Final = 10
_SLACK: Final = 60.0
"""Seconds that a part is kept beyond its last use: the clock of the database may differ."""

Unread = Callable[[Scope], Awaitable[Collection[tuple[str, int]] | None]]
"""Returns the thread and the number of each message that waits for extraction; `None`: no model
extracts, so that no turn was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known in a scope, before it is chosen.

    Attributes:
        fixed: What always holds.
        left_out: What a person fixed that found no room.
        facts: Facts and notes, from old to new.
        quotes: The turns of the user in other threads that no extraction has read, from old to new.
    """

    fixed: Sequence[Line]
    left_out: Sequence[Line]
    facts: Sequence[Line]
    quotes: Sequence[Line]

    @property
    def everything(self) -> list[Line]:
        """All that is known."""
        return [*self.fixed, *self.facts, *self.quotes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stable:
    """The stable part of a thread.

    Attributes:
        text: Its lines, without a fence; empty: there are none.
        tokens: Their tokens.
        names: The names of what it shows, see `Line.name`.
        seen_at: The moment of the newest memory then, by the store; empty: there was none.
        left_out: How much that a person fixed found no room.
        budget: The tokens of the stable part and the tail together, for which it was built.
        since: The moment of the oldest note or quote in it; empty: there is none.
        lines: The lines, if it was built just now.
        is_kept: Whether it was built before, for an earlier run of the thread.
        id: Its own id, if it is kept: another part of the thread has another one.
    """

    text: str
    tokens: int
    names: frozenset[str]
    seen_at: str
    left_out: int = 0
    budget: int = 0
    since: str = ""
    lines: tuple[Line, ...] = ()
    is_kept: bool = False
    id: str = ""

    def to_value(self, used_at: str) -> dict[str, Any]:
        """Return it as plain JSON, with the moment of the latest run."""
        return {
            "id": self.id,
            "text": self.text,
            "tokens": self.tokens,
            "names": sorted(self.names),
            "seen_at": self.seen_at,
            "left_out": self.left_out,
            "budget": self.budget,
            "since": self.since,
            "used_at": used_at,
        }

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Self:
        """Return the stable part of a value that `to_value` returned.

        Raises:
            KeyError: A field is missing.
            TypeError: The value is something else.
        """
        return cls(
            text=value["text"],
            tokens=value["tokens"],
            names=frozenset(value["names"]),
            seen_at=value["seen_at"],
            left_out=value["left_out"],
            budget=value.get("budget", 0),
            since=value.get("since", ""),
            is_kept=True,
            id=value.get("id", ""),
        )


class StableBook:
    """The stable parts of threads, which are kept in the store beside the memories.

    Args:
        store: The store, which the book never closes.
        recall: Reads the memories.
        unread: Returns what no extraction has read.
        fixed: Reads what always holds.
        count: Counts tokens.
        now: Returns the present moment, ISO 8601 in UTC.
        idle: The seconds without a run after which the part of a thread is built again.
        zone: The time zone of the user; `None`: that of the machine.
    """

    def __init__(
        self,
        store: BaseStore,
        recall: Recall,
        unread: Unread,
        fixed: FixedBook,
        *,
        count: TokenCounter,
        now: Callable[[], str],
        idle: float,
        zone: tzinfo | None,
    ) -> None:
        self._store = store
        self._recall = recall
        self._unread = unread
        self._count = count
        self._now = now
        self._idle = idle
        self._zone = zone
        self._fixed = fixed
        self._vitals = VitalsBook(store)
        self._episodes = EpisodeBook(store)

    async def of(self, scope: Scope, thread: str, budget: int, *, keeps: bool = True) -> Stable:
        """Return the stable part of a thread: that of its last run, or a new one.

        That of the last run is built again if this one has a smaller budget.

        Args:
            scope: The scope.
            thread: The thread.
            budget: The tokens of the stable part and the tail together.
            keeps: Whether a new one is kept for the next run.

        Raises:
            VersionConflictError: Other runs of the thread were faster each time.
            BackendError: The store failed.
        """
        for _ in range(_ATTEMPTS):
            item = await self._store.get_item(scope.blocks, thread)
            kept = None if item is None else self._read(item)
            if kept is not None and kept.budget <= budget:
                return kept
            built = replace(await self.build(scope, thread, budget), id=uuid4().hex)
            if not keeps:
                return built
            version = 0 if item is None else item.version
            # If another process began the thread as well, both show what was kept first.
            with suppress(VersionConflictError):
                await self._keep(scope, thread, built.to_value(self._now()), version)
                again = await self.build(scope, thread, budget)
                if again.text != built.text:
                    # It may show what was erased after it was read, and kept after that.
                    await self._store.delete(scope.blocks, thread)
                return replace(again, id=built.id)
        raise VersionConflictError(0, 1)

    async def _keep(
        self, scope: Scope, thread: str, value: Mapping[str, Any], version: int, *also: Put
    ) -> None:
        """Write the part of a thread, for as long as it may be shown, and `also` with it."""
        put = Put(
            namespace=scope.blocks,
            key=thread,
            value=value,
            ttl=self._idle + _SLACK,
            if_version=version,
            text="",
        )
        await self._store.put_batch([put, *also])

    def _read(self, item: StoreItem) -> Stable | None:
        """Return the part of an item; `None`: it is to be built again."""
        try:
            stable = Stable.from_value(item.value)
            used_at = read_moment(item.value["used_at"])
        except (KeyError, TypeError) as error:
            emit("memory.record_unreadable", error=error, layer="blocks")
            return None
        now = read_moment(self._now())
        if used_at is None or now is None:
            return None
        return stable if 0 <= (now - used_at).total_seconds() <= self._idle else None

    async def touch(self, scope: Scope, thread: str, stable: Stable, *also: Put) -> None:
        """Record that a run of the thread used its stable part now, and write `also` with that.

        If the part was dropped meanwhile, or is another one since, nothing is written: `also` may
        show what was erased.

        Args:
            scope: The scope.
            thread: The thread.
            stable: The part that the run was shown.
            also: Further writes.

        Raises:
            VersionConflictError: Other runs of the thread were faster each time.
            BackendError: The store failed.
        """
        for _ in range(_ATTEMPTS):
            item = await self._store.get_item(scope.blocks, thread)
            if item is None or not isinstance(item.value, dict):
                return
            if item.value.get("id", "") != stable.id:
                return
            with suppress(VersionConflictError):
                used = {**item.value, "used_at": self._now()}
                await self._keep(scope, thread, used, item.version, *also)
                return
        raise VersionConflictError(0, 1)

    async def build(self, scope: Scope, thread: str, budget: int) -> Stable:
        """Return the stable part that a thread would get now; nothing is kept.

        Args:
            scope: The scope.
            thread: The thread.
            budget: As for `of`.

        Raises:
            BackendError: The store failed.
        """
        newest = await self._store.search(scope.current, None, 1)
        known = await self.known(scope, thread, budget)
        lines = await self._chosen(scope, known, budget)
        texts = list(grouped(lines, self._zone))
        if any(line.kind in ("override", "rule") for line in lines):
            texts = [NOTE, *texts]
        return Stable(
            text="".join(f"{text}\n" for text in texts),
            tokens=sum(self._count(f"{text}\n") for text in texts),
            names=frozenset(line.name for line in lines if line.name),
            seen_at=newest[0].updated_at.isoformat() if newest else "",
            left_out=len(known.left_out),
            budget=budget,
            since=oldest_word(lines),
            lines=tuple(lines),
        )

    async def _chosen(self, scope: Scope, known: Known, budget: int) -> list[Line]:
        """Return what is shown.

        Everything, if it fits into three quarters of the budget. If not, facts and notes have half
        of it, or what always holds leaves of it, the most salient and then the newest first, and
        there are no quotes.
        """
        everything, count, zone = known.everything, self._count, self._zone
        fits, _ = fitting(everything, budget * 3 // 4, count, zone)
        if len(fits) == len(everything):
            return fits
        now, told = self._now(), await self._vitals.told(scope, {each.name for each in known.facts})
        best = sorted(known.facts, key=lambda line: line.moment, reverse=True)
        best.sort(key=lambda e: -faded(e.importance, max(e.moment, told.get(e.name, "")), now))
        _, spent = fitting(known.fixed, budget, count, zone)
        chosen, _ = fitting(best, min(budget // 2, budget - spent), count, zone)
        names = set(map(id, chosen))
        return [*known.fixed, *(line for line in known.facts if id(line) in names)]

    async def known(self, scope: Scope, thread: str, budget: int) -> Known:
        """Return what is known in a scope.

        Args:
            scope: The scope.
            thread: The thread, whose own turns are visible in it.
            budget: As for `of`.

        Raises:
            BackendError: The store failed.
        """
        fixed, facts, notes, quotes = await asyncio.gather(
            self._fixed.of(scope, budget),
            self._facts(scope),
            self._episodes.shown(scope, _NOTES),
            self._quotes(scope, thread),
        )
        names = {line.name for line in fixed.lines}
        lines = {line.name: line for line in (*fixed.others, *facts)}
        told = [each for each in lines.values() if each.text and each.name not in names]
        others = (each for each in notes if each.session_id != thread)
        told += [line for each in others for line in note_lines(each)]
        told.sort(key=lambda line: line.moment)
        return Known(
            fixed=fixed.lines,
            left_out=fixed.left_out,
            facts=told,
            quotes=sorted(quotes, key=lambda line: line.moment),
        )

    async def _facts(self, scope: Scope) -> list[Line]:
        """Return the newest facts; only those with authority stand in a system prompt."""
        found = await self._recall.newest(scope, _FACTS)
        return [fact_line(each.memory) for each in found if has_authority(each.memory)]

    async def _quotes(self, scope: Scope, thread: str) -> list[Line]:
        """Return the turns of the user that no extraction has read; each text once."""
        unread = await self._unread(scope)
        if unread is not None and not unread:
            return []
        turns = await self._store.search(scope.transcripts, None, _TURNS, recursive=True)
        said = [
            turn
            for turn in turns
            if turn.metadata.get("speaker") == "user"
            and turn.namespace[-1] != thread
            and (unread is None or _place(turn) in unread)
        ]
        # What they quote may be anybody's words.
        quotes = (quote_line(turn, self._count, is_own=True) for turn in said)
        return list({line.text: line for line in quotes if line.text}.values())


def _place(turn: StoreItem) -> tuple[str, Any]:
    return turn.namespace[-1], turn.metadata.get("number")
