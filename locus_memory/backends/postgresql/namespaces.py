"""Which namespaces a listing wants, and how the database is asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from locus_memory.backends.postgresql.connection import PostgreSQLPool
from locus_memory.backends.postgresql.queries import NAMESPACES
from locus_memory.store.item import (
    Namespace,
    check_limit,
    check_namespace,
    decode_namespace,
    encode_namespace,
    namespace_upper_bound,
)

__all__ = ["Listing", "list_namespaces"]

_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Listing:
    """Which namespaces are wanted; see `BaseStore.list_namespaces`."""

    prefix: Namespace
    suffix: Namespace
    max_depth: int | None
    after: Namespace

    @classmethod
    def of(
        cls,
        prefix: Namespace | None,
        suffix: Namespace | None,
        max_depth: int | None,
        after: Namespace | None,
    ) -> Self:
        """Return what is wanted, checked."""
        return cls(
            check_namespace(() if prefix is None else prefix, empty=True),
            check_namespace(() if suffix is None else suffix, empty=True),
            None if max_depth is None else check_limit(max_depth, "max_depth"),
            check_namespace(() if after is None else after, empty=True),
        )

    def cut(self, namespace: Namespace) -> Namespace | None:
        """Return the namespace as it is listed, or `None` if it is not."""
        if not (_begins(namespace, self.prefix) and _begins(namespace[::-1], self.suffix[::-1])):
            return None
        listed = namespace[: self.max_depth]
        return listed if listed > self.after else None

    def range(self) -> tuple[str, str | None]:
        """Return the first encoded path that may be wanted, and the first that no longer is."""
        fixed = self.prefix.index("*") if "*" in self.prefix else len(self.prefix)
        head = self.prefix[:fixed]
        start = self.beyond(self.after) if self.after else ""
        return max(encode_namespace(head), start), namespace_upper_bound(head)

    def beyond(self, namespace: Namespace) -> str:
        """Return the first encoded path after the namespace, or after all it stands for."""
        if self.max_depth is not None and self.max_depth <= len(namespace):
            return namespace_upper_bound(namespace[: self.max_depth]) or ""
        # Nothing sorts between a path and its first descendant's.
        return encode_namespace(namespace) + "\x01"


def _begins(namespace: Namespace, labels: Sequence[str]) -> bool:
    """Whether the first labels are these, `"*"` standing for any one."""
    return len(labels) <= len(namespace) and all(
        wanted in ("*", label) for wanted, label in zip(labels, namespace, strict=False)
    )


async def list_namespaces(
    pool: PostgreSQLPool, listing: Listing, limit: int, now: datetime
) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    if listing.max_depth == 0:
        return []
    low, high = listing.range()
    found: dict[Namespace, None] = {}
    while True:
        rows = await pool.fetch(NAMESPACES, low, now, high, _PAGE)
        page = [decode_namespace(row["path"]) for row in rows]
        found |= {cut: None for each in page if (cut := listing.cut(each)) is not None}
        if len(page) < _PAGE or len(found) >= limit:
            return list(found)[:limit]
        low = listing.beyond(page[-1])
