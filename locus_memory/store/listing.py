"""Which namespaces `list_namespaces` is asked for: pure, for backends that walk them in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from locus_memory.store.encoding import encode_namespace, namespace_upper_bound
from locus_memory.store.item import Namespace, check_limit, check_namespace

__all__ = ["Listing"]


@dataclass(frozen=True, slots=True)
class Listing:
    """Which namespaces are wanted; the fields mean what they do to `list_namespaces`."""

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
        """Return what the caller wants.

        Raises:
            InvalidNamespaceError: One is no namespace.
            InvalidArgumentError: A bad depth.
        """
        return cls(
            check_namespace(() if prefix is None else prefix, empty=True),
            check_namespace(() if suffix is None else suffix, empty=True),
            None if max_depth is None else check_limit(max_depth, "max_depth"),
            check_namespace(() if after is None else after, empty=True),
        )

    def cut(self, namespace: Namespace) -> Namespace | None:
        """Return a namespace as it is listed, or `None` if it is not."""
        if not (
            _begins_with(namespace, self.prefix)
            and _begins_with(namespace[::-1], self.suffix[::-1])
        ):
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
        """Return the first encoded path after a namespace, or after all it stands for."""
        if self.max_depth is not None and self.max_depth <= len(namespace):
            return namespace_upper_bound(namespace[: self.max_depth]) or ""
        # Nothing sorts between a path and its first descendant's.
        return encode_namespace(namespace) + "\x01"


def _begins_with(namespace: Namespace, labels: Namespace) -> bool:
    """Whether the first labels are these, `"*"` standing for any one."""
    return len(labels) <= len(namespace) and all(
        wanted in ("*", label) for wanted, label in zip(labels, namespace, strict=False)
    )
