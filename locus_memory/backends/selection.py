"""The checked arguments of verbs, as a `CheckedStore` passes them to its backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from locus_memory._internal.quoting import quote
from locus_memory.errors import BackendCorruptError, InvalidEmbeddingError
from locus_memory.store.encoding import (
    encode_namespace,
    encode_text,
    namespace_upper_bound,
    prefix_upper_bound,
)
from locus_memory.store.filters import All, Condition, parse_filter
from locus_memory.store.item import (
    Namespace,
    Restored,
    SemanticSearchResult,
    StoreItem,
    check_limit,
    check_namespace,
    check_text,
)

__all__ = [
    "KeyRange",
    "Page",
    "Past",
    "PathScope",
    "Selection",
    "VectorQuery",
    "at_most",
    "by_distance",
    "check_dimension",
    "damaged_item",
    "is_everything",
    "path_of",
]

MomentT = TypeVar("MomentT")

_MOST: Final = 2**62
"""The integers of most databases are not much larger."""

_LEAST: Final = "\x01"
"""The lowest character of an encoded text: no text is between a text and that text with it."""

_DIGITS: Final = 6
"""Of a distance; servers compute with float32, which has about seven."""


def at_most(limit: object, what: str = "limit") -> int:
    """Check a number of items, and cap it at an integer that every database accepts.

    Raises:
        InvalidArgumentError: It is not an integer of at least 0.
    """
    return min(check_limit(limit, what), _MOST)


@lru_cache(maxsize=1024)
def path_of(namespace: Namespace) -> str:
    """Return a namespace encoded."""
    return encode_namespace(namespace)


@dataclass(frozen=True, slots=True)
class PathScope(Generic[MomentT]):
    """The namespaces of a statement, and its moment.

    Attributes:
        path: The encoded namespace.
        bound: Above the paths of its descendants; `None`: above all.
        recursive: Whether they count as well.
        now: The moment.
    """

    path: str
    bound: str | None
    recursive: bool
    now: MomentT

    @classmethod
    def of(cls, namespace: Namespace, now: MomentT, *, recursive: bool = False) -> Self:
        """Return the scope of a namespace."""
        return cls(path_of(namespace), namespace_upper_bound(namespace), recursive, now)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys of a scan; the fields are the arguments of `scan`."""

    prefix: str | None
    after: str | None
    descending: bool = False

    def bounds(self) -> tuple[str, str | None]:
        """Return the first encoded key, and the first one after the last; `None`: no bound."""
        low = encode_text(self.prefix or "")
        high = prefix_upper_bound(low) if low else None
        if self.after is None:
            return low, high
        after = encode_text(self.after)
        if self.descending:
            return low, after if high is None else min(high, after)
        return max(low, after + _LEAST), high

    @classmethod
    def of(cls, prefix: object, after: object, *, descending: bool = False) -> Self:
        """Return the range, checked.

        Raises:
            InvalidArgumentError: A prefix or cursor is not a text.
        """
        return cls(check_text(prefix, "prefix"), check_text(after, "after"), descending)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the hits, the best first."""

    limit: int
    offset: int = 0

    @classmethod
    def of(cls, limit: object, offset: object = 0) -> Self:
        """Return the page, checked.

        Raises:
            InvalidArgumentError: One is not an integer of at least 0.
        """
        return cls(at_most(limit), at_most(offset, "offset"))

    @property
    def end(self) -> int:
        """The number of hits up to its end."""
        return self.offset + self.limit if self.limit else 0


@dataclass(frozen=True, slots=True)
class Selection:
    """The items of a search.

    Attributes:
        namespace: Their namespace.
        condition: The filter that they satisfy.
        recursive: Whether items of the descendants count as well.
    """

    namespace: Namespace
    condition: Condition
    recursive: bool = False

    @classmethod
    def of(cls, namespace: object, filter_: Any, *, recursive: bool = False) -> Self:
        """Return the selection, checked.

        Raises:
            InvalidNamespaceError: `namespace` is not a namespace.
            InvalidFilterError: `filter_` is not a filter.
        """
        return cls(check_namespace(namespace), parse_filter(filter_), recursive)


class Past(NamedTuple):
    """The version and the moments of an item that is restored, in seconds since the epoch."""

    version: int
    created_at: float
    updated_at: float
    expires_at: float | None

    @classmethod
    def of(cls, item: Restored) -> Self:
        """Return the past of an item."""
        expires = None if item.expires_at is None else item.expires_at.timestamp()
        return cls(item.version, item.created_at.timestamp(), item.updated_at.timestamp(), expires)


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """The query of a vector search.

    Attributes:
        vector: A unit vector as little-endian float32.
        condition: The filter of the hits.
        threshold: The least score of a hit, or `None`.
    """

    vector: bytes
    condition: Condition
    threshold: float | None = None

    @property
    def dimension(self) -> int:
        """The length of the vector."""
        return len(self.vector) // 4


def is_everything(condition: Condition) -> bool:
    """Whether a filter matches every item without a look at it."""
    return isinstance(condition, All) and all(map(is_everything, condition.conditions))


def check_dimension(dimension: int, other: int | None) -> None:
    """Refuse a query of a dimension that no stored vector has.

    Args:
        dimension: The length of its vector.
        other: The length of some stored vector; `None`: there is none of another length.

    Raises:
        InvalidEmbeddingError: They differ.
    """
    if other not in (None, dimension):
        raise InvalidEmbeddingError(
            f"the query has {dimension} dimensions, the stored embeddings have {other}"
        )


def by_distance(item: StoreItem, distance: float) -> SemanticSearchResult:
    """Return the hit of an item at a cosine distance, which a server computed."""
    distance = min(2.0, max(0.0, round(float(distance), _DIGITS)))
    score = max(0.0, 1.0 - distance)
    return SemanticSearchResult(item=replace(item, score=score), score=score, distance=distance)


def damaged_item(
    provider: str, namespace: Namespace, key: str, what: str = "the item"
) -> BackendCorruptError:
    """Return the error of a damaged item, or of a part of it."""
    return BackendCorruptError(f"{provider}: {what} {quote(key)} of {quote(namespace)} is damaged")
