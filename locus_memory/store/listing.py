"""Listings, for stores that walk namespaces or keys in order; no I/O here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from locus_memory.store.encoding import encode_namespace, namespace_upper_bound
from locus_memory.store.item import Namespace, check_limit, check_namespace

__all__ = ["Listing", "keys_in_range", "listed"]


@dataclass(frozen=True, slots=True)
class Listing:
    """The requested namespaces; the fields are the arguments of `list_namespaces`."""

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
        """Return the request of a caller.

        Raises:
            InvalidNamespaceError: A prefix, suffix or cursor is not a namespace.
            InvalidArgumentError: An invalid depth.
        """
        return cls(
            check_namespace(() if prefix is None else prefix, empty=True),
            check_namespace(() if suffix is None else suffix, empty=True),
            None if max_depth is None else check_limit(max_depth, "max_depth"),
            check_namespace(() if after is None else after, empty=True),
        )

    def cut(self, namespace: Namespace) -> Namespace | None:
        """Return a namespace in its listed form, or `None` if it is not listed."""
        if not (
            _begins_with(namespace, self.prefix)
            and _begins_with(namespace[::-1], self.suffix[::-1])
        ):
            return None
        listed = namespace[: self.max_depth]
        return listed if listed > self.after else None

    def range(self) -> tuple[str, str | None]:
        """Return the bounds of the encoded paths to list; the upper bound is exclusive."""
        fixed = self.prefix.index("*") if "*" in self.prefix else len(self.prefix)
        head = self.prefix[:fixed]
        start = self.beyond(self.after) if self.after else ""
        return max(encode_namespace(head), start), namespace_upper_bound(head)

    def beyond(self, namespace: Namespace) -> str:
        """Return the first encoded path after a listed namespace and all that it covers."""
        if self.max_depth is not None and self.max_depth <= len(namespace):
            return namespace_upper_bound(namespace[: self.max_depth]) or ""
        # Nothing sorts between a path and its first descendant's.
        return encode_namespace(namespace) + "\x01"


async def listed(
    listing: Listing,
    limit: int,
    read: Callable[[str, str | None], Awaitable[tuple[Sequence[Namespace], bool]]],
) -> list[Namespace]:
    """Return the namespaces of a listing, in order, from pages of those that hold an item.

    Args:
        listing: Which.
        limit: The most to return.
        read: Returns a page between two encoded paths (`None`: to the end), in order, and whether
            it is the last one.
    """
    if listing.max_depth == 0:
        return []
    low, high = listing.range()
    found: dict[Namespace, None] = {}
    while True:
        page, is_last = await read(low, high)
        found |= {cut: None for each in page if (cut := listing.cut(each)) is not None}
        if is_last or len(found) >= limit:
            return list(found)[:limit]
        low = listing.beyond(page[-1])


def _begins_with(namespace: Namespace, labels: Namespace) -> bool:
    """Whether the first labels are these; `"*"` matches any label."""
    return len(labels) <= len(namespace) and all(
        wanted in ("*", label) for wanted, label in zip(labels, namespace, strict=False)
    )


def keys_in_range(
    keys: Iterable[str], prefix: str | None, after: str | None, *, descending: bool = False
) -> list[str]:
    """Return the keys of a `scan` in its order."""
    told = [each for each in keys if each.startswith(prefix or "")]
    if after is not None:
        told = [each for each in told if (each < after if descending else each > after)]
    return sorted(told, reverse=descending)
