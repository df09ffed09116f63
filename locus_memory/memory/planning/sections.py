"""The search for the contents of each section of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from locus_memory.memory.blend import Blend
from locus_memory.memory.inject import memory_line
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, read_episode
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.planning.decision import Decision
from locus_memory.memory.planning.evidence import (
    content_words,
    evidence_of,
    is_near,
)
from locus_memory.memory.planning.gate import Sight
from locus_memory.memory.planning.lines import about_line, episode_line, turn_line, turn_text
from locus_memory.memory.planning.names import Names
from locus_memory.memory.planning.standing import Standing, StandingBook
from locus_memory.memory.recall.found import Fact, Facts
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import Scope, current_key
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.scale import is_measured
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.store.base import BaseStore
from locus_memory.store.item import StoreItem

__all__ = ["Found", "Sections"]

_SEEN: Final = 20
"""How many facts and episodes the gate looks at."""

_EPISODES, _LATEST, _TURNS = 5, 2, 6

_BESIDE, _ENOUGH, _FILL = 5, 3, 8
"""How many found facts stand beside a narrative; how many are enough without one; and how many of
the most salient fill up fewer: "Where do I work?" has few words to search for."""

_OF_EPISODES: Final = Fields(speaker=(), role=(), date=("ended_at",), session=(), position=())
_FEW_WORDS: Final = SearchOptions(depth=40, query_words=12)

_LAST: Final = frozenset(("an open pronoun", "an earlier talk"))
"""The reasons that point at the latest episodes if no word of the message finds another one."""


@dataclass(frozen=True, slots=True)
class Found:
    """The lines of a section, best first.

    Attributes:
        lines: One-line texts.
        names: For each line, the `current_key` of its memory; empty for anything else.
    """

    lines: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Found:
        """Return the lines of pairs of a line and a name, without empty and repeated lines."""
        kept = dict(pair for pair in pairs if pair[0])
        return cls(tuple(kept), tuple(kept.values()))


class Sections:
    """Searches the sections of scopes.

    Args:
        store: The store, which this never closes.
        recall: The search for memories.
        embedder: Finds episodes and turns by meaning as well, where they have vectors.
        longest: The most characters of a text in a line.
        limit: The most memories of a section.
        blend: The order of the memories; `None`: that of the search.
    """

    def __init__(
        self,
        store: BaseStore,
        recall: Recall,
        embedder: Embedder | None,
        *,
        longest: int,
        limit: int,
        blend: Blend | None = None,
    ) -> None:
        self._limit = limit
        self._blend = blend
        self._seen = max(_SEEN, limit)
        self._store = store
        self._recall = recall
        self._embedder = embedder
        self._longest = longest
        self._vitals = VitalsBook(store)
        self._book = EpisodeBook(store)
        self._episodes = HybridSearch(store, embedder, options=_FEW_WORDS, fields=_OF_EPISODES)
        self._turns = HybridSearch(store, embedder, options=_FEW_WORDS)

    async def sight(self, scope: Scope, query: str, standing: Standing) -> tuple[Sight, Facts]:
        """Return what the gate needs, and the facts that were found on the way.

        The names of episodes are read only where the facts do not open the gate.

        Raises:
            BackendError: The store failed.
        """
        facts = await self.facts(scope, query)
        texts = [fact.memory.content for fact in facts.facts[: self._seen]]
        # Half a character names nobody.
        said = query.encode("utf-8", "replace").decode()
        names = Names.of_message(said, texts)
        evidence = self.evidence(query, facts, standing)
        if evidence is None and not names.are_in(said):
            episodes = await self._episodes_about(scope, query, _SEEN)
            names = Names.of(chain.from_iterable(each.entities for each, _ in episodes))
        return Sight(names, evidence), facts

    def evidence(self, query: str, found: Facts, standing: Standing) -> str | None:
        """Return why found facts say something about a message; `None`: they do not."""
        evidence = evidence_of(query, found.facts[: self._seen], standing.facts)
        return "a near vector" if evidence is None and self._is_near(query, found) else evidence

    def _is_near(self, query: str, found: Facts) -> bool:
        """Return whether a vector is evidence; not on a scale that nobody measured."""
        if self._embedder is None or not is_measured(self._embedder.name):
            return False
        return is_near(query, (fact.nearness for fact in found.facts))

    async def facts(self, scope: Scope, query: str | None) -> Facts:
        """Return the current memories that a query finds; the newest without a query.

        Where the store cannot search, these are the newest memories with a word of the query.

        Raises:
            BackendError: The store failed.
        """
        if query and await self._recall.can_search():
            deep = self._blend is not None
            return await self._recall.about(scope, self._seen, query, deep=deep)
        newest = await self._recall.newest(scope, self._seen)
        if not query:
            return newest
        words = content_words(query)
        told = (each for each in newest.facts if words & content_words(each.memory.content))
        return Facts(tuple(told))

    async def pinned(self, scope: Scope, found: Facts, standing: Standing) -> Found:
        """Return memories, ranked by their score and their salience.

        The score is that of the search, or of the blend. A memory that always holds is left out,
        since it is shown already.

        Raises:
            BackendError: The store failed.
        """
        found = await self._ordered(scope, found)
        known = {name for _, name in standing.ruled}
        facts = [fact for fact in found.facts if fact.name not in known]
        told = {fact.name: fact.memory for fact in facts}
        saliences = await self._vitals.saliences(scope, told, found.vitals)

        def worth(fact: Fact) -> float:
            return fact.score * (0.5 + 0.5 * saliences[fact.name])

        best = sorted(facts, key=worth, reverse=True)[: self._limit]
        return Found.of((memory_line(each.memory, self._longest), each.name) for each in best)

    def after(self, memories: Iterable[Memory], section: Found) -> Found:
        """Return a section with these memories in front of it, and within its limit."""
        rest = zip(section.lines, section.names, strict=True)
        found = Found.of([*self._pairs(memories), *rest])
        return Found(found.lines[: self._limit], found.names[: self._limit])

    async def identity(
        self, scope: Scope, found: Facts, standings: StandingBook, standing: Standing
    ) -> Found:
        """Return the narrative, the derived facts, and the memories of the user that a query finds.

        Without a narrative and derived facts, the most salient memories of the user fill up.

        Raises:
            BackendError: The store failed.
        """
        found = await self._ordered(scope, found)
        identity = standing.identity
        told = [identity.content, *(fact.text for fact in reversed(identity.facts))]
        about = [(about_line(text), "") for text in told if text]
        users = await standings.of_type(scope, MemoryType.USER)
        places = {fact.name: place for place, fact in enumerate(found.facts)}
        named = [each for each in users if current_key(each.type, each.key) in places]
        named.sort(key=lambda each: places[current_key(each.type, each.key)])
        if about:
            return Found.of([*about, *self._pairs(named[:_BESIDE])])
        if len(named) >= _ENOUGH:
            return Found.of(self._pairs(named))
        others = await standings.ranked(scope, [each for each in users if each not in named])
        return Found.of(self._pairs([*named, *others[: _FILL if named else None]]))

    async def episodes(self, scope: Scope, query: str) -> tuple[Found, float]:
        """Return the episodes that a query finds, and the highest relevance of one.

        Raises:
            BackendError: The store failed.
        """
        found = await self._episodes_about(scope, query, _EPISODES)
        best = max((relevance for _, relevance in found), default=0.0)
        return Found.of((episode_line(each), "") for each, _ in found), best

    async def latest(self, scope: Scope, decision: Decision) -> Found:
        """Return the latest episodes, if the message points at them.

        Raises:
            BackendError: The store failed.
        """
        if decision.reason not in _LAST:
            return Found()
        found = await self._book.newest(scope, _LATEST)
        return Found.of((episode_line(each), "") for each in found)

    async def transcript(self, scope: Scope, query: str) -> Found:
        """Return the turns that a query finds, each between its neighbours.

        Text search sees a turn together with its neighbours, so that a turn counts only if it has a
        word of the query itself; if none has, the best one counts.

        Raises:
            BackendError: The store failed.
        """
        hits = await self._recall.hits(
            self._turns, scope.transcripts, _TURNS, query, recursive=True
        )
        words = content_words(query)
        items = [hit.item for hit in hits]
        own = [item for item in items if words & content_words(turn_text(item))] or items[:1]
        groups = await asyncio.gather(*map(self._with_neighbours, own))
        turns = chain.from_iterable(groups)
        return Found.of((turn_line(item, self._longest), "") for item in turns)

    async def _ordered(self, scope: Scope, found: Facts) -> Facts:
        """Return facts in the order of the blend; those that no query found have none."""
        if self._blend is None or not found.of_query:
            return found
        return await self._recall.blended(scope, found, self._blend)

    async def _episodes_about(
        self, scope: Scope, query: str, limit: int
    ) -> list[tuple[Episode, float]]:
        """Return the episodes that a query finds, each with its relevance."""
        hits = await self._recall.hits(self._episodes, scope.episodes, limit, query)
        read = ((read_episode(hit.item), hit.relevance) for hit in hits)
        return [(episode, relevance) for episode, relevance in read if episode is not None]

    async def _with_neighbours(self, turn: StoreItem) -> list[StoreItem]:
        before, after = await asyncio.gather(
            self._store.scan(turn.namespace, 1, after=turn.key, descending=True),
            self._store.scan(turn.namespace, 1, after=turn.key),
        )
        return [*before, turn, *after]

    def _pairs(self, memories: Iterable[Memory]) -> list[tuple[str, str]]:
        return [
            (memory_line(each, self._longest), current_key(each.type, each.key))
            for each in memories
        ]
