"""The conditions that all searches have: which namespaces, and no expired items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from locus_memory.backends.opensearch.items.documents import microseconds, path_of, routing_of
from locus_memory.backends.opensearch.search.filters import compile_filter, is_everything
from locus_memory.backends.selection import KeyRange
from locus_memory.store.filters import Condition
from locus_memory.store.item import Namespace

__all__ = ["Query", "Scope", "alive", "expired", "is_in_range"]

Query = dict[str, Any]


def expired(now: datetime) -> Query:
    """Return a query for what has expired."""
    return {"range": {"expires": {"lte": microseconds(now)}}}


def alive(now: datetime) -> Query:
    """Return a query for what has not expired."""
    return {"bool": {"must_not": [expired(now)]}}


def is_in_range(keys: KeyRange) -> list[Query]:
    """Return the conditions for the keys of a scan."""
    found: list[Query] = []
    if keys.prefix:
        found.append({"prefix": {"key": keys.prefix}})
    if keys.after is not None:
        sign = "lt" if keys.descending else "gt"
        found.append({"range": {"key": {sign: keys.after}}})
    return found


@dataclass(frozen=True, slots=True)
class Scope:
    """The items of a namespace, with those of its descendants or without.

    Attributes:
        path: The encoded namespace.
        now: The moment of the search.
        recursive: Whether the descendants belong to it.
    """

    path: str
    now: datetime
    recursive: bool = False

    @classmethod
    def of(cls, namespace: Namespace, now: datetime, *, recursive: bool = False) -> Self:
        """Return the scope of a namespace."""
        return cls(path_of(namespace), now, recursive)

    @property
    def routing(self) -> str | None:
        """The routing of the namespace; `None`: the descendants are on any shard."""
        return None if self.recursive else routing_of(self.path)

    def order(self, *fields: dict[str, str]) -> list[dict[str, str]]:
        """Return an order of hits by some fields, then the newest write first; none are equal."""
        # The numbers of writes are those of a shard.
        names = [{"namespace": "asc"}, {"key": "asc"}] if self.recursive else []
        return [*fields, {"_seq_no": "desc"}, *names]

    @property
    def place(self) -> Query:
        """The query for all items in the scope, expired ones as well."""
        return {"prefix" if self.recursive else "term": {"namespace": self.path}}

    def where(self, *conditions: Query, must: Sequence[Query] = ()) -> Query:
        """Return a query for the items in the scope that satisfy the conditions.

        Args:
            conditions: Conditions without a score.
            must: Conditions whose scores count.
        """
        found: Query = {"filter": [self.place, *conditions], "must_not": [expired(self.now)]}
        return {"bool": found | ({"must": list(must)} if must else {})}

    def having(self, condition: Condition, *further: Query, must: Sequence[Query] = ()) -> Query:
        """Return a query for at least the items in the scope that satisfy a filter."""
        if is_everything(condition):
            return self.where(*further, must=must)
        return self.where(compile_filter(condition), *further, must=must)
