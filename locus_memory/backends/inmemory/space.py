"""One namespace of the in-memory store: its records, their order and its indexes."""

from __future__ import annotations

import bisect
import heapq
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from locus_memory.backends.inmemory.index import TextIndex, Vectors, rank
from locus_memory.backends.selection import Page, Past, by_distance, check_dimension
from locus_memory.store.encoding import prefix_upper_bound
from locus_memory.store.filters import All, Condition, matches
from locus_memory.store.item import (
    Namespace,
    Put,
    SemanticSearchResult,
    StoreItem,
    timestamp,
)
from locus_memory.store.json_values import decode_json, encode_json, encode_metadata
from locus_memory.store.text import count_tokens, indexed, stem

__all__ = ["Content", "Hit", "Record", "Space", "best", "newest", "ranked", "similar"]

_FIRST: Final = 64
"""How many hits are sorted at first."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a put: JSON as bytes, so that no caller has an alias of it."""

    value: bytes
    metadata: bytes
    words: Mapping[str, int]
    embedding: bytes | None

    @classmethod
    def of(cls, put: Put, embedding: bytes | None) -> Content:
        """Check a put, and return its content."""
        return cls(
            value=encode_json(put.value),
            metadata=encode_metadata(put.metadata),
            words=count_tokens(indexed(put.value, put.text)),
            embedding=embedding,
        )


@dataclass(frozen=True, slots=True)
class Record:
    """A stored item; `sequence` numbers the writes of the store."""

    content: Content
    past: Past
    sequence: int


@dataclass(slots=True)
class Space:
    """One namespace: its records in order of their writes, their keys in order, and its indexes.

    There is an index of the vectors of each length, by their bytes.
    """

    namespace: Namespace
    records: dict[str, Record] = field(default_factory=dict[str, Record])
    keys: list[str] = field(default_factory=list[str])
    text: TextIndex = field(default_factory=TextIndex)
    vectors: dict[int, Vectors] = field(default_factory=dict[int, Vectors])

    def add(self, key: str, record: Record) -> None:
        """Add a record under an unused key."""
        self.records[key] = record
        bisect.insort(self.keys, key)
        self.text.add(key, record.content.words)
        vector = record.content.embedding
        if vector is not None:
            self.vectors.setdefault(len(vector), Vectors()).add(key, vector)

    def newest(self) -> Iterator[Hit]:
        """Yield a hit for each record, the newest write first."""
        return (Hit(self, key) for key in reversed(self.records))

    def restore_order(self) -> None:
        """Put the records in order of their writes, after records of before were added again."""
        ordered = sorted(self.records.items(), key=lambda each: each[1].sequence)
        self.records = dict(ordered)

    def remove(self, key: str) -> None:
        """Delete the record of a key."""
        record = self.records.pop(key)
        del self.keys[bisect.bisect_left(self.keys, key)]
        self.text.remove(key, record.content.words)
        vector = record.content.embedding
        if vector is not None:
            self.vectors[len(vector)].remove(key)
            if not self.vectors[len(vector)]:
                del self.vectors[len(vector)]

    def item(self, key: str, score: float | None = None) -> StoreItem:
        """Return the item under a key, newly decoded."""
        record, past = self.records[key], self.records[key].past
        return StoreItem(
            namespace=self.namespace,
            key=key,
            value=decode_json(record.content.value),
            metadata=decode_json(record.content.metadata),
            created_at=timestamp(past.created_at),
            updated_at=timestamp(past.updated_at),
            version=past.version,
            score=score,
            expires_at=None if past.expires_at is None else timestamp(past.expires_at),
        )

    def between(self, prefix: str, after: str | None, *, descending: bool) -> Iterator[str]:
        """Yield the keys that start with `prefix` and come after `after`, in order."""
        bound = prefix_upper_bound(prefix)
        start = bisect.bisect_left(self.keys, prefix)
        stop = len(self.keys) if bound is None else bisect.bisect_left(self.keys, bound)
        if after is not None and descending:
            stop = min(stop, bisect.bisect_left(self.keys, after))
        elif after is not None:
            start = max(start, bisect.bisect_right(self.keys, after))
        positions = range(start, stop)
        return (self.keys[each] for each in (reversed(positions) if descending else positions))


@dataclass(frozen=True, slots=True)
class Hit:
    """A candidate of a search; among equals, the one written last is better."""

    space: Space
    key: str
    score: float | None = None

    def item(self) -> StoreItem:
        """Return the item with its score."""
        return self.space.item(self.key, self.score)

    def order(self) -> tuple[float, int]:
        """Return the sort key, which is greater for a better hit."""
        return self.score or 0.0, self.space.records[self.key].sequence

    def semantic(self) -> SemanticSearchResult:
        """Return the hit as a result of a vector search; its score is a cosine."""
        return by_distance(self.item(), 1.0 - (self.score or 0.0))


def newest(spaces: Sequence[Space]) -> Iterator[Hit]:
    """Yield a hit for each item, the newest write first."""
    # A key that is written again moves to the end.
    runs = [space.newest() for space in spaces]
    return runs[0] if len(runs) == 1 else heapq.merge(*runs, key=Hit.order, reverse=True)


def ranked(spaces: Sequence[Space], words: Iterable[str]) -> Iterator[Hit]:
    """Yield a hit for each item that has any of the words of a query, best first."""
    scores = rank([space.text for space in spaces], list(map(stem, words)))
    values = [score for found in scores for score in found.values()]

    def at_least(count: int) -> Iterator[Hit]:
        last = heapq.nlargest(count, values)[-1] if values else 0.0
        for space, found in zip(spaces, scores, strict=True):
            yield from (Hit(space, key, score) for key, score in found.items() if score >= last)

    return _best_first(len(values), at_least)


def similar(spaces: Sequence[Space], query: bytes) -> Iterator[Hit]:
    """Yield a hit for each item whose vector has the query's length, best first.

    Raises:
        InvalidEmbeddingError: All the vectors have another length.
    """
    import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

    found = [
        (space, *space.vectors[len(query)].similarities(query))
        for space in spaces
        if len(query) in space.vectors
    ]
    cosines = np.concatenate([np.empty(0, np.float32), *(each for _, _, each in found)])
    if not len(cosines):
        others = (size // 4 for space in spaces for size in space.vectors)
        check_dimension(len(query) // 4, min(others, default=None))

    def at_least(count: int) -> Iterator[Hit]:
        if not len(cosines):
            return
        last = np.partition(cosines, len(cosines) - count)[len(cosines) - count]
        for space, keys, each in found:
            for place in np.flatnonzero(each >= last).tolist():
                yield Hit(space, keys[place], float(each[place]))

    return _best_first(len(cosines), at_least)


def _best_first(count: int, at_least: Callable[[int], Iterable[Hit]]) -> Iterator[Hit]:
    """Yield hits, best first: of many, few are made and sorted.

    Args:
        count: The number of hits.
        at_least: Returns this many of the best in any order, and all that score as the last.
    """
    done, wanted = 0, _FIRST
    while done < count:
        hits = sorted(at_least(min(count, wanted)), key=Hit.order, reverse=True)
        yield from hits[done:]
        done, wanted = len(hits), wanted * 8


def best(hits: Iterable[Hit], condition: Condition, page: Page) -> Iterator[Hit]:
    """Yield a page of the hits that satisfy the filter; they come best first."""
    kept = hits if condition == All(()) else (hit for hit in hits if _satisfies(hit, condition))
    # islice accepts no larger numbers.
    start, stop = min(page.offset, sys.maxsize), min(page.offset + page.limit, sys.maxsize)
    return itertools.islice(kept, start, stop)


def _satisfies(hit: Hit, condition: Condition) -> bool:
    content = hit.space.records[hit.key].content
    return matches(condition, decode_json(content.value), decode_json(content.metadata))
