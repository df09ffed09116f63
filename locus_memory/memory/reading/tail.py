"""The tail of what a run is shown: what answers the message, and what is new."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final

from locus_memory._internal.offload import aside
from locus_memory.conversation.tokens import TokenCounter
from locus_memory.memory.layers.episodes import EPISODE_FIELDS, read_episode
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
from locus_memory.memory.reading.stable import Stable
from locus_memory.memory.recall.recall import FLOOR, Recall
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.ranking import Ranked
from locus_memory.store.item import StoreItem
from locus_memory.store.text import query_words, stem

__all__ = ["Tail"]

_NEWEST: Final = 20
_FACTS, _NOTES, _TURNS = 100, 20, 120
"""How many of each a search returns."""

_WORDS: Final = SearchOptions(depth=_TURNS, query_words=64)


class Tail:
    """A search for the lines of the tail, in the store of the memories.

    Args:
        recall: Finds memories.
        count: Counts tokens.
    """

    def __init__(self, recall: Recall, count: TokenCounter) -> None:
        self._recall = recall
        self._count = count
        search = partial(HybridSearch, recall.store, recall.embedder, options=_WORDS)
        self._turns, self._episodes = search(), search(fields=EPISODE_FIELDS)

    async def lines(
        self, scope: Scope, query: str | None, stable: Stable, thread: str, now: str
    ) -> list[Line]:
        """Return the lines that may stand in the tail, the best first.

        First what is new since the stable part was built, then what is relevant to the message.
        Nothing that the stable part shows, and nothing that this thread said.

        Args:
            scope: The scope.
            query: The message; without one, there is only what is new.
            stable: The stable part of the thread.
            thread: The thread.
            now: The present moment, ISO 8601 in UTC.

        Raises:
            BackendError: The store failed.
        """
        new = self._new(scope, stable, thread, now)
        if not query:
            return await new
        found = await asyncio.gather(
            new,
            self._facts(scope, query, stable),
            self._notes(scope, query, thread),
            self._quotes(scope, query, thread),
        )
        shown = stable.names if not found[0] else stable.names - {each.name for each in found[0]}
        # The best of each kind in turn: their scores are of different searches.
        turns = zip_longest(*found[1:])
        relevant = [each for turn in turns for each in turn if each and each.relevance >= FLOOR]
        return list(_once([*found[0], *(each for each in relevant if each.name not in shown)]))

    async def _new(self, scope: Scope, stable: Stable, thread: str, now: str) -> list[Line]:
        """Return memories with authority that were written since, elsewhere than in this thread."""
        if not stable.is_kept:
            return []
        seen = read_moment(stable.seen_at)
        items = await self._recall.store.search(scope.current, None, _NEWEST)
        told = [read_memory(item) for item in items if seen is None or item.updated_at >= seen]
        shown = frozenset(stable.text.splitlines())
        return [
            fact_line(each, relevance=1.0)
            for each in told
            if each is not None
            and has_authority(each)
            and each.metadata.get("thread_id") != thread
            and not is_expired(each, now)
            and shown.isdisjoint(form(each).text for form in (fact_line, rule_line, always_line))
        ]

    async def _facts(self, scope: Scope, query: str, stable: Stable) -> list[Line]:
        """Return the memories that a query finds, also those without authority."""
        found = await self._recall.about(scope, _FACTS, query)
        told = (each for each in found if each.name not in stable.names)
        return [fact_line(each.memory, relevance=each.relevance) for each in told]

    async def _notes(self, scope: Scope, query: str, thread: str) -> list[Line]:
        hits = await self._recall.hits(self._episodes, scope.episodes, _NOTES, query)
        read = [(read_episode(hit.item), hit.relevance) for hit in hits]
        return [
            line
            for episode, relevance in read
            if episode is not None and episode.session_id != thread
            for line in note_lines(episode, relevance=relevance, of_tools=True)
        ]

    async def _quotes(self, scope: Scope, query: str, thread: str) -> list[Line]:
        hits = await self._recall.hits(
            self._turns, scope.transcripts, _TURNS, query, recursive=True
        )
        told = [
            each
            for each in hits
            if each.relevance >= FLOOR
            and each.item.namespace[-1] != thread
            and _has_text(each.item)
        ]
        size = len(query) + sum(len(each.item.value["text"]) for each in told)
        return await aside(size, self._quoted, query, told)

    def _quoted(self, query: str, told: Sequence[Ranked]) -> list[Line]:
        words = frozenset(map(stem, query_words(query)))
        return [
            quote_line(each.item, self._count, words, relevance=each.relevance) for each in told
        ]


def _has_text(turn: StoreItem) -> bool:
    return isinstance(turn.value, dict) and bool(turn.value.get("text"))


def _once(lines: Iterable[Line]) -> Iterable[Line]:
    """Yield lines without repetitions of a name or a text."""
    seen: set[str] = set()
    for line in lines:
        if line.text and line.name not in seen and line.text not in seen:
            seen |= {line.name, line.text}
            yield line
