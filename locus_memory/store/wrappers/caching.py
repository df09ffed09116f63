"""A cache of items, for any backend."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from locus_memory._internal.cancellation import kept
from locus_memory._internal.recent import RecentlyUsed
from locus_memory._internal.running.cache_counts import counts_of
from locus_memory._internal.sameness import own_copy
from locus_memory.errors import InvalidArgumentError
from locus_memory.store.base import BaseStore
from locus_memory.store.batches import as_names, as_operations, as_puts, as_restored
from locus_memory.store.item import Namespace, StoreItem, check_key, check_namespace
from locus_memory.store.wrappers.base import StoreWrapper

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["CachingStore"]

_Name = tuple[Namespace, str]

_COUNTS: Final = counts_of("store")


_LISTED: Final[dict[str, Callable[..., list[Any]]]] = {
    "put_batch": as_puts,
    "delete_batch": as_names,
    "write_batch": as_operations,
    "restore": as_restored,
}


def _one(namespace: Namespace, key: str | None = None, *_: Any, **__: Any) -> list[Any]:
    return [(namespace, key)]


_WRITTEN: Final = {
    **dict.fromkeys(("put", "put_with_embedding", "delete", "clear_namespace"), _one),
    **_LISTED,
}
"""What each verb writes, by its arguments; without a key, a namespace and all below it."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A cached item.

    Attributes:
        item: The item; `None`: there is none.
        until: Its last moment, by the timer of the cache.
    """

    item: StoreItem | None
    until: float


class CachingStore(StoreWrapper):
    """A store that keeps the items read last, so that reading them again asks no database.

    `get`, `get_item`, `exists` and `get_batch` are answered from the cache, also that an item does
    not exist. All other verbs ask the inner store.

    - A write through this object drops what it writes, also if it fails: the next read sees it.
      Writes of other objects and processes are seen after `max_age` seconds at the latest,
      counted from the moment before the item was read. Choose `max_age` accordingly.
    - An item is never returned after its own `ttl`.
    - Calls that read the same item at the same time share one read. Its error goes to all of
      them, and is not cached.
    - The caller gets a copy, and may change it.

    A conditional write is decided by the inner store. If it loses because the version that was read
    is old, the item is dropped from the cache, so reading again helps.

    Args:
        store: The inner store, a backend that has one, or a provider string.
        max_items: At most this many items are kept; the least recently used one is dropped first.
        max_age: Seconds for which an item is kept.
        clock: Returns seconds since the epoch; pass the clock of the inner store.
        timer: Returns seconds that never go back, for `max_age`.

    Raises:
        InvalidArgumentError: `max_items` is below 1, or `max_age` is not positive.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        *,
        max_items: int = 10_000,
        max_age: float = 30.0,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_items < 1:
            raise InvalidArgumentError(f"max_items is at least 1, not {max_items}")
        if not max_age > 0:
            raise InvalidArgumentError(f"max_age is a positive number of seconds, not {max_age}")
        super().__init__(store)
        self._max_age = max_age
        self._clock = clock
        self._timer = timer
        self._kept = RecentlyUsed[_Kept](max_items)
        self._loads: dict[_Name, asyncio.Task[StoreItem | None]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        """Return the number of cached items, those that are not there included."""
        return len(self._kept)

    @override
    async def get(self, namespace: Namespace, key: str) -> Any:
        item = await self._item(namespace, key)
        return None if item is None else own_copy(item.value)

    @override
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        item = await self._item(namespace, key)
        if item is None:
            return None
        return replace(item, value=own_copy(item.value), metadata=own_copy(item.metadata))

    @override
    async def exists(self, namespace: Namespace, key: str) -> bool:
        return await self._item(namespace, key) is not None

    @override
    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        """Return the values of the items that exist; those not cached are read in one call.

        That call returns no times of expiry, so its values are not cached.
        """
        names = [(check_namespace(each), check_key(key)) for each, key in as_names(keys)]
        known = {name: last for name in names if (last := self._recall(name)) is not None}
        missing = [name for name in names if name not in known]
        found = await self.inner.get_batch(missing) if missing or not names else {}
        for name, each in known.items():
            if each.item is not None:
                found[name] = own_copy(each.item.value)
        return {name: found[name] for name in names if name in found}

    @override
    async def close(self) -> None:
        self._forget([((), None)])
        await super().close()

    async def _item(self, namespace: Namespace, key: str) -> StoreItem | None:
        """Return the item, which belongs to the cache."""
        name = (check_namespace(namespace), check_key(key))
        known = self._recall(name)
        return await asyncio.shield(self._load(name)) if known is None else known.item

    def _recall(self, name: _Name) -> _Kept | None:
        """Return a cached item that is not too old."""
        known = self._kept.get(name)
        if known is None or self._is_over(known):
            _COUNTS.misses += 1
            return None
        self._kept.touch(name)
        _COUNTS.hits += 1
        return known

    def _is_over(self, known: _Kept) -> bool:
        expires_at = None if known.item is None else known.item.expires_at
        is_expired = expires_at is not None and expires_at.timestamp() <= self._clock()
        return is_expired or self._timer() >= known.until

    def _load(self, name: _Name) -> asyncio.Task[StoreItem | None]:
        """Return the read of an item that is under way in this event loop, or a new one.

        It belongs to no caller: one that is cancelled leaves it to the others.
        """
        with self._lock:
            load = self._loads.get(name)
            if load is None or load.get_loop() is not asyncio.get_running_loop():
                load = self._loads[name] = kept(self._read(name))
            return load

    async def _read(self, name: _Name) -> StoreItem | None:
        """Read an item, and keep it unless something was written meanwhile."""
        found, until = None, self._timer() + self._max_age
        try:
            item = await self.inner.get_item(*name)
            found = _Kept(item, until)
        finally:
            with self._lock:
                if self._loads.get(name) is asyncio.current_task():
                    del self._loads[name]
                    if found is not None:
                        self._kept.put(name, found)
        return item

    @override
    async def _call(self, verb: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a verb, and drop the items that it may have changed.

        They are dropped after a write that failed or was cancelled as well, because that one may
        have been done all the same. The names are those that the caller passed, valid or not.
        """
        if verb not in _WRITTEN:
            return await super()._call(verb, *args, **kwargs)
        written = _WRITTEN[verb](*args, **kwargs)
        if verb in _LISTED:
            args, kwargs = (written,), {}
        try:
            return await super()._call(verb, *args, **kwargs)
        finally:
            self._forget(
                each if isinstance(each, tuple) else (each.namespace, each.key) for each in written
            )

    def _forget(self, names: Iterable[tuple[Namespace, str | None]]) -> None:
        """Drop items that may have changed; without a key, those of a namespace and below it."""
        with self._lock:
            for namespace, key in names:
                # A name that has no hash is none, and nothing was written.
                with suppress(TypeError):
                    for name in [(namespace, key)] if key is not None else self._below(namespace):
                        self._kept.discard(name)
                        self._loads.pop(name, None)

    def _below(self, namespace: Namespace) -> list[_Name]:
        known: list[_Name] = [*self._kept.all(), *self._loads]
        return [name for name in known if name[0][: len(namespace)] == namespace]
