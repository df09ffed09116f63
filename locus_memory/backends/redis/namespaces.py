"""Which namespaces a listing wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from locus_memory.backends.redis.registry import PAGE
from locus_memory.backends.redis.spaces import Spaces
from locus_memory.store.item import (
    Namespace,
    check_limit,
    check_namespace,
    encode_namespace,
    namespace_upper_bound,
)

__all__ = ["Listing", "list_namespaces"]


@dataclass(frozen=True, slots=True)
class Listing:
    """What `BaseStore.list_namespaces` is asked for."""

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
        """Return a listing, checked."""
        return cls(
            check_namespace(prefix or (), empty=True),
            check_namespace(suffix or (), empty=True),
            None if max_depth is None else check_limit(max_depth, "max_depth"),
            check_namespace(after or (), empty=True),
        )

    def cut(self, namespace: Namespace) -> Namespace | None:
        """Return the namespace as it is listed, or `None` if it is not."""
        if not (_match(namespace, self.prefix) and _match(namespace[::-1], self.suffix[::-1])):
            return None
        found = namespace[: self.max_depth]
        return found if found > self.after else None

    def range(self) -> tuple[str, str | None]:
        """Return the first encoded path that may be wanted, and the first that no longer is."""
        literal = self.prefix.index("*") if "*" in self.prefix else len(self.prefix)
        head = self.prefix[:literal]
        start = self.beyond(self.after) if self.after else ""
        return max(encode_namespace(head), start), namespace_upper_bound(head)

    def beyond(self, namespace: Namespace) -> str:
        """Return the first encoded path after the namespace, or after all it stands for."""
        if self.max_depth is not None and self.max_depth <= len(namespace):
            return namespace_upper_bound(namespace[: self.max_depth]) or ""
        # Nothing sorts between a path and its first descendant's.
        return encode_namespace(namespace) + "\x01"


def _match(namespace: Namespace, labels: Namespace) -> bool:
    """Whether the first labels are these, `"*"` standing for any one."""
    return len(labels) <= len(namespace) and all(
        wanted in ("*", label) for wanted, label in zip(labels, namespace, strict=False)
    )


async def list_namespaces(spaces: Spaces, listing: Listing, limit: int) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    low, high = listing.range()
    found: dict[Namespace, None] = {}
    while len(found) < limit and listing.max_depth != 0:
        page = await spaces.registered(low.encode(), high)
        for space in await spaces.holding([s for s in page if listing.cut(s.namespace)]):
            found[space.namespace[: listing.max_depth]] = None
        if len(page) < PAGE:
            break
        low = listing.beyond(page[-1].namespace)
    return list(found)[:limit]
