"""The base class of wrappers that must know of every write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from typing_extensions import override

from locus_memory.store.batches import as_names, as_operations, as_puts, as_restored
from locus_memory.store.item import Delete, Namespace, Put, Restored
from locus_memory.store.wrappers.base import StoreWrapper

__all__ = ["WriteObserver", "Written"]

Written = tuple[Namespace, str | None]
"""A name that was written: a namespace and a key, or `None` for a namespace with descendants."""


class WriteObserver(StoreWrapper):
    """A wrapper whose `_written` is called after every write.

    It is also called after a write that failed or was cancelled, because that one may have been
    done all the same. Its names are those that the caller passed, valid or not.
    """

    def _written(self, names: Sequence[Written]) -> None:
        """Note which items may have changed."""

    @override
    async def put(self, namespace: Namespace, key: str, *args: Any, **kwargs: Any) -> int:
        try:
            return await self.inner.put(namespace, key, *args, **kwargs)
        finally:
            self._written([(namespace, key)])

    @override
    async def put_with_embedding(
        self, namespace: Namespace, key: str, *args: Any, **kwargs: Any
    ) -> int:
        try:
            return await self.inner.put_with_embedding(namespace, key, *args, **kwargs)
        finally:
            self._written([(namespace, key)])

    @override
    async def delete(self, namespace: Namespace, key: str, *args: Any, **kwargs: Any) -> bool:
        try:
            return await self.inner.delete(namespace, key, *args, **kwargs)
        finally:
            self._written([(namespace, key)])

    @override
    async def clear_namespace(self, namespace: Namespace, *args: Any, **kwargs: Any) -> int:
        try:
            return await self.inner.clear_namespace(namespace, *args, **kwargs)
        finally:
            self._written([(namespace, None)])

    @override
    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        puts = as_puts(items)
        try:
            return await self.inner.put_batch(puts)
        finally:
            self._written([(put.namespace, put.key) for put in puts])

    @override
    async def restore(self, items: Iterable[Restored]) -> None:
        given = as_restored(items)
        try:
            await self.inner.restore(given)
        finally:
            self._written([(each.namespace, each.key) for each in given])

    @override
    async def delete_batch(self, keys: Iterable[tuple[Namespace, str]]) -> int:
        names = as_names(keys)
        try:
            return await self.inner.delete_batch(names)
        finally:
            self._written(names)

    @override
    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        given = as_operations(operations)
        try:
            return await self.inner.write_batch(given)
        finally:
            self._written([(each.namespace, each.key) for each in given])
