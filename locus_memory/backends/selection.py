"""Which items a verb is asked for: the values that a checked store hands to its backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from locus_memory.store.filters import Condition, parse_filter
from locus_memory.store.item import Namespace, check_limit, check_namespace, check_text

__all__ = ["KeyRange", "Page", "Selection", "at_most"]

_MOST: Final = 2**62
"""The integers of most databases are not much larger."""


def at_most(limit: object, what: str = "limit") -> int:
    """Return a number of items, checked, and small enough for every database.

    Raises:
        InvalidArgumentError: It is no integer of at least 0.
    """
    return min(check_limit(limit, what), _MOST)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Which keys of a namespace a scan wants; the fields mean what they mean to `scan`."""

    prefix: str | None
    after: str | None
    descending: bool = False

    @classmethod
    def of(cls, prefix: object, after: object, *, descending: bool = False) -> Self:
        """Return the range, checked.

        Raises:
            InvalidArgumentError: One is no text.
        """
        return cls(check_text(prefix, "prefix"), check_text(after, "after"), descending)


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of the hits is wanted, the best first."""

    limit: int
    offset: int = 0

    @classmethod
    def of(cls, limit: object, offset: object = 0) -> Self:
        """Return the page, checked.

        Raises:
            InvalidArgumentError: One is no integer of at least 0.
        """
        return cls(at_most(limit), at_most(offset, "offset"))


@dataclass(frozen=True, slots=True)
class Selection:
    """Which items a search is about.

    Attributes:
        namespace: Where they are.
        condition: What they satisfy.
        recursive: Whether those in the descendants of the namespace count.
    """

    namespace: Namespace
    condition: Condition
    recursive: bool = False

    @classmethod
    def of(cls, namespace: object, filter_: Any, *, recursive: bool = False) -> Self:
        """Return the selection, checked.

        Raises:
            InvalidNamespaceError: `namespace` is none.
            InvalidFilterError: `filter_` is none.
        """
        return cls(check_namespace(namespace), parse_filter(filter_), recursive)
