"""The tree of namespaces; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from locus_memory.store.item import Namespace

__all__ = ["Node", "grow"]


@dataclass(slots=True)
class Node:
    """A node of the tree.

    Attributes:
        namespace: Its labels.
        holds_items: Whether the namespace itself holds an item.
        children: The namespaces below it, by their next labels.
    """

    namespace: Namespace = ()
    holds_items: bool = False
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The last label."""
        return self.namespace[-1]

    @property
    def count(self) -> int:
        """How many namespaces of this node and below hold an item; no recursion, as it is deep."""
        count = 0
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            count += node.holds_items
            waiting.extend(node.children.values())
        return count


def grow(namespaces: Iterable[Namespace]) -> Node:
    """Return the tree of namespaces; its root has no labels."""
    root = Node()
    for namespace in namespaces:
        node = root
        for depth, label in enumerate(namespace, 1):
            node = node.children.setdefault(label, Node(tuple(namespace[:depth])))
        node.holds_items = True
    return root
