"""The copy of the items of a store, with their moments and their expiry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from langgraph.store.base import IndexConfig

from locus_memory.backends.base import Backend
from locus_memory.errors import StoreCapabilityError
from locus_memory.integrations.langgraph.importing.stores import ItemSource, StoredItem
from locus_memory.integrations.langgraph.items.restoring import PastItem
from locus_memory.integrations.langgraph.store import LocusStore
from locus_memory.integrations.reading import tell_unreadable
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace
from locus_memory.store.opening import store_of

__all__ = ["CopiedItems", "import_items"]

_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class CopiedItems:
    """The result of the import of one namespace.

    Attributes:
        namespace: The namespace.
        items: Number of items of the source that can be read and have not expired.
        saved: Number of items that this import wrote.
        kept: Number of items that stayed as they are in the target, since they are newer there.
        expired: Number of items that have expired, and are left out.
        unreadable: Number of rows that are no items, and are left out.
    """

    namespace: Namespace
    items: int = 0
    saved: int = 0
    kept: int = 0
    expired: int = 0
    unreadable: int = 0


async def import_items(
    source: ItemSource,
    where: str | BaseStore | Backend,
    *,
    index: IndexConfig | Mapping[str, Any] | None = None,
    on_item: Callable[[Namespace, int], None] = lambda _, __: None,
) -> list[CopiedItems]:
    """Copy the items of another store; of two versions of an item, the one put last stays.

    After a kill, the next import adds the missing items. A row that is no item is left out, and is
    told by the event `integrations.item_unreadable`.

    Args:
        source: See `open_items` and `items_of`.
        where: The target, as for `LocusStore`.
        index: As for `LocusStore`: computes the vectors of the items that are written.
        on_item: Called after each page with the last namespace and the number of items so far.

    Raises:
        ConfigurationError: The target has no semantic search for `index`.
        StoreCapabilityError: The target has no expiry, and an item has one; nothing was written.
        BackendError: The target failed.
    """
    store, owned = store_of(where)
    try:
        await store.open()
        if not store.capabilities.ttl and await source.mortal():
            raise StoreCapabilityError("ttl", type(store).__name__, "Items of the source expire")
        copying = _Copying(LocusStore(store, index=index), on_item)
        return await copying.all(source)
    finally:
        if owned:
            await store.close()


@dataclass(slots=True)
class _Copying:
    """One call of `import_items`."""

    target: LocusStore
    on_item: Callable[[Namespace, int], None]
    done: dict[Namespace, CopiedItems] = field(default_factory=dict[Namespace, CopiedItems])
    number: int = 0

    async def all(self, source: ItemSource) -> list[CopiedItems]:
        page: list[PastItem] = []
        async for item in self._readable(source):
            page.append(item)
            if len(page) == _PAGE:
                await self._write(page)
                page = []
        await self._write(page)
        return [self.done[name] for name in sorted(self.done)]

    async def _readable(self, source: ItemSource) -> AsyncIterator[PastItem]:
        now = datetime.now(UTC)
        async for stored in source.items():
            item = stored.item
            if item is None:
                self._tell(stored)
            elif item.expires_at is not None and item.expires_at <= now:
                self._count(item.namespace, expired=1)
            else:
                self._count(item.namespace, items=1)
                yield item

    async def _write(self, page: list[PastItem]) -> None:
        if not page:
            return
        result = await self.target.arestore(page)
        for item in result.written:
            self._count(item.namespace, saved=1)
        for item in result.kept:
            self._count(item.namespace, kept=1)
        self.number += len(page)
        self.on_item(page[-1].namespace, self.number)

    def _tell(self, stored: StoredItem) -> None:
        self._count(stored.namespace, unreadable=1)
        error = stored.error or ValueError("it is no item")
        tell_unreadable(stored.namespace, stored.key, error)

    def _count(self, namespace: Namespace, **more: int) -> None:
        known = self.done.get(namespace) or CopiedItems(namespace)
        sums = {name: getattr(known, name) + count for name, count in more.items()}
        self.done[namespace] = replace(known, **sums)
