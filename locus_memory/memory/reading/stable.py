"""The stable part of what a run is shown: built when a thread begins, the same for all its runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Annotated, Final, TypeVar
from uuid import uuid4

from pydantic import Field

from locus_memory.memory.batch import insisting
from locus_memory.memory.layers.episodes import EpisodeBook
from locus_memory.memory.layers.fading import faded
from locus_memory.memory.layers.records import Tokens, readable, record_of, value_of
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.models import has_authority
from locus_memory.memory.moments import read_moment
from locus_memory.memory.reading.fixed import fixed_of
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
from locus_memory.memory.reading.reading import Reading
from locus_memory.memory.scope import Scope
from locus_memory.store.item import Put, StoreItem

__all__ = ["Stable", "build", "stable_of", "touch"]

_Value = TypeVar("_Value")
_NotStored = Annotated[_Value, Field(exclude=True)]

_FACTS: Final = 1_000
_NOTES: Final = 200
_TURNS: Final = 600
"""How many of the newest are looked at: more do not fit into any usual budget."""

_SLACK: Final = 60.0
"""Seconds that a part is kept beyond its last use: the clock of the database may differ."""


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
        used_at: The moment of the latest run, ISO 8601 in UTC; empty: it is not kept.
        id: Its own id, if it is kept: another part of the thread has another one.
        lines: The lines, if it was built just now.
        rest: What is known and not shown, likewise; some may be shown as well.
        is_kept: Whether it was built before, for an earlier run of the thread.
    """

    text: str
    tokens: Tokens
    names: frozenset[str]
    seen_at: str
    left_out: int = 0
    budget: int = 0
    since: str = ""
    used_at: str = ""
    id: str = ""
    lines: _NotStored[tuple[Line, ...]] = ()
    rest: _NotStored[tuple[Line, ...]] = ()
    is_kept: _NotStored[bool] = False


@insisting
async def stable_of(
    reading: Reading, scope: Scope, thread: str, budget: int, *, keeps: bool = True
) -> Stable:
    """Return the stable part of a thread: that of its last run, or a new one.

    That of the last run is built again if this one has a smaller budget.

    Args:
        reading: What is read.
        scope: The scope.
        thread: The thread.
        budget: The tokens of the stable part and the tail together.
        keeps: Whether a new one is kept for the next run.

    Raises:
        VersionConflictError: Other runs of the thread were faster each time.
        BackendError: The store failed.
    """
    item = await reading.recall.store.get_item(scope.blocks, thread)
    kept = None if item is None else _read(item)
    if kept is not None and kept.budget <= budget and _is_fresh(reading, kept):
        return kept
    built = replace(await build(reading, scope, thread, budget), id=uuid4().hex)
    if not keeps:
        return built
    # If another process began the thread as well, both show what was kept first.
    await _keep(reading, scope, thread, built, 0 if item is None else item.version)
    again = await build(reading, scope, thread, budget)
    if again.text != built.text:
        # It may show what was erased after it was read, and kept after that.
        await reading.recall.store.delete(scope.blocks, thread)
    return replace(again, id=built.id)


async def _keep(
    reading: Reading, scope: Scope, thread: str, stable: Stable, version: int, *also: Put
) -> None:
    """Write the part of a thread, for as long as it may be shown, and `also` with it."""
    put = Put(
        namespace=scope.blocks,
        key=thread,
        value=value_of(replace(stable, used_at=reading.now())),
        ttl=reading.options.cache_idle + _SLACK,
        if_version=version,
        text="",
    )
    await reading.recall.store.put_batch([put, *also])


def _is_fresh(reading: Reading, stable: Stable) -> bool:
    """Return whether a part was used so lately that it is shown again."""
    used_at, now = read_moment(stable.used_at), read_moment(reading.now())
    if used_at is None or now is None:
        return False
    return 0 <= (now - used_at).total_seconds() <= reading.options.cache_idle


@insisting
async def touch(reading: Reading, scope: Scope, thread: str, stable: Stable, *also: Put) -> None:
    """Record that a run of the thread used its stable part now, and write `also` with that.

    If the part was dropped meanwhile, or is another one since, nothing is written: `also` may
    show what was erased.

    Args:
        reading: What is read.
        scope: The scope.
        thread: The thread.
        stable: The part that the run was shown.
        also: Further writes.

    Raises:
        VersionConflictError: Other runs of the thread were faster each time.
        BackendError: The store failed.
    """
    item = await reading.recall.store.get_item(scope.blocks, thread)
    kept = None if item is None else _read(item)
    if item is not None and kept is not None and kept.id == stable.id:
        await _keep(reading, scope, thread, kept, item.version, *also)


async def build(reading: Reading, scope: Scope, thread: str, budget: int) -> Stable:
    """Return the stable part that a thread would get now; nothing is kept.

    Args:
        reading: What is read.
        scope: The scope.
        thread: The thread.
        budget: As for `stable_of`.

    Raises:
        BackendError: The store failed.
    """
    newest = await reading.recall.store.search(scope.current, None, 1)
    (always, left_out, others), facts, notes, quotes = await asyncio.gather(
        fixed_of(reading, scope, budget),
        _facts(reading, scope),
        _notes(reading, scope, thread),
        _quotes(reading, scope, thread),
    )
    holding = {line.name for line in always}
    named = {line.name: line for line in (*others, *facts)}
    told = [each for each in (*named.values(), *notes) if each.text and each.name not in holding]
    told.sort(key=attrgetter("moment"))
    lines = await _chosen(reading, scope, always, told, quotes, budget=budget)
    texts = list(grouped(lines, reading.options.zone()))
    if any(line.kind in ("override", "rule") for line in lines):
        texts = [NOTE, *texts]
    return Stable(
        text="".join(f"{text}\n" for text in texts),
        tokens=sum(reading.count(f"{text}\n") for text in texts),
        names=frozenset(line.name for line in lines if line.name),
        seen_at=newest[0].updated_at.isoformat() if newest else "",
        left_out=len(left_out),
        budget=budget,
        since=oldest_word(lines),
        lines=tuple(lines),
        rest=(*left_out, *told, *quotes),
    )


async def _chosen(
    reading: Reading,
    scope: Scope,
    always: Sequence[Line],
    told: Sequence[Line],
    quotes: Sequence[Line],
    *,
    budget: int,
) -> list[Line]:
    """Return what is shown.

    Everything, if it fits into three quarters of the budget. If not, facts and notes have half
    of it, or what always holds leaves of it, the most salient and then the newest first, and
    there are no quotes.

    Args:
        reading: What is read.
        scope: The scope.
        always: What always holds.
        told: Facts and notes, from old to new.
        quotes: Turns, likewise.
        budget: The tokens of the block.
    """
    everything = [*always, *told, *quotes]
    fit = partial(fitting, count=reading.count, zone=reading.options.zone())
    fits, _ = fit(everything, budget * 3 // 4)
    if len(fits) == len(everything):
        return fits
    now, names = reading.now(), {each.name for each in told}
    said = await VitalsBook(reading.recall.store).told(scope, names)
    best = sorted(told, key=attrgetter("moment"), reverse=True)
    best.sort(key=lambda e: -faded(e.importance, max(e.moment, said.get(e.name, "")), now))
    _, spent = fit(always, budget)
    chosen, _ = fit(best, min(budget // 2, budget - spent))
    taken = set(map(id, chosen))
    return [*always, *(line for line in told if id(line) in taken)]


async def _facts(reading: Reading, scope: Scope) -> list[Line]:
    """Return the newest facts; only those with authority stand in a system prompt."""
    found = await reading.recall.newest(scope, _FACTS)
    return [fact_line(each.memory) for each in found if has_authority(each.memory)]


async def _notes(reading: Reading, scope: Scope, thread: str) -> list[Line]:
    """Return the newest notes, but those of the thread, whose own turns are visible in it."""
    sessions = await EpisodeBook(reading.recall.store).shown(scope, _NOTES)
    others = (each for each in sessions if each.session_id != thread)
    return [line for each in others for line in note_lines(each)]


async def _quotes(reading: Reading, scope: Scope, thread: str) -> list[Line]:
    """Return the turns of the user that no extraction has read, from old to new.

    Each text comes once, and none of the thread itself.
    """
    unread = None if reading.unread is None else await reading.unread(scope)
    if unread is not None and not unread:
        return []
    turns = await reading.recall.store.search(scope.transcripts, None, _TURNS, recursive=True)
    said = [
        turn
        for turn in turns
        if turn.metadata.get("speaker") == "user"
        and turn.namespace[-1] != thread
        and (unread is None or (turn.namespace[-1], turn.metadata.get("number")) in unread)
    ]
    # What they quote may be anybody's words.
    quotes = (quote_line(turn, reading.count, is_own=True) for turn in said)
    named = {line.text: line for line in quotes if line.text}
    return sorted(named.values(), key=attrgetter("moment"))


def _read(item: StoreItem) -> Stable | None:
    """Return the part of an item; `None`, with an event: it is none."""
    stable = readable(partial(record_of, Stable), item.value, "blocks")
    return stable and replace(stable, is_kept=True)
