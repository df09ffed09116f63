"""Re-embedding: stored items get the vectors of another model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from locus_memory._internal.quoting import quote
from locus_memory._internal.running.paging import paged
from locus_memory.errors import ConfigurationError, InvalidArgumentError, VersionConflictError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import embedded_put, mark_of
from locus_memory.retrieval.embedding import embed
from locus_memory.store.base import BaseStore, all_namespaces, has_semantic_search
from locus_memory.store.item import Namespace, Put, StoreItem, check_namespace
from locus_memory.store.opening import borrowed
from locus_memory.store.text import index_text
from locus_memory.store.wrappers.embedding import EmbeddingStore

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["ReembedReport", "reembed"]

_PAGE: Final = 500
_ROUNDS: Final = 5
"""How often an item that other writers keep changing is embedded before it is left."""


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """The progress or the result of a run.

    Attributes:
        total: The number of items.
        seen: The number of items read so far.
        embedded: The number of items with a new vector.
        current: The number of items that already had a vector of this embedder.
        skipped: The number of items without text, or without a mark unless `include_unmarked` is
            set.
        left: The number of items that kept changing while they were embedded.
    """

    total: int = 0
    seen: int = 0
    embedded: int = 0
    current: int = 0
    skipped: int = 0
    left: int = 0


async def reembed(
    store: str | BaseStore | Backend,
    namespace: Namespace,
    embedder: Embedder,
    *,
    recursive: bool = False,
    include_unmarked: bool = False,
    text_of: Callable[[Any], str] = index_text,
    batch_size: int = 64,
    on_progress: Callable[[ReembedReport], None] | None = None,
    clock: Callable[[], float] = time.time,
) -> ReembedReport:
    """Recompute the vectors of a namespace with this embedder, a batch at a time.

    The mark of each item names the model of its vector. So a run may be stopped at any time, and
    the next call continues where it stopped. A concurrent put is never overwritten. An item keeps
    its value, metadata, text, creation time and expiry; its version and update time change. Until
    the run is complete, a vector search does not find items whose vectors have another length, and
    raises `ConfigurationError` if it finds one of another model.

    Args:
        store: A store, a backend that has one, or a provider string, whose store is closed
            afterwards. For an `EmbeddingStore`, pass its inner store.
        namespace: The namespace of the items.
        embedder: The new embedder.
        recursive: Include the items of the descendants.
        include_unmarked: Include items without a mark: items that never had a vector, and those
            whose vector has another source. No store returns the `text` that such an item was put
            with, so text search sees the value's own strings from then on.
        text_of: Returns the text to embed of a value whose mark has no text; by default all its
            strings.
        batch_size: How many items are embedded and written at a time.
        on_progress: Called with the progress after each batch.
        clock: Returns seconds since the epoch, like the store's clock.

    Raises:
        ConfigurationError: The store has no semantic search, or only for another dimension.
        InvalidArgumentError: An invalid namespace, or a batch size below 1.
        InvalidEmbeddingError: The embedder did not return valid vectors.
        BackendError: The database failed.
    """
    if batch_size < 1:
        raise InvalidArgumentError(f"batch_size is at least 1, not {batch_size}")
    async with borrowed(store) as found:
        inner = found
        while isinstance(inner, EmbeddingStore):
            inner = inner.inner
        work = _Work(inner, embedder, text_of, include_unmarked, batch_size, clock, ReembedReport())
        return await work.run(check_namespace(namespace), on_progress, recursive=recursive)


@dataclass(slots=True)
class _Work:
    """One run of `reembed`."""

    store: BaseStore
    embedder: Embedder
    text_of: Callable[[Any], str]
    include_unmarked: bool
    batch_size: int
    clock: Callable[[], float]
    report: ReembedReport

    async def run(
        self,
        namespace: Namespace,
        on_progress: Callable[[ReembedReport], None] | None,
        *,
        recursive: bool,
    ) -> ReembedReport:
        """Process all the items, and return the report."""
        await _check_store(self.store, self.embedder)
        targets = [namespace]
        if recursive:
            targets = [each async for each in all_namespaces(self.store, namespace)]
        counts = [await _count(self.store, each) for each in targets]
        self.report = replace(self.report, total=sum(counts))
        for target in targets:
            after: str | None = None
            while (after := await self.batch(target, after)) is not None:
                if on_progress is not None:
                    on_progress(self.report)
        return self.report

    async def batch(self, target: Namespace, after: str | None) -> str | None:
        """Process the items after a key and return the last one's key; `None`: there are none."""
        items = await self.store.scan(target, self.batch_size, after=after)
        if not items:
            return None
        self._count(seen=len(items), current=sum(map(self._is_current, items)))
        todo = [item for item in items if self._wants(item)]
        self._count(skipped=len(items) - len(todo) - sum(map(self._is_current, items)))
        for _ in range(_ROUNDS):
            if not todo:
                break
            todo = await self._do(todo, target, after)
        self._count(left=len(todo))
        return items[-1].key

    async def _do(
        self, todo: list[StoreItem], target: Namespace, after: str | None
    ) -> list[StoreItem]:
        """Embed the items and write them back; return those that changed meanwhile."""
        puts = await self._puts(todo)
        # Embedding takes time. The version of an item that was deleted and put again may be the
        # same, so the items are read once more to find the changed ones.
        now = await self.store.scan(target, self.batch_size, after=after)
        fresh = [put for item, put in zip(todo, puts, strict=True) if put and item in now]
        self._count(embedded=await self._write(fresh))
        keys = {item.key for item in todo}
        later = await self.store.scan(target, self.batch_size, after=after)
        return [item for item in later if item.key in keys and self._wants(item)]

    async def _puts(self, items: list[StoreItem]) -> list[Put | None]:
        texts = [self._text(item) for item in items]
        vectors = await embed(self.embedder, texts, "document")
        return [self._put(item, vector) for item, vector in zip(items, vectors, strict=True)]

    def _put(self, item: StoreItem, vector: Sequence[float]) -> Put | None:
        """Return the put that writes an item back, unless it has expired."""
        ttl = None if item.expires_at is None else item.expires_at.timestamp() - self.clock()
        if ttl is not None and ttl <= 0:
            return None
        mark = mark_of(item.metadata)
        own = None if self.text_of is index_text else self.text_of(item.value)
        put = Put(
            namespace=item.namespace,
            key=item.key,
            value=item.value,
            metadata=item.metadata,
            ttl=ttl,
            if_version=item.version,
            text=mark.text if mark else None,
        )
        return embedded_put(put, vector, self.embedder, source=mark.source if mark else own)

    async def _write(self, puts: list[Put]) -> int:
        try:
            return len(await self.store.put_batch(puts))
        except VersionConflictError:
            count = 0
            for put in puts:
                with suppress(VersionConflictError):
                    count += len(await self.store.put_batch([put]))
            return count

    def _is_current(self, item: StoreItem) -> bool:
        mark = mark_of(item.metadata)
        return mark is not None and mark.made_by(self.embedder)

    def _wants(self, item: StoreItem) -> bool:
        mark = mark_of(item.metadata)
        asked_for = self.include_unmarked if mark is None else not mark.made_by(self.embedder)
        return asked_for and bool(self._text(item).strip())

    def _text(self, item: StoreItem) -> str:
        mark = mark_of(item.metadata)
        if mark is None:
            return self.text_of(item.value)
        return mark.source or mark.text or self.text_of(item.value)

    def _count(self, **more: int) -> None:
        report = self.report
        self.report = replace(
            report, **{name: getattr(report, name) + count for name, count in more.items()}
        )


async def _check_store(store: BaseStore, embedder: Embedder) -> None:
    if not await has_semantic_search(store):
        raise ConfigurationError(f"{quote(store)} has no semantic search to embed for")
    held = store.capabilities.embedding_dimension
    if held not in (None, embedder.dimension):
        raise ConfigurationError(
            f"{embedder.name} makes vectors of {embedder.dimension} dimensions, "
            f"{quote(store)} holds {held}"
        )


async def _count(store: BaseStore, namespace: Namespace) -> int:
    keys = paged(lambda after: store.list_keys(namespace, _PAGE, after=after))
    return sum([1 async for _ in keys])
