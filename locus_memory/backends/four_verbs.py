"""A store over four verbs: `put`, `get`, `delete` and `list_keys` of values alone.

What these do not know, an item's version, moments, metadata and expiry, stands with its value in an
envelope. So the store of another SDK, or a few lines around a dictionary, keeps the whole contract.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from weakref import WeakValueDictionary

from typing_extensions import override

from locus_memory._internal.running.turns import turns_of
from locus_memory.backends.checked_store import CheckedStore
from locus_memory.backends.selection import KeyRange, Page, Selection
from locus_memory.errors import (
    BackendClosedError,
    BackendCorruptError,
    InvalidArgumentError,
    VersionConflictError,
)
from locus_memory.store.base import EVERY, BaseStore
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    StoreCapabilities,
    StoreItem,
    check_text,
    timestamp,
)
from locus_memory.store.json_values import decode_json, encode_json, encode_metadata, round_trip
from locus_memory.store.listing import Listing, keys_in_range

__all__ = ["FourVerbStore", "whole"]

_ITEM: Final = "locus_memory.item"
"""The only name of an envelope. A value without it was not put by this class: it has version 1."""

_NAMESPACES: Final = ("locus_memory.namespaces",)
"""Has a key for each namespace that was ever put to by this class: the JSON of its labels."""


class FourVerbStore(CheckedStore[Put | Delete]):
    """A store whose items are envelopes in a store that has four verbs.

    Versions are exact among the tasks of one process; another process may write between a read
    and a write of this one. A scan lists all keys of its namespace.

    Args:
        store: Has `put(namespace, key, value)`, `get(namespace, key)`, which returns `None` if
            there is nothing, `delete(namespace, key)` and `list_keys(namespace, limit)`. It is
            opened and closed with this one.
        clock: Returns seconds since the epoch.
    """

    def __init__(self, store: BaseStore, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._turns = turns_of(store)
        self._closed = False

    def __repr__(self) -> str:
        return f"FourVerbStore({self._store!r})"

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        return StoreCapabilities(ttl=True, list_namespaces=True)

    @property
    def inner(self) -> BaseStore:
        """The store with the four verbs.

        Raises:
            BackendClosedError: This store is closed.
        """
        if self._closed:
            raise BackendClosedError(f"{self!r} is closed")
        return self._store

    @override
    async def open(self) -> None:
        await self.inner.open()

    @override
    async def close(self) -> None:
        self._closed = True
        await self._store.close()

    @override
    def _encode(self, operation: Put | Delete, vector: bytes | None) -> Put | Delete:
        if isinstance(operation, Delete):
            return operation
        check_text(operation.text, "text")
        metadata = decode_json(encode_metadata(operation.metadata))
        return replace(operation, value=round_trip(operation.value)[1], metadata=metadata)

    @override
    async def _write(self, operations: Sequence[Put | Delete]) -> list[int]:
        if any(each.namespace == _NAMESPACES for each in operations):
            raise InvalidArgumentError(
                f"a store of four verbs keeps its namespaces in {_NAMESPACES!r}"
            )
        async with self._turns.turn():
            return [await self._write_one(each) for each in operations]

    async def _write_one(self, operation: Put | Delete) -> int:
        namespace, key, wanted = operation.namespace, operation.key, operation.if_version
        before = await self._get_item(namespace, key)
        actual = 0 if before is None else before.version
        if wanted not in (None, actual):
            raise VersionConflictError(wanted, actual, namespace, key)
        if isinstance(operation, Delete):
            await self.inner.delete(namespace, key)
            return int(before is not None)
        now = timestamp(self._clock())
        item = StoreItem(
            namespace=namespace,
            key=key,
            value=operation.value,
            metadata=dict(operation.metadata or {}),
            created_at=now if before is None else before.created_at,
            updated_at=now if before is None else max(now, before.updated_at),
            version=actual + 1,
            expires_at=None if operation.ttl is None else now + timedelta(seconds=operation.ttl),
        )
        if isinstance(operation, Restored):
            names = ("version", "created_at", "updated_at", "expires_at")
            item = replace(item, **{name: getattr(operation, name) for name in names})
        if before is None:
            await self.inner.put(_NAMESPACES, encode_json([*namespace]).decode(), True)
        await self.inner.put(namespace, key, {_ITEM: item.to_dict()})
        return item.version

    @override
    async def _get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        value, now = deepcopy(await self.inner.get(namespace, key)), timestamp(self._clock())
        if value is None:
            return None
        if not (isinstance(value, Mapping) and [*value] == [_ITEM]):
            return StoreItem(namespace, key, value, {}, now, now)
        try:
            item = StoreItem.from_dict(value[_ITEM])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BackendCorruptError(f"{self!r}: an item is damaged") from error
        return None if item.expires_at is not None and item.expires_at <= now else item

    @override
    async def _scan(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[StoreItem]:
        names = await self.inner.list_keys(namespace, EVERY)
        found: list[StoreItem] = []
        for key in keys_in_range(names, keys.prefix, keys.after, descending=keys.descending):
            item = await self._get_item(namespace, key) if len(found) < limit else None
            found += [] if item is None else [item]
        return found

    @override
    async def _list_namespaces(self, listing: Listing, limit: int) -> list[Namespace]:
        names = await self.inner.list_keys(_NAMESPACES, EVERY)
        found: set[Namespace] = set()
        for each in (tuple(decode_json(name)) for name in names):
            cut = listing.cut(each)
            if cut and cut not in found and await self._scan(each, KeyRange(None, None), 1):
                found.add(cut)
        return sorted(found)[:limit]

    # By moments: there is no order of writes.
    search = BaseStore.search

    @override
    async def _newest(self, selection: Selection, page: Page) -> list[StoreItem]:
        raise NotImplementedError


_wholes: Final[WeakValueDictionary[int, FourVerbStore]] = WeakValueDictionary()
"""By the ids of their stores, which they hold; a store may be neither hashable nor weakly held."""


def whole(store: BaseStore) -> BaseStore:
    """Return a store itself, or the `FourVerbStore` of one whose `put` takes no `if_version`."""
    taken: Mapping[str, Any] = inspect.signature(type(store).put).parameters
    kinds = {each.kind for each in taken.values()}
    if "if_version" in taken or inspect.Parameter.VAR_KEYWORD in kinds:
        return store
    return _wholes.setdefault(id(store), FourVerbStore(store))
