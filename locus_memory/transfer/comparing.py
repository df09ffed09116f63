"""The comparison of two databases: item by item, and by digests of all their parts.

A digest is a SHA-256 of the items of a namespace in key order, or of the checkpoints of a thread in
their order. It does not depend on the database, on the encoding of a thread as deltas, or on the
order of keys in an object. Two databases hold the same exactly if all their digests are equal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, TypeVar

import orjson

from locus_memory.backends.base import Backend, checkpointer_of, store_of
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import mark_of, without_mark
from locus_memory.store.base import BaseStore, all_namespaces, has_semantic_search, scan_all
from locus_memory.store.checksum import canonical
from locus_memory.store.item import Namespace, StoreItem
from locus_memory.transfer.marker import MARKER
from locus_memory.transfer.options import Comparison, MigrateOptions, Progress
from locus_memory.transfer.reading import (
    all_threads,
    checkpoints_of,
    heads_of,
    identity,
    read_all,
    restorable,
)

__all__ = [
    "Digest",
    "Pair",
    "compare",
    "either",
    "is_newer",
    "item_pairs",
    "namespace_digest",
    "same_item",
    "thread_digest",
]

T = TypeVar("T")

_SOON: Final = timedelta(minutes=5)
"""Items that expire so soon are not compared: they may expire between the two reads."""

_ALIKE: Final = 0.999
"""The least cosine of a vector and its copy: the vector sets of Redis round the numbers."""


Pair = tuple[StoreItem | None, StoreItem | None]
"""The items of one key: of the source and of the target; `None` where there is none."""


async def pairs(
    ours: AsyncIterator[T], theirs: AsyncIterator[T], name: Callable[[T], Any] = lambda entry: entry
) -> AsyncIterator[tuple[T | None, T | None]]:
    """Yield the entries of two sorted listings by name; `None` where one has no such entry.

    Args:
        ours: The entries of the source.
        theirs: The entries of the target.
        name: Returns the name of an entry; by default, the entry itself.
    """
    one, other = await anext(ours, None), await anext(theirs, None)
    while one is not None or other is not None:
        is_ours = other is None or (one is not None and name(one) <= name(other))
        is_theirs = one is None or (other is not None and name(other) <= name(one))
        yield one if is_ours else None, other if is_theirs else None
        one = await anext(ours, None) if is_ours else one
        other = await anext(theirs, None) if is_theirs else other


async def either(ours: AsyncIterator[T], theirs: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield the names of two sorted listings, each once, in order."""
    async for one, other in pairs(ours, theirs):
        if (name := other if one is None else one) is not None:
            yield name


def item_pairs(source: BaseStore, target: BaseStore, namespace: Namespace) -> AsyncIterator[Pair]:
    """Yield the items of a namespace of both stores, by key."""
    ours, theirs = scan_all(source, namespace), scan_all(target, namespace)
    return pairs(ours, theirs, lambda item: item.key)


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
    is_own = mark_of(one.metadata) is None if mark is None else mark.made_by(embedder)
    return is_own and without_mark(one) == without_mark(other)


def is_newer(one: StoreItem | None, other: StoreItem | None) -> bool:
    """Whether `merge` keeps an item of the target: the source has none, or an older one."""
    return other is not None and (one is None or other.updated_at > one.updated_at)


@dataclass(slots=True)
class Digest:
    """A count and a SHA-256, extended by one item or checkpoint after another."""

    count: int = 0
    _hash: Any = field(default_factory=sha256)

    def add(self, *parts: Any) -> None:
        """Add an item or a checkpoint; its parts are JSON, or moments in UTC."""
        for part in parts:
            encoded = canonical(part)
            self._hash.update(len(encoded).to_bytes(8, "big") + encoded)
        self.count += 1

    def add_item(self, item: StoreItem) -> None:
        """Add an item."""
        moments = item.created_at, item.updated_at, item.expires_at
        self.add([item.key, item.version, *moments], item.value, item.metadata)

    @property
    def text(self) -> str:
        """The digest so far: 64 hexadecimal digits."""
        return str(self._hash.hexdigest())


async def namespace_digest(store: BaseStore, namespace: Namespace) -> Digest:
    """Return the digest of the items of one namespace, in key order."""
    digest = Digest()
    async for item in scan_all(store, namespace):
        digest.add_item(item)
    return digest


async def thread_digest(
    checkpointer: BaseCheckpointer, thread_id: str, count: int | None = None
) -> Digest:
    """Return the digest of a thread, or of its first checkpoints, the oldest first."""
    digest = Digest()
    heads = (await heads_of(checkpointer, thread_id))[:count]
    async for checkpoint in checkpoints_of(checkpointer, heads):
        digest.add([*identity(checkpoint), checkpoint.kind], checkpoint.state)
    return digest


async def compare(
    source: Backend[Any],
    target: Backend[Any],
    options: MigrateOptions,
    on_progress: Callable[[Progress], None] | None = None,
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
            if namespace != MARKER:
                yield await _compare_items(store, other, namespace, options)
                show(Progress("verify", 1, orjson.dumps(namespace).decode(), 0))
    threads, others = checkpointer_of(source), checkpointer_of(target)
    if options.only != "items" and threads is not None and others is not None:
        async for thread_id in _names(all_threads(threads), all_threads(others), options):
            one = await thread_digest(threads, thread_id)
            # What the target has beyond the source is its own.
            two = await thread_digest(others, thread_id, one.count if options.merge else None)
            yield Comparison("thread", (thread_id,), one.count, two.count, one.text, two.text)
            show(Progress("verify", 1, thread_id, 0))


def _names(ours: Any, theirs: Any, options: MigrateOptions) -> AsyncIterator[Any]:
    """Return the names to compare: with `merge`, only those of the source."""
    return ours if options.merge else either(ours, theirs)


async def _compare_items(
    source: BaseStore, target: BaseStore, namespace: Namespace, options: MigrateOptions
) -> Comparison:
    until = datetime.now(UTC) + _SOON
    ours, theirs = Digest(), Digest()
    async for pair in item_pairs(source, target, namespace):
        if options.merge and is_newer(*pair):
            continue
        for item, digest in zip(pair, (ours, theirs), strict=True):
            if item is not None and (item.expires_at is None or item.expires_at > until):
                digest.add_item(item if options.reembed is None else without_mark(item))
    is_copied = options.vectors and options.reembed is None
    different = 0
    if is_copied:
        different = await _different_vectors(source, target, namespace, merge=options.merge)
    return Comparison(
        "namespace", namespace, ours.count, theirs.count, ours.text, theirs.text, different
    )


async def _different_vectors(
    source: BaseStore, target: BaseStore, namespace: Namespace, *, merge: bool
) -> int:
    """Return how many of the items that both stores have differ in their vectors."""
    if not (await has_semantic_search(source) and await has_semantic_search(target)):
        return 0
    different = 0
    async for page in read_all(source, namespace):
        copies = await restorable(target, namespace, [each.key for each in page])
        of = {each.key: each for each in copies}
        shared = [(each, of[each.key]) for each in page if each.key in of]
        different += sum(
            not _alike(one.embedding, other.embedding)
            for one, other in shared
            if not (merge and one.updated_at < other.updated_at)
        )
    return different


def _alike(one: Sequence[float] | None, other: Sequence[float] | None) -> bool:
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and sum(a * b for a, b in zip(one, other, strict=True)) > _ALIKE
