"""The wrapper that changes nothing, and the base class of every other wrapper."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from typing_extensions import override

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

_Verb = TypeVar("_Verb", bound=Callable[..., Any])


def _forward(verb: _Verb) -> _Verb:
    """Return a method that calls the verb of the same name on the inner store."""

    @wraps(verb)
    async def forwarded(self: StoreWrapper, *args: Any, **kwargs: Any) -> Any:
        return await getattr(self.inner, verb.__name__)(*args, **kwargs)

    # `wraps` copies this attribute from the abstract verbs.
    vars(forwarded).pop("__isabstractmethod__", None)
    return cast("_Verb", forwarded)


class StoreWrapper(BaseStore):
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

    put = _forward(BaseStore.put)
    get = _forward(BaseStore.get)
    get_item = _forward(BaseStore.get_item)
    exists = _forward(BaseStore.exists)
    delete = _forward(BaseStore.delete)
    scan = _forward(BaseStore.scan)
    list_keys = _forward(BaseStore.list_keys)
    list_namespaces = _forward(BaseStore.list_namespaces)
    clear_namespace = _forward(BaseStore.clear_namespace)
    compact = _forward(BaseStore.compact)
    put_batch = _forward(BaseStore.put_batch)
    get_batch = _forward(BaseStore.get_batch)
    delete_batch = _forward(BaseStore.delete_batch)
    write_batch = _forward(BaseStore.write_batch)
    restore = _forward(BaseStore.restore)
    search = _forward(BaseStore.search)
    put_with_embedding = _forward(BaseStore.put_with_embedding)
    get_embedding = _forward(BaseStore.get_embedding)
    search_by_embedding = _forward(BaseStore.search_by_embedding)
    open = _forward(BaseStore.open)

    @override
    async def close(self) -> None:
        if self._closes:
            await self.inner.close()
