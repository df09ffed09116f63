"""The values of the store's API, the checks of its arguments, and the encoding of keys.

Every backend calls the same checks before it writes, so all of them refuse the same input.
All of them store namespaces and keys in the same injective encoding, which keeps their order.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

from locus_memory._internal.notebook import table
from locus_memory._internal.quoting import quote
from locus_memory.errors import (
    InvalidArgumentError,
    InvalidEmbeddingError,
    InvalidKeyError,
    InvalidNamespaceError,
)

__all__ = [
    "Delete",
    "Namespace",
    "Put",
    "PutT",
    "Restored",
    "SemanticSearchResult",
    "StoreCapabilities",
    "StoreItem",
    "check_embedding",
    "check_identifier",
    "check_key",
    "check_limit",
    "check_namespace",
    "check_restored",
    "check_text",
    "check_threshold",
    "check_ttl",
    "check_version",
    "embedding_numbers",
    "need_text",
    "quick_put",
    "timestamp",
]

Namespace = tuple[str, ...]

_SURROGATE = re.compile("[\ud800-\udfff]")

_VERSIONS = 2**53
"""Above every version: a larger integer is not exact in each database."""

_LONGEST_TTL = 1000 * 365.25 * 86_400
"""Seconds; an expiry much further ahead has no date."""


@dataclass(frozen=True, slots=True)
class StoreCapabilities:
    """The capabilities of a store.

    Attributes:
        search: `search` takes a query text.
        prefix_search: `search` takes a query such as `mull*`.
        semantic_search: `put_with_embedding`, `get_embedding` and `search_by_embedding` work.
        embedding_dimension: The only vector length that the store accepts, or `None` for any.
        ttl: Items expire after their `ttl`.
        list_namespaces: `list_namespaces` works.
        batch_operations: The three batch verbs are one round trip and atomic.
        transactions: `write_batch` is all or nothing.
    """

    search: bool = False
    prefix_search: bool = False
    semantic_search: bool = False
    embedding_dimension: int | None = None
    ttl: bool = False
    list_namespaces: bool = False
    batch_operations: bool = False
    transactions: bool = False


@dataclass(frozen=True, slots=True, weakref_slot=True)
class StoreItem:
    """A stored item; `value` and `metadata` are the caller's own copies.

    Attributes:
        namespace: The namespace of the item.
        key: The key of the item in its namespace.
        value: Any JSON value, `None` included.
        metadata: A JSON object stored beside the value.
        created_at: First put, UTC.
        updated_at: Last put, UTC.
        version: 1 after the first put, one more after each further put.
        score: The score of a search hit (higher is better), else `None`.
        expires_at: The moment when the item expires, UTC, or `None`.
    """

    namespace: Namespace
    key: str
    value: Any
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    version: int = 1
    score: float | None = None
    expires_at: datetime | None = None

    def __repr__(self) -> str:
        """Return the fields that identify the item; a long value is cut."""
        score = "" if self.score is None else f", score={self.score:.3f}"
        return (
            f"StoreItem({quote(self.namespace)}, {quote(self.key)}, {quote(self.value)}, "
            f"metadata={quote(self.metadata)}, version={self.version}{score})"
        )

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("namespace", quote(self.namespace)),
            ("key", self.key),
            ("value", self.value),
            ("metadata", self.metadata),
            ("version", self.version),
            ("updated", self.updated_at.isoformat(sep=" ", timespec="seconds")),
        ]
        return table(rows if self.score is None else [*rows, ("score", round(self.score, 3))])

    def to_dict(self) -> dict[str, Any]:
        """Return the item as plain JSON: the namespace a list, times in ISO 8601."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.value,
            "metadata": self.metadata,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
            "version": self.version,
            "score": self.score,
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the item of a document that `to_dict` returned.

        Raises:
            KeyError: A required field is missing.
        """
        expires_at = document.get("expires_at")
        return cls(
            namespace=tuple(document["namespace"]),
            key=document["key"],
            value=document["value"],
            metadata=dict(document.get("metadata") or {}),
            created_at=datetime.fromisoformat(document["created_at"]),
            updated_at=datetime.fromisoformat(document["updated_at"]),
            version=document.get("version", 1),
            score=document.get("score"),
            expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
        )


@dataclass(frozen=True, slots=True)
class SemanticSearchResult:
    """A hit of a vector search.

    Attributes:
        item: The item, with its `score`.
        score: `max(0, 1 - distance)`; 1 for the same direction.
        distance: Cosine distance, from 0 to 2; if it is left out, `1 - score`.
    """

    item: StoreItem
    score: float
    distance: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.distance):
            object.__setattr__(self, "distance", 1 - self.score)


@dataclass(frozen=True, slots=True)
class Put:
    """One put of a batch; its fields are the arguments of `BaseStore.put`."""

    namespace: Namespace
    key: str
    value: Any
    metadata: Mapping[str, Any] | None = None
    _: KW_ONLY
    ttl: float | None = None
    if_version: int | None = None
    text: str | None = None
    embedding: Sequence[float] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(Put):
    """An item for `BaseStore.restore`: a put with a version and moments of its own.

    `ttl` and `if_version` are not given.

    Attributes:
        version: The version to write, at least 1.
        created_at: The first put; a moment with a time zone.
        updated_at: The last put, likewise.
        expires_at: The moment when the item expires, likewise, or `None`. An item whose moment has
            passed is not visible.
    """

    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None


PutT = TypeVar("PutT", bound=Put)

quick_put = Put
"""The name under which integrations and backends make a `Put` by position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """One delete of a batch; its fields are the arguments of `BaseStore.delete`."""

    namespace: Namespace
    key: str
    if_version: int | None = None


def check_namespace(namespace: object, *, empty: bool = False) -> Namespace:
    """Return `namespace` if it is a tuple of non-empty strings.

    Args:
        namespace: The caller's argument.
        empty: Whether `()` is allowed, as for the prefix of a listing.

    Raises:
        InvalidNamespaceError: It is anything else, such as a plain string.
    """
    if not isinstance(namespace, tuple):
        raise InvalidNamespaceError(
            f"a namespace is a tuple of strings, not {type(namespace).__name__}"
        )
    if not namespace and not empty:
        raise InvalidNamespaceError("a namespace needs at least one label")
    for label in namespace:
        if not _is_text(label):
            raise InvalidNamespaceError(
                f"a namespace label is a non-empty string, not {quote(label)}"
            )
    return namespace


def check_key(key: object) -> str:
    """Return `key` if it is a non-empty string.

    Raises:
        InvalidKeyError: It is not.
    """
    # This path is fast: every call checks a key, and most keys are ASCII.
    if isinstance(key, str) and key and key.isascii():
        return key
    return check_identifier(key, "a key")


def check_identifier(value: object, what: str) -> str:
    """Return `value` if it is a non-empty string; `what` names it in the error.

    Raises:
        InvalidKeyError: It is not.
    """
    if not isinstance(value, str) or not _is_text(value):
        raise InvalidKeyError(f"{what} is a non-empty string, not {quote(value)}")
    return value


def check_text(text: object, what: str) -> str | None:
    """Return `text` if it is a string of whole characters, or `None`; `what` names it.

    Raises:
        InvalidArgumentError: It is anything else.
    """
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{what} is a string, not {type(text).__name__}")
    if not _is_whole(text):
        raise InvalidArgumentError(f"{what} contains half a character, a lone surrogate")
    return text


def need_text(text: object, what: str) -> str:
    """Return `text` if it is a string of whole characters; `what` names it.

    Raises:
        InvalidArgumentError: It is anything else.
    """
    if (found := check_text(text, what)) is None:
        raise InvalidArgumentError(f"{what} is a string, not None")
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != "" and _is_whole(value)


def _is_whole(text: str) -> bool:
    # A lone surrogate is not a character: no database can store it.
    return text.isascii() or _SURROGATE.search(text) is None


def check_limit(limit: object, what: str = "limit") -> int:
    """Return `limit` if it is an integer of at least 0.

    Raises:
        InvalidArgumentError: It is not.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise InvalidArgumentError(f"{what} is an integer of at least 0, not {quote(limit)}")
    return limit


def check_version(if_version: object) -> int | None:
    """Return `if_version` if it is an integer of at least 0, or `None`.

    Raises:
        InvalidArgumentError: It is not.
    """
    return None if if_version is None else check_limit(if_version, "if_version")


def check_restored(item: Restored) -> Restored:
    """Return `item` if its version and its moments can be written.

    Raises:
        InvalidArgumentError: They cannot, or `ttl` or `if_version` is given.
    """
    if item.ttl is not None or item.if_version is not None:
        raise InvalidArgumentError("a Restored takes expires_at, and no ttl and no if_version")
    version: object = item.version
    if isinstance(version, bool) or not isinstance(version, int) or not 0 < version < _VERSIONS:
        raise InvalidArgumentError(f"version is an integer of at least 1, not {quote(version)}")
    for name in ("created_at", "updated_at", "expires_at"):
        moment = getattr(item, name)
        if moment is None and name == "expires_at":
            continue
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise InvalidArgumentError(
                f"{name} is a datetime with a time zone, not {quote(moment)}"
            )
    return item


def check_ttl(ttl: object) -> float | None:
    """Return `ttl` in seconds if it is positive and below a thousand years, or `None`.

    Raises:
        InvalidArgumentError: It is anything else.
    """
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        raise InvalidArgumentError(f"ttl is a number of seconds, not {quote(ttl)}")
    if not 0 < ttl <= _LONGEST_TTL:
        raise InvalidArgumentError(
            f"ttl is a positive number of seconds, up to a thousand years, not {quote(ttl)}"
        )
    return float(ttl)


def check_threshold(threshold: object) -> float | None:
    """Return `threshold` if it is a number, or `None`.

    Raises:
        InvalidArgumentError: It is anything else, NaN included.
    """
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise InvalidArgumentError(f"threshold is a number, not {quote(threshold)}")
    # An integer may be too large for a float.
    with suppress(OverflowError):
        number = float(threshold)
        if not math.isnan(number):
            return number
    raise InvalidArgumentError("threshold is a number that can be compared with a score")


def check_embedding(embedding: Sequence[float], dimension: int | None = None) -> bytes:
    """Return `embedding` as little-endian float32 of unit length, ready to store.

    Args:
        embedding: A sequence or numpy array of shape `(dimension,)`.
        dimension: The required length, or `None` for any.

    Raises:
        InvalidEmbeddingError: It is empty, not finite, all zero or of another length.
    """
    import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

    try:
        vector = np.asarray(embedding, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidEmbeddingError("an embedding is a flat sequence of numbers") from error
    if vector.ndim != 1 or vector.size == 0:
        raise InvalidEmbeddingError(
            f"an embedding is a flat sequence of numbers, not of shape {vector.shape}"
        )
    if dimension is not None and vector.size != dimension:
        raise InvalidEmbeddingError(
            f"the embedding has {vector.size} dimensions, the store holds {dimension}"
        )
    peak = float(np.abs(vector).max())
    if not math.isfinite(peak) or peak == 0.0:
        raise InvalidEmbeddingError("an embedding needs finite numbers that are not all zero")
    # Scaled first, so that the squares neither overflow nor underflow.
    vector = vector / peak
    return (vector / np.linalg.norm(vector)).astype("<f4").tobytes()


def embedding_numbers(vector: bytes) -> list[float]:
    """Return the numbers of what `check_embedding` returned."""
    return list(struct.unpack(f"<{len(vector) // 4}f", vector))


def timestamp(moment: float) -> datetime:
    """Return seconds since the epoch as an aware UTC datetime."""
    return datetime.fromtimestamp(moment, UTC)
