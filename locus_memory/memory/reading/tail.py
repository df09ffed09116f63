"""The tail of what a run is shown: what answers the message, and what is new."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import Final

from locus_memory._internal.offload import aside
from locus_memory.memory.layers.episodes import read_episode
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import has_authority, is_expired
from locus_memory.memory.moments import read_moment
from locus_memory.memory.reading.lines import (
    Line,
    always_line,
    fact_line,
    note_lines,
    quote_line,
    rule_line,
)
from locus_memory.memory.reading.reading import Reading
from locus_memory.memory.reading.stable import Stable
from locus_memory.memory.recall.recall import FLOOR
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.ranking.ranking import Ranked
from locus_memory.store.item import StoreItem
from locus_memory.store.text import query_words, stem

__all__ = ["tail_lines"]

_NEWEST: Final = 20
_FACTS, _NOTES, _TURNS = 100, 20, 120
"""How many of each a search returns."""

_SHORT: Final = 500
"""A text of so many characters is quoted in no time."""


async def tail_lines(
    reading: Reading, scope: Scope, query: str | None, stable: Stable, thread: str
) -> list[Line]:
    """Return the lines that may stand in the tail, the best first.

    First what is new since the stable part was built, then what is relevant to the message.
    Nothing that the stable part shows, and nothing that this thread said.

    Args:
        reading: What is read.
        scope: The scope.
        query: The message; without one, there is only what is new.
        stable: The stable part of the thread.
        thread: The thread.

    Raises:
        BackendError: The store failed.
    """
    memories = _memories(reading, scope, query, stable, thread)
    if not query:
        return (await memories)[0]
    (new, facts), notes, quotes = await asyncio.gather(
        memories,
        _notes(reading, scope, query, thread),
        _quotes(reading, scope, query, thread),
    )
    # The best of each kind in turn: their scores are of different searches.
    turns = chain.from_iterable(zip_longest(facts, notes, quotes))
    relevant = [each for each in turns if each and each.relevance >= FLOOR]
    return list(_once([*new, *(each for each in relevant if each.name not in stable.names)]))


async def _memories(
    reading: Reading, scope: Scope, query: str | None, stable: Stable, thread: str
) -> tuple[list[Line], list[Line]]:
    """Return the memories that are new, and those that a query finds, also without authority."""
    items: list[StoreItem] = []
    if stable.is_kept:
        items = await reading.recall.store.search(scope.current, None, _NEWEST)
    new = _new(reading, items, stable, thread)
    # Where there are none, there is nothing to search.
    if not query or not (items or stable.seen_at):
        return new, []
    _, found = await reading.recall.matches(scope, _FACTS, query)
    told = (each for each in found if each.name not in stable.names)
    return new, [fact_line(each.memory, relevance=each.relevance) for each in told]


def _new(reading: Reading, items: Iterable[StoreItem], stable: Stable, thread: str) -> list[Line]:
    """Return memories with authority that were written since, elsewhere than in this thread."""
    seen = read_moment(stable.seen_at)
    told = [read_memory(item) for item in items if seen is None or item.updated_at >= seen]
    shown = frozenset(stable.text.splitlines())
    return [
        fact_line(each, relevance=1.0)
        for each in told
        if each is not None
        and has_authority(each)
        and each.metadata.get("thread_id") != thread
        and not is_expired(each, reading.now())
        and shown.isdisjoint(form(each).text for form in (fact_line, rule_line, always_line))
    ]


async def _notes(reading: Reading, scope: Scope, query: str, thread: str) -> list[Line]:
    hits = await reading.recall.hits(reading.recall.notes, scope.episodes, _NOTES, query)
    read = [(read_episode(hit.item), hit.relevance) for hit in hits]
    return [
        line
        for episode, relevance in read
        if episode is not None and episode.session_id != thread
        for line in note_lines(episode, relevance=relevance, of_tools=True)
    ]


async def _quotes(reading: Reading, scope: Scope, query: str, thread: str) -> list[Line]:
    hits = await reading.recall.hits(
        reading.recall.turns, scope.transcripts, _TURNS, query, recursive=True
    )
    told = [each for each in hits if each.relevance >= FLOOR and each.item.namespace[-1] != thread]
    long = [size for each in told if (size := len(each.passage.text)) > _SHORT]
    return await aside(len(query) + sum(long), _quoted, reading, query, told)


def _quoted(reading: Reading, query: str, told: Sequence[Ranked]) -> list[Line]:
    words = frozenset(map(stem, query_words(query)))
    return [quote_line(each.item, reading.count, words, relevance=each.relevance) for each in told]


def _once(lines: Iterable[Line]) -> Iterable[Line]:
    """Yield lines without repetitions of a name or a text."""
    seen: set[str] = set()
    for line in lines:
        if line.text and line.name not in seen and line.text not in seen:
            seen |= {line.name, line.text}
            yield line
