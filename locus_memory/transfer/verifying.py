"""The comparison of two databases, part by part."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from locus_memory.backends.base import Backend
from locus_memory.retrieval.embedders.marks import without_mark
from locus_memory.store.base import BaseStore, all_namespaces, has_semantic_search
from locus_memory.store.item import Namespace, StoreItem
from locus_memory.transfer.differences import Pair, either, pairs
from locus_memory.transfer.digests import Digest, thread_digest
from locus_memory.transfer.items import PAGE, restorable
from locus_memory.transfer.marker import MARKER
from locus_memory.transfer.options import Comparison, MigrateOptions, Progress
from locus_memory.transfer.parts import checkpointer_of, store_of
from locus_memory.transfer.threads import all_threads

__all__ = ["compare"]

_SOON: Final = timedelta(minutes=5)
"""Items that expire so soon are not compared: they may expire between the two reads."""

_ALIKE: Final = 0.999
"""The least cosine of a vector and its copy: the vector sets of Redis round the numbers."""

OnProgress = Callable[[Progress], None]


async def compare(
    source: Backend[Any],
    target: Backend[Any],
    options: MigrateOptions,
    on_progress: OnProgress | None = None,
) -> AsyncIterator[Comparison]:
    """Yield a comparison of each namespace, and then of each thread.

    Args:
        source: The source of a migration.
        target: The target, made from it.
        options: The options of the migration: they decide which parts are compared, and whether
            further data of the target counts as a difference.
        on_progress: Called after each part.

    Raises:
        BackendError: A database failed.
    """
    show = on_progress or (lambda _: None)
    store, other = store_of(source), store_of(target)
    if options.only != "threads" and store is not None and other is not None:
        async for namespace in _names(all_namespaces(store), all_namespaces(other), options):
            if namespace == MARKER:
                continue
            yield await _compare_items(store, other, namespace, options)
            show(Progress("verify", 1, orjson.dumps(namespace).decode(), 0))
    threads, others = checkpointer_of(source), checkpointer_of(target)
    if options.only != "items" and threads is not None and others is not None:
        async for thread_id in _names(all_threads(threads), all_threads(others), options):
            one = await thread_digest(threads, thread_id)
            two = await thread_digest(others, thread_id)
            yield Comparison("thread", (thread_id,), one.count, two.count, one.text, two.text)
            show(Progress("verify", 1, thread_id, 0))


def _names(ours: Any, theirs: Any, options: MigrateOptions) -> AsyncIterator[Any]:
    """Return the names to compare: with `merge`, only those of the source."""
    return ours if options.merge else either(ours, theirs)


@dataclass(slots=True)
class _Items:
    """The comparison of a namespace, item by item."""

    source: BaseStore
    target: BaseStore
    namespace: Namespace
    options: MigrateOptions
    until: datetime
    ours: Digest = field(default_factory=Digest)
    theirs: Digest = field(default_factory=Digest)
    different: int = 0

    def add(self, pair: Pair) -> None:
        """Add the items of a key."""
        if pair.source is None and self.options.merge:
            return
        for item, digest in ((pair.source, self.ours), (pair.target, self.theirs)):
            if item is not None and (item.expires_at is None or item.expires_at > self.until):
                digest.add_items([self._plain(item)])

    def _plain(self, item: StoreItem) -> StoreItem:
        return item if self.options.reembed is None else without_mark(item)

    async def add_vectors(self, keys: Sequence[str]) -> None:
        """Compare the vectors of items that both have."""
        one = await self._vectors_of(self.source, keys)
        two = await self._vectors_of(self.target, keys)
        self.different += sum(not _alike(one[key], two[key]) for key in one.keys() & two.keys())

    async def _vectors_of(
        self, store: BaseStore, keys: Sequence[str]
    ) -> dict[str, Sequence[float] | None]:
        items = await restorable(store, self.namespace, keys)
        return {each.key: each.embedding for each in items}


def _alike(one: Sequence[float] | None, other: Sequence[float] | None) -> bool:
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and sum(a * b for a, b in zip(one, other, strict=True)) > _ALIKE


async def _compare_items(
    source: BaseStore, target: BaseStore, namespace: Namespace, options: MigrateOptions
) -> Comparison:
    copied = options.vectors and options.reembed is None
    has_vectors = copied and await has_semantic_search(source) and await has_semantic_search(target)
    until = datetime.now(UTC) + _SOON
    items = _Items(source, target, namespace, options, until)
    keys: list[str] = []
    async for pair in pairs(source, target, namespace):
        items.add(pair)
        if has_vectors and pair.source is not None:
            keys.append(pair.source.key)
        if len(keys) >= PAGE:
            await items.add_vectors(keys)
            keys.clear()
    if keys:
        await items.add_vectors(keys)
    ours, theirs = items.ours, items.theirs
    return Comparison(
        kind="namespace",
        name=namespace,
        count=ours.count,
        target_count=theirs.count,
        digest=ours.text,
        target_digest=theirs.text,
        vectors=items.different,
    )
