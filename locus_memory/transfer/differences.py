"""The differences of a namespace between two stores: a walk over both, in key order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, TypeVar

from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import mark_of, without_mark
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["Pair", "either", "pairs", "same_item"]

T = TypeVar("T", str, Namespace)


class Pair(NamedTuple):
    """The items of one key: of the source and of the target; `None` where there is none."""

    source: StoreItem | None
    target: StoreItem | None


async def pairs(source: BaseStore, target: BaseStore, namespace: Namespace) -> AsyncIterator[Pair]:
    """Yield the items of a namespace of both stores, by key."""
    ours, theirs = scan_all(source, namespace), scan_all(target, namespace)
    one, other = await anext(ours, None), await anext(theirs, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.key < other.key):
            yield Pair(one, None)
            one = await anext(ours, None)
        elif one is None or other.key < one.key:
            yield Pair(None, other)
            other = await anext(theirs, None)
        else:
            yield Pair(one, other)
            one, other = await anext(ours, None), await anext(theirs, None)


def same_item(one: StoreItem, other: StoreItem, embedder: Embedder | None = None) -> bool:
    """Whether an item of the target is the item of the source.

    Args:
        one: The item of the source.
        other: The item of the target.
        embedder: The embedder of the target's vectors; `None`: they are copies.
    """
    if embedder is None:
        return one == other
    mark = mark_of(other.metadata)
    if mark is not None and not mark.made_by(embedder):
        return False
    if mark is None and mark_of(one.metadata) is not None:
        return False
    return without_mark(one) == without_mark(other)


async def either(ours: AsyncIterator[T], theirs: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield the names of two sorted listings, each once, in order."""
    one, other = await anext(ours, None), await anext(theirs, None)
    while one is not None or other is not None:
        first = one if other is None or (one is not None and one <= other) else other
        if one == first:
            one = await anext(ours, None)
        if other == first:
            other = await anext(theirs, None)
        if first is not None:
            yield first
