"""The range of a statement: a namespace or a tree of them, and a range of keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from locus_memory.backends.oracle.items.naming import (
    AFTER_KEYS,
    BEYOND,
    LONGEST,
    cut,
    first_of,
)
from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.rows import micros
from locus_memory.backends.selection import KeyRange
from locus_memory.store.encoding import (
    encode_namespace,
    namespace_upper_bound,
)
from locus_memory.store.item import Namespace

__all__ = ["Scope", "key_condition"]

_LEAST: Final = "\x01"
"""The lowest character of an encoded text: no text is between a text and that text with it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces of a statement, and its moment.

    Attributes:
        namespace: The namespace.
        low: The first name of a namespace.
        high: The first name after the last one.
        is_exact: Whether no other namespace has a name in between, as it may if names are cut.
        now: Microseconds since the epoch.
    """

    namespace: Namespace
    low: bytes
    high: bytes
    is_exact: bool
    now: int

    @classmethod
    def of(cls, namespace: Namespace, now: datetime, *, recursive: bool = False) -> Self:
        """Return the scope."""
        path = encode_namespace(namespace).encode()
        if not recursive:
            name = cut(path)
            return cls(namespace, name, name + b"\0", True, micros(now))
        bound = (namespace_upper_bound(namespace) or "").encode()
        if len(path) <= LONGEST:
            return cls(namespace, path, bound, True, micros(now))
        low = first_of(path)
        return cls(namespace, low, low + BEYOND, False, micros(now))

    def condition(self, arguments: Arguments) -> str:
        """Return the condition that the item `i` is in the scope."""
        low, high = arguments.bind(self.low), arguments.bind(self.high)
        return f'i."SCOPE" >= {low} AND i."SCOPE" < {high}'

    def live(self, arguments: Arguments) -> str:
        """Return the condition that the item `i` has not expired."""
        return f'i."EXPIRES_AT" > {arguments.bind(self.now)}'

    def holds(self, namespace: Namespace) -> bool:
        """Return whether a namespace is in the scope."""
        return self.is_exact or namespace[: len(self.namespace)] == self.namespace


def key_condition(keys: KeyRange, path: str, arguments: Arguments) -> str:
    """Return the condition on the names of the items `i` of a path; it may hold for others.

    It is exact for names that are not cut.
    """
    first, bound = keys.bounds()
    low, high = path + _LEAST + first, path + AFTER_KEYS
    if bound is not None:
        high = path + _LEAST + bound
    end = high.encode()
    if len(end) > LONGEST:
        end = first_of(end) + BEYOND
    start = arguments.bind(first_of(low.encode()))
    return f'i."NAME" >= {start} AND i."NAME" < {arguments.bind(end)}'
