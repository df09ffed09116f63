"""The replies of RediSearch, in both protocols of Redis.

Protocol 2 has lists. A client that a caller passes in may use protocol 3, which has maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["Page", "Row", "is_indexing", "read_distances", "read_page", "read_scores"]

DISTANCE: Final = b"distance"
SCORE: Final = b"__score"
KEY: Final = b"__key"


class Row(NamedTuple):
    """A key that was found, and its score or its distance."""

    key: bytes
    number: float


class Page(NamedTuple):
    """Rows of an aggregation, and the cursor of the next ones; 0: these are the last."""

    rows: list[Row]
    cursor: int


def is_indexing(info: Any) -> bool:
    """Return whether an index still lacks some of the older items, by `FT.INFO`."""
    return float(_fields(info).get(b"indexing") or 0) != 0


def read_scores(answer: Any) -> list[Row]:
    """Return keys and scores of a reply to `FT.SEARCH` with `NOCONTENT WITHSCORES`."""
    if isinstance(answer, Mapping):
        return [Row(each[b"id"], float(each[b"score"])) for each in answer[b"results"]]
    return [Row(key, float(score)) for key, score in _pairs(answer[1:])]


def read_distances(answer: Any) -> list[Row]:
    """Return keys and distances of a reply to `FT.SEARCH` with `RETURN 1 distance`."""
    if isinstance(answer, Mapping):
        found = [(each[b"id"], each[b"extra_attributes"]) for each in answer[b"results"]]
    else:
        found = _pairs(answer[1:])
    # An item deleted at this very moment has a key, and no fields.
    return [Row(key, float(_fields(row)[DISTANCE])) for key, row in found if row]


def read_page(answer: Any, field: bytes) -> Page:
    """Return a page of an aggregation that loads the key and one field."""
    results, cursor = answer
    if isinstance(results, Mapping):
        rows = [each[b"extra_attributes"] for each in results[b"results"]]
    else:
        rows = [_fields(row) for row in results[1:]]
    found = [Row(row[KEY], float(row[field])) for row in rows if KEY in row and field in row]
    return Page(found, int(cursor))


def _fields(answer: Any) -> Mapping[Any, Any]:
    return answer if isinstance(answer, Mapping) else dict(_pairs(answer))


def _pairs(flat: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(flat[::2], flat[1::2], strict=False))
