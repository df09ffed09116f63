"""The weights of both searches for one query, from how well they do; pure.

A search always returns something, and its scores are stretched for each query: the best hit of a
text search has a high score even if it has only one common word of the question. So each search
is judged by a measure that is not its own. This is query performance prediction without a
collection: a survey is in D. Carmel, E. Yom-Tov, "Estimating the query difficulty for information
retrieval", 2010, https://doi.org/10.2200/S00235ED1V01Y201004ICR015.

- The text search: the share of the query's words that the best candidate has.
- The vector search: the correlation of its scores with these shares over its hits. The vectors of a
  model that does not know the language order the items by chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Final

__all__ = ["correlation", "search_weights"]

_TEXT: Final = 0.2
_VECTOR: Final = 0.5
"""The weights that each search keeps however badly it seems to do: the measures are rough."""


def search_weights(
    shares: Sequence[float], by_text: Mapping[int, float], by_vector: Mapping[int, float]
) -> tuple[float, float]:
    """Return the factors of the text search and of the vector search.

    Args:
        shares: The share of the query's words that each candidate has; empty: it has no words.
        by_text: The scores of the hits of the text search, by the numbers of the candidates.
        by_vector: Those of the vector search. If either has none, both factors are 1.
    """
    if not shares or not by_text or not by_vector:
        return 1.0, 1.0
    agreed = correlation([shares[number] for number in by_vector], list(by_vector.values()))
    return _TEXT + max(shares), _VECTOR + max(0.0, agreed)


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Pearson's correlation of two equally long sequences; 0 if one of them is constant."""
    count = len(first)
    if count == 0:
        return 0.0
    mean_first, mean_second = math.fsum(first) / count, math.fsum(second) / count
    apart_first = [each - mean_first for each in first]
    apart_second = [each - mean_second for each in second]
    spread = math.hypot(*apart_first) * math.hypot(*apart_second)
    return math.fsum(map(mul, apart_first, apart_second)) / spread if spread > 0 else 0.0
