"""Finding entries: hybrid search over their chunks, one hit an entry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from locus_memory._internal.neutral import neutralise
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.resources.operations import (
    Level,
)
from locus_memory.resources.reading.memories import FACTS, MemoriesView, as_segments
from locus_memory.resources.results import (
    MemoryHit,
)
from locus_memory.resources.storing.places import Path, Places
from locus_memory.resources.storing.plans import ABSTRACT
from locus_memory.resources.uri import MemoryURI
from locus_memory.retrieval.hybrid import Hit, HybridSearch
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace
from locus_memory.store.text import query_words, stem

__all__ = ["FIELDS", "TreeSearch", "blended"]

FIELDS: Final = Fields(
    text=("content",), title=("key",), speaker=(), role=(), date=(), session=(), position=()
)
"""The fields of chunks and memories; none is a turn of a conversation."""

_SNIPPET: Final = 300
_BEFORE: Final = 80
_FEWEST: Final = 40
_SESSION_WEIGHT: Final = 0.3
_USED_BONUS: Final = 0.05
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class TreeSearch:
    """Search in one tree.

    Attributes:
        store: The store.
        places: The places of the tree.
        hybrid: The search of the store.
        view: The memories, which are found as well.
    """

    store: BaseStore
    places: Places
    hybrid: HybridSearch
    view: MemoriesView

    async def find(
        self, query: str, target: MemoryURI, top_k: int, without: MemoryURI | None = None
    ) -> list[MemoryHit]:
        """Return the best entries at a URI and below it, and none of those at another one.

        A chunk counts only while the entry has the text that it was cut from.
        """
        spaces = self._spaces(target, without)
        best: dict[str, MemoryHit] = {}
        if not top_k or not query.strip():
            return []
        page, offset = max(_FEWEST, 4 * top_k), 0
        while True:
            found = await self.hybrid.search(spaces, query, page, offset=offset, recursive=True)
            current = await self._current(found)
            for hit in found:
                uri = self._place(hit, current)
                if uri is None or not uri.is_within(target) or (without and uri.is_within(without)):
                    continue
                is_abstract = "uri" in hit.item.metadata and hit.item.key == ABSTRACT
                level: Level = "abstract" if is_abstract else "detail"
                name, score = str(uri), min(1.0, max(0.0, hit.relevance))
                known = best.get(name) or MemoryHit(name, score, snippet(hit.text, query), level)
                best[name] = replace(known, score=max(known.score, score))
            if len(best) >= top_k or len(found) < page:
                break
            # An entry may have any number of chunks.
            offset, page = offset + page, 2 * page
        # The order is that of the ranking; the score is what can be compared.
        return list(best.values())[:top_k]

    def _spaces(self, target: MemoryURI, without: MemoryURI | None) -> list[Namespace]:
        spaces = [self.places.chunks(target.segments)]
        has_facts = not target.segments or target.segments[0] == FACTS
        if has_facts and not (without and MemoryURI((FACTS,)).is_within(without)):
            spaces.append((*self.view.manager().namespace, "current"))
        return spaces

    def _place(self, hit: Hit, current: Mapping[str, str]) -> MemoryURI | None:
        """Return the URI of what was found; `None`: it is the passage of an old text."""
        uri, digest = hit.item.metadata.get("uri"), hit.item.metadata.get("digest")
        if isinstance(uri, str):
            return MemoryURI.parse(uri) if current.get(uri) == digest else None
        memory = read_memory(hit.item)
        segments = None if memory is None else as_segments(memory)
        if memory is None or segments is None or not self.view.is_current(memory):
            return None
        return MemoryURI(segments)

    async def _current(self, hits: Iterable[Hit]) -> dict[str, str]:
        """Return the digests of the entries of chunks, by URI."""
        texts = {hit.item.metadata.get("uri") for hit in hits} - {None}
        paths: dict[str, Path] = {str(each): MemoryURI.parse(str(each)).segments for each in texts}
        names = {self.places.node(path): uri for uri, path in paths.items()}
        values = await self.store.get_batch(list(names))
        return {
            names[name]: value["digest"]
            for name, value in values.items()
            if isinstance(value, dict) and "digest" in value
        }


def blended(
    found: Sequence[MemoryHit], steered: Sequence[MemoryHit], used: Iterable[str]
) -> list[MemoryHit]:
    """Return the hits of a query, ranked with those of what a session is about.

    The score of a hit is that of the query and 0.3 of the other, and 0.05 more for an entry that
    the session used; at most 1.
    """
    about = {hit.uri: hit.score for hit in steered}
    liked = set(used)
    ranked = [
        hit.score + _SESSION_WEIGHT * about.get(hit.uri, 0.0) + _USED_BONUS * (hit.uri in liked)
        for hit in found
    ]
    order = sorted(range(len(found)), key=ranked.__getitem__, reverse=True)
    return [replace(found[place], score=min(1.0, ranked[place])) for place in order]


def snippet(text: str, query: str) -> str:
    """Return at most 300 characters around the first word of a query, as one harmless line."""
    words = set(map(stem, query_words(query)))
    place = next(
        (each.start() for each in _WORD.finditer(text) if stem(each[0].lower()) in words), 0
    )
    start = max(0, place - _BEFORE)
    if start:
        start = text.find(" ", start, place) + 1 or start
    return neutralise(text[start : start + 2 * _SNIPPET])[:_SNIPPET].strip()
