"""The indexes of the in-memory store: words, vectors and moments of expiry."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from locus_memory.store.text import stem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Expiry", "TextIndex", "Vectors", "rank"]

# The usual constants of BM25: S. Robertson and H. Zaragoza, "The Probabilistic Relevance
# Framework: BM25 and Beyond", Foundations and Trends in Information Retrieval 3(4), 2009.
_K1, _B = 1.2, 0.75


class TextIndex:
    """An inverted index of one namespace.

    Attributes:
        postings: For each word, how often each key has it.
        lengths: The number of words of each key.
        total: The number of words of all keys.
    """

    __slots__ = ("lengths", "postings", "total")

    def __init__(self) -> None:
        self.postings: dict[str, dict[str, int]] = {}
        self.lengths: dict[str, int] = {}
        self.total = 0

    def add(self, key: str, words: Mapping[str, int]) -> None:
        """Add a key that the index does not have, with its words and their counts."""
        for word, count in words.items():
            self.postings.setdefault(word, {})[key] = count
        self.lengths[key] = sum(words.values())
        self.total += self.lengths[key]

    def remove(self, key: str, words: Mapping[str, int]) -> None:
        """Delete a key and the words with which it was added."""
        for word in words:
            keys = self.postings[word]
            del keys[key]
            if not keys:
                del self.postings[word]
        self.total -= self.lengths.pop(key)

    def having(self, word: str) -> Mapping[str, int]:
        """Return how often each key has a word, or words that begin as one that ends in a star."""
        if not word.endswith("*"):
            return self.postings.get(word, {})
        found = Counter[str]()
        for each in filter(methodcaller("startswith", stem(word[:-1])), self.postings):
            found.update(self.postings[each])
        return found


def rank(indexes: Sequence[TextIndex], words: Sequence[str]) -> list[dict[str, float]]:
    """Return the BM25 score of each key that has any of the words, one mapping per index.

    The weight of a word depends on how rare it is in all the indexes together.
    """
    documents = sum(len(index.lengths) for index in indexes)
    mean_length = sum(index.total for index in indexes) / max(documents, 1)
    scores: list[dict[str, float]] = [defaultdict(float) for _ in indexes]
    for word in set(words):
        postings = [index.having(word) for index in indexes]
        having = sum(map(len, postings))
        weight = math.log1p((documents - having + 0.5) / (having + 0.5))
        for index, keys, score in zip(indexes, postings, scores, strict=True):
            for key, count in keys.items():
                norm = 1 - _B + _B * index.lengths[key] / mean_length
                score[key] += weight * count * (_K1 + 1) / (count + _K1 * norm)
    return scores


class Vectors:
    """The vectors of one length: a matrix with room for more, and those that are not in it yet."""

    __slots__ = ("_keys", "_matrix", "_new", "_places")

    def __init__(self) -> None:
        self._new: dict[str, bytes] = {}
        self._keys: list[str] = []
        self._places: dict[str, int] = {}
        self._matrix: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self._keys) + len(self._new)

    def add(self, key: str, vector: bytes) -> None:
        """Add a unit vector, as float32, under a key that has none."""
        self._new[key] = vector

    def remove(self, key: str) -> None:
        """Delete the vector of a key; the last row takes its place."""
        if self._new.pop(key, None) is not None or self._matrix is None:
            return
        place, last = self._places.pop(key), self._keys.pop()
        if last != key:
            self._keys[place], self._places[last] = last, place
            self._matrix[place] = self._matrix[len(self._keys)]

    def similarities(self, query: bytes) -> tuple[list[str], NDArray[np.float32]]:
        """Return the keys, and the cosines of their vectors."""
        import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

        from locus_memory.backends.products import products  # noqa: PLC0415 - it loads numpy

        matrix = self._matrix
        if self._new or matrix is None:
            joined = np.frombuffer(b"".join(self._new.values()), "<f4")
            start, count = len(self._keys), len(self)
            if matrix is None or len(matrix) < count:
                matrix = np.empty((count + start // 4, len(query) // 4), np.float32)
                if self._matrix is not None:
                    matrix[:start] = self._matrix[:start]
            matrix[start:count] = joined.reshape(-1, len(query) // 4)
            self._places.update(zip(self._new, range(start, count), strict=True))
            self._keys += self._new
            self._matrix, self._new = matrix, {}
        return self._keys, products(matrix[: len(self)], np.frombuffer(query, "<f4"))


class Expiry:
    """The expiry moments of names, soonest first."""

    __slots__ = ("_heap", "_moments")

    def __init__(self) -> None:
        self._moments: dict[Any, float] = {}
        self._heap: list[tuple[float, Any]] = []

    def set(self, name: Any, moment: float | None) -> None:
        """Set the expiry of `name` to `moment`, in seconds since the epoch, or to never."""
        if moment is None:
            self._moments.pop(name, None)
            return
        self._moments[name] = moment
        heapq.heappush(self._heap, (moment, name))
        # Replaced entries stay in the heap: bound them.
        if len(self._heap) > 2 * len(self._moments) + 64:
            self._heap = [(moment, name) for name, moment in self._moments.items()]
            heapq.heapify(self._heap)

    def due(self, now: float) -> Iterator[Any]:
        """Yield, and forget, the names that have expired."""
        while self._heap and self._heap[0][0] <= now:
            moment, name = heapq.heappop(self._heap)
            if self._moments.get(name) == moment:
                del self._moments[name]
                yield name
