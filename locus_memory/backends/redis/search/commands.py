"""The commands for RediSearch, in forms that return complete results."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from locus_memory.backends.redis.search.replies import (
    DISTANCE,
    SCORE,
    Row,
    read_distances,
    read_scores,
)

__all__ = ["Question", "Terms", "Vector", "index_command", "rest_of"]

_LABELS: Final = b"\xffn"
_STEMS: Final = b"\xfft"
_VECTOR: Final = b"\xffv"
"""The fields of an item's hash, with the names that the scripts use."""

_LEAN: Final = ("STOPWORDS", 0, "NOOFFSETS", "NOHL", "NOFIELDS")
_GRAPH: Final = ("TYPE", "FLOAT32", "DISTANCE_METRIC", "COSINE", "M", 16, "EF_CONSTRUCTION", 200)

_EFFORT: Final = 200
"""The size of the candidate list of the graph (`EF_RUNTIME`)."""

_RANK: Final = ("SCORER", "BM25STD")

_WHOLE: Final = ("TIMEOUT", 0, "DIALECT", 2)
"""Without it the server returns partial results after half a second, without an error."""

_COUNT: Final = 5000
_CURSOR: Final = ("WITHCURSOR", "COUNT", _COUNT, "MAXIDLE", 60_000)


def index_command(
    name: bytes, prefix: bytes, dimension: int, *, scan: bool
) -> tuple[str | bytes | int, ...]:
    """Return the command that creates an index of the hashes with a prefix.

    Args:
        name: The name of the index.
        prefix: The prefix of the keys.
        dimension: The dimension of its vectors; 0: it is an index of texts.
        scan: Whether to index existing hashes.
    """
    # Aliases of different fields differ between indexes too: a filter may confuse equal ones.
    known_as = f"v{dimension}" if dimension else "stems"
    field: tuple[str | bytes | int, ...] = (_STEMS, "AS", known_as, "TEXT", "NOSTEM")
    if dimension:
        graph = (*_GRAPH, "DIM", dimension)
        field = (_VECTOR + b"%d" % dimension, "AS", known_as, "VECTOR", "HNSW", len(graph), *graph)
    skip = () if scan else ("SKIPINITIALSCAN",)
    # No other hash under the prefix has fields whose names are not UTF-8.
    which = ("ON", "HASH", "PREFIX", 1, prefix, "FILTER", f"exists(@{known_as})")
    labels = (_LABELS, "AS", "labels", "TAG", "SEPARATOR", ",")
    return ("FT.CREATE", name, *which, *_LEAN, *skip, "SCHEMA", *labels, *field)


def rest_of(name: bytes, cursor: int) -> tuple[str | bytes | int, ...]:
    """Return the command that reads the next page of an aggregation."""
    return ("FT.CURSOR", "READ", name, cursor, "COUNT", _COUNT)


@dataclass(frozen=True, slots=True)
class Terms:
    """A query for texts: items with this label and any of these names of stems."""

    label: str
    names: Sequence[str]

    dimension = 0
    field = SCORE
    is_descending = True

    def at_once(self, name: bytes, most: int) -> tuple[Any, ...]:
        """Return the command for the `most` best items."""
        ranked = ("NOCONTENT", "WITHSCORES", "VERBATIM", *_RANK, "LIMIT", 0, most)
        return ("FT.SEARCH", name, self._query, *ranked, *_WHOLE)

    def whole(self, name: bytes, most: int) -> tuple[Any, ...]:  # noqa: ARG002 - as of vectors
        """Return the command for all items, by their age."""
        load = ("VERBATIM", *_RANK, "ADDSCORES", "LOAD", 1, "@__key")
        return ("FT.AGGREGATE", name, self._query, *load, *_CURSOR, *_WHOLE)

    def read(self, answer: Any) -> list[Row]:
        """Return the rows of a reply to `at_once`."""
        return read_scores(answer)

    @property
    def _query(self) -> str:
        # Each word has the label: for an intersection with a union, the server ignores words in
        # the scores. The weight of the label is ignored if it is alone.
        label = f"@labels:{{{self.label}}}"
        here = f"({label}|{label})=>{{$weight: 0}}"
        return "|".join(f"({here} @stems:{name})" for name in self.names)


@dataclass(frozen=True, slots=True)
class Vector:
    """A query for vectors: items with this label, the nearest to this vector.

    Attributes:
        label: The label of the items.
        vector: A unit vector as float32 bytes.
        is_exact: Whether to compare all vectors, rather than let the server decide.
    """

    label: str
    vector: bytes
    is_exact: bool = False

    field = DISTANCE
    is_descending = False

    @classmethod
    def any_of(cls, label: str, dimension: int) -> Vector:
        """Return a query for any vector of a dimension."""
        return cls(label, struct.pack("<f", 1.0) + bytes(4 * (dimension - 1)), is_exact=True)

    @property
    def dimension(self) -> int:
        """The length of the vector."""
        return len(self.vector) // 4

    def at_once(self, name: bytes, most: int) -> tuple[Any, ...]:
        """Return the command for the `most` nearest items."""
        load = ("SORTBY", "distance", "RETURN", 1, "distance", "LIMIT", 0, most)
        return ("FT.SEARCH", name, *self._query(most), *load, *_WHOLE)

    def whole(self, name: bytes, most: int) -> tuple[Any, ...]:
        """Return the command for the `most` nearest items, page by page."""
        load = ("LOAD", 2, "@__key", "@distance")
        return ("FT.AGGREGATE", name, *self._query(most), *load, *_CURSOR, *_WHOLE)

    def read(self, answer: Any) -> list[Row]:
        """Return the rows of a reply to `at_once`."""
        return read_distances(answer)

    def _query(self, most: int) -> tuple[Any, ...]:
        policy = "HYBRID_POLICY ADHOC_BF" if self.is_exact else f"EF_RUNTIME {_EFFORT}"
        near = f"[KNN {most} @v{self.dimension} $vector {policy} AS distance]"
        return (f"(@labels:{{{self.label}}})=>{near}", "PARAMS", 2, "vector", self.vector)


Question = Terms | Vector
