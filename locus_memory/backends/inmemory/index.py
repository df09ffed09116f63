"""The indexes of the in-memory store: words, vectors and moments of expiry."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Expiry", "TextIndex", "VectorIndex", "rank"]

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


def rank(indexes: Sequence[TextIndex], words: Sequence[str]) -> list[dict[str, float]]:
    """Return the BM25 score of each key that has any of the words, one mapping per index.

    The weight of a word depends on how rare it is in all the indexes together.
    """
    documents = sum(len(index.lengths) for index in indexes)
    mean_length = sum(index.total for index in indexes) / max(documents, 1)
    scores: list[dict[str, float]] = [defaultdict(float) for _ in indexes]
    for word in set(words):
        postings = [index.postings.get(word, {}) for index in indexes]
        having = sum(map(len, postings))
        weight = math.log1p((documents - having + 0.5) / (having + 0.5))
        for index, keys, score in zip(indexes, postings, scores, strict=True):
            for key, count in keys.items():
                norm = 1 - _B + _B * index.lengths[key] / mean_length
                score[key] += weight * count * (_K1 + 1) / (count + _K1 * norm)
    return scores


class VectorIndex:
    """The vectors of one namespace, stacked into a matrix when they are searched."""

    __slots__ = ("_matrices", "_vectors")

    def __init__(self) -> None:
        self._vectors: dict[str, bytes] = {}
        self._matrices: dict[int, tuple[list[str], NDArray[np.float32]]] = {}

    def add(self, key: str, vector: bytes) -> None:
        """Add a unit vector, as float32."""
        self._vectors[key] = vector
        self._matrices.clear()

    def remove(self, key: str) -> None:
        """Delete the vector of a key."""
        del self._vectors[key]
        self._matrices.clear()

    @property
    def dimensions(self) -> set[int]:
        """The lengths of the vectors."""
        return {len(vector) // 4 for vector in self._vectors.values()}

    def similarities(self, query: bytes) -> Iterator[tuple[str, float]]:
        """Yield each key whose vector has the length of `query`, with the cosine."""
        import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

        keys, matrix = self._matrix(len(query))
        cosines: list[float] = (matrix @ np.frombuffer(query, dtype="<f4")).tolist()
        return zip(keys, cosines, strict=True)

    def _matrix(self, size: int) -> tuple[list[str], NDArray[np.float32]]:
        import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

        if size not in self._matrices:
            chosen = {key: each for key, each in self._vectors.items() if len(each) == size}
            flat = np.frombuffer(b"".join(chosen.values()), dtype="<f4")
            self._matrices[size] = list(chosen), flat.reshape(len(chosen), size // 4)
        return self._matrices[size]


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
