"""The wrapper that changes nothing, and the base class of every other wrapper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from typing_extensions import override

from locus_memory._internal.resource import Forwarding, forwarded
from locus_memory.store.base import BaseStore
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.opening import store_of

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["READS", "WRITES", "StoreWrapper"]

READS: Final = (
    *("get", "get_item", "exists", "scan", "list_keys", "list_namespaces", "get_batch"),
    *("search", "get_embedding", "search_by_embedding"),
)
"""The verbs that change nothing."""

WRITES: Final = (
    *("put", "put_with_embedding", "delete", "clear_namespace", "compact"),
    *("put_batch", "delete_batch", "write_batch", "restore"),
)
"""The verbs that may change the store."""


class StoreWrapper(Forwarding, BaseStore):
    """A store that passes every verb on to an inner store; a subclass overrides some of them.

    Closing the wrapper closes the inner store, but the store of a backend stays open with it.

    Args:
        store: The inner store, a backend that has one, or a provider string.
    """

    _closes = True

    def __init__(self, store: str | BaseStore | Backend) -> None:
        self.inner, owned = store_of(store)
        self._closes = owned or self.inner is store

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        return self.inner.capabilities

    put = forwarded(BaseStore.put)
    get = forwarded(BaseStore.get)
    get_item = forwarded(BaseStore.get_item)
    exists = forwarded(BaseStore.exists)
    delete = forwarded(BaseStore.delete)
    scan = forwarded(BaseStore.scan)
    list_keys = forwarded(BaseStore.list_keys)
    list_namespaces = forwarded(BaseStore.list_namespaces)
    clear_namespace = forwarded(BaseStore.clear_namespace)
    compact = forwarded(BaseStore.compact)
    put_batch = forwarded(BaseStore.put_batch)
    get_batch = forwarded(BaseStore.get_batch)
    delete_batch = forwarded(BaseStore.delete_batch)
    write_batch = forwarded(BaseStore.write_batch)
    restore = forwarded(BaseStore.restore)
    search = forwarded(BaseStore.search)
    put_with_embedding = forwarded(BaseStore.put_with_embedding)
    get_embedding = forwarded(BaseStore.get_embedding)
    search_by_embedding = forwarded(BaseStore.search_by_embedding)
    open = forwarded(BaseStore.open)

    @override
    async def close(self) -> None:
        if self._closes:
            await self.inner.close()
