"""The conditions that all searches have: which namespaces, and no expired items."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from locus_memory.backends.opensearch.items.documents import (
    microseconds,
    routing_of,
    within,
)
from locus_memory.backends.opensearch.search.filters import compile_filter
from locus_memory.backends.selection import PathScope, is_everything
from locus_memory.store.filters import Condition

__all__ = ["Query", "Scope", "expired"]

Query = dict[str, Any]


def expired(now: datetime) -> Query:
    """Return a query for what has expired."""
    return {"range": {"expires": {"lte": microseconds(now)}}}


class Scope(PathScope[datetime]):
    """The items of a namespace, with those of its descendants or without."""

    __slots__ = ()

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
        name, term = ("within", within(self.path)) if self.recursive else ("namespace", self.path)
        return {"term": {name: term}}

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
