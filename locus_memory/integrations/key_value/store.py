"""The store for py-key-value; public as `integrations.key_value`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final

from key_value.aio._utils.managed_entry import ManagedEntry
from key_value.aio.errors import InvalidKeyError as TheirInvalidKeyError
from key_value.aio.errors import InvalidTTLError, SerializationError
from key_value.aio.stores.base import (
    BaseCullStore,
    BaseDestroyCollectionStore,
    BaseDestroyStore,
    BaseEnumerateCollectionsStore,
    BaseEnumerateKeysStore,
)
from typing_extensions import override

from locus_memory.backends.base import Backend
from locus_memory.errors import (
    InvalidArgumentError,
    InvalidKeyError,
    ValueNotSerializableError,
    VersionConflictError,
)
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.reading import (
    DAMAGE,
    decoded,
    get_readable,
    labels_below,
    readable,
)
from locus_memory.store.base import BaseStore
from locus_memory.store.item import (
    Namespace,
    Put,
    StoreItem,
    check_identifier,
    check_limit,
    check_namespace,
    check_ttl,
    quick_put,
)

__all__ = ["LocusKeyValue"]

_NAMESPACE: Final = ("py_key_value",)
_PAGE: Final = 1000
_SHORTEST: Final = 0.001
"""Seconds of an entry that expires while it is written."""


class LocusKeyValue(
    OverStore,
    BaseEnumerateKeysStore,
    BaseEnumerateCollectionsStore,
    BaseDestroyCollectionStore,
    BaseDestroyStore,
    BaseCullStore,
):
    """A `BaseStore` of py-key-value that keeps its entries in any store of the library.

    ```python
    entries = LocusKeyValue("postgresql:mydb")
    server = FastMCP("notes", session_state_store=entries)
    server.add_middleware(ResponseCachingMiddleware(cache_storage=entries))
    ```

    Several processes may use one database. `put_many`, `get_many` and `delete_many` are one round
    trip each where the store has batches. A damaged entry is read as missing, and told by the event
    `integrations.item_unreadable`; a `put` replaces it. A collection has no entry limit.

    Args:
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed here.
        namespace: The namespace of these collections alone.
        default_collection: The collection of calls that name none.
        seed: Entries that are put before the first call: values by key by collection.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self,
        where: str | BaseStore | Backend,
        *,
        namespace: Namespace = _NAMESPACE,
        default_collection: str | None = None,
        seed: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
    ) -> None:
        self._namespace = check_namespace(namespace)
        super().__init__(default_collection=default_collection, seed=seed, stable_api=True)
        self._take(where)

    @override
    async def _setup(self) -> None:
        # Only an open store tells what its server can do.
        await self.store.open()

    @override
    async def _get_managed_entry(self, *, collection: str, key: str) -> ManagedEntry | None:
        place = self._place(collection)
        with _refusals():
            found = await get_readable(
                self.store, place, check_identifier(key, "key"), _entry_of_item
            )
        return found[1] if found else None

    @override
    async def _get_managed_entries(
        self, *, collection: str, keys: Sequence[str]
    ) -> list[ManagedEntry | None]:
        place = self._place(collection)
        names = [(place, _key(key)) for key in keys]
        try:
            found = await self.store.get_batch(names)
        except DAMAGE:
            # One query for many entries fails on a damaged one.
            return [await self._get_managed_entry(collection=collection, key=key) for key in keys]
        return [decoded(*name, _entry_of, found[name]) if name in found else None for name in names]

    @override
    async def _put_managed_entry(
        self, *, collection: str, key: str, managed_entry: ManagedEntry
    ) -> None:
        place = self._place(collection)
        with _refusals():
            await self.store.put_batch([self._put(place, key, managed_entry)])

    @override
    async def _put_managed_entries(
        self,
        *,
        collection: str,
        keys: Sequence[str],
        managed_entries: Sequence[ManagedEntry],
        ttl: float | None,
        created_at: datetime,
        expires_at: datetime | None,
    ) -> None:
        place = self._place(collection)
        # The last of several entries with the same key stays.
        entries = dict(zip(keys, managed_entries, strict=True))
        with _refusals():
            await self.store.put_batch(
                [self._put(place, key, entry) for key, entry in entries.items()]
            )

    @override
    async def _delete_managed_entry(self, *, key: str, collection: str) -> bool:
        return await self.store.delete(self._place(collection), _key(key))

    @override
    async def _delete_managed_entries(self, *, keys: Sequence[str], collection: str) -> int:
        place = self._place(collection)
        return await self.store.delete_batch([(place, _key(key)) for key in dict.fromkeys(keys)])

    @override
    async def _get_collection_keys(self, *, collection: str, limit: int | None = None) -> list[str]:
        """Return the keys in ascending order, all of them without a limit."""
        place = self._place(collection)
        most = None if limit is None else check_limit(limit)
        keys: list[str] = []
        if self.store.capabilities.ttl:
            while page := await self.store.list_keys(
                place, _PAGE if most is None else most - len(keys), after=keys[-1] if keys else None
            ):
                keys += page
            return keys
        async for item, entry in self._entries(place):
            if len(keys) == most:
                break
            if not entry.is_expired:
                keys.append(item.key)
        return keys

    @override
    async def _get_collection_names(self, *, limit: int | None = None) -> list[str]:
        """Return the collections that have an entry, all of them without a limit."""
        most = None if limit is None else check_limit(limit)
        return [each async for each in labels_below(self.store, self._namespace)][:most]

    @override
    async def _delete_collection(self, *, collection: str) -> bool:
        return bool(await self.store.clear_namespace(self._place(collection)))

    @override
    async def _delete_store(self) -> bool:
        """Delete the entries of all collections; those of other namespaces stay."""
        await self.store.clear_namespace(self._namespace, recursive=True)
        return True

    @override
    async def _cull(self) -> None:
        """Delete the expired entries, where the store does not do that itself."""
        if self.store.capabilities.ttl:
            return
        for collection in await self._get_collection_names():
            place = self._place(collection)
            async for item, entry in self._entries(place):
                if entry.is_expired:
                    await self._remove(item)

    async def _remove(self, item: StoreItem) -> None:
        # Otherwise another process has put it again.
        with suppress(VersionConflictError):
            await self.store.delete(item.namespace, item.key, if_version=item.version)

    def _entries(self, place: Namespace) -> AsyncIterator[tuple[StoreItem, ManagedEntry]]:
        return readable(self.store, place, _entry_of_item)

    def _place(self, collection: str) -> Namespace:
        with _refusals():
            return (*self._namespace, check_identifier(collection, "collection"))

    def _put(self, place: Namespace, key: str, entry: ManagedEntry) -> Put:
        expires_at = entry.expires_at_isoformat
        # Whether the store knows a TTL or not, the entry tells when it expires.
        value = {"value": entry.value_as_dict, "expires_at": expires_at}
        ttl = None if entry.ttl is None else _checked_ttl(max(entry.ttl, _SHORTEST))
        if not self.store.capabilities.ttl:
            ttl = None
        return quick_put(place, _key(key), value, ttl=ttl, text="")


def _key(key: str) -> str:
    with _refusals():
        return check_identifier(key, "key")


def _checked_ttl(ttl: float) -> float | None:
    try:
        return check_ttl(ttl)
    except InvalidArgumentError as error:
        raise InvalidTTLError(ttl, {"limit": "a thousand years"}) from error


def _entry_of_item(item: StoreItem) -> ManagedEntry:
    return _entry_of(item.value)


def _entry_of(stored: Any) -> ManagedEntry:
    """Return a stored entry.

    Raises:
        TypeError, LookupError, ValueError: The item is not an entry.
    """
    value, expires_at = stored["value"], stored["expires_at"]
    if not isinstance(value, dict):
        raise TypeError("the value of an entry is an object")
    moment = None if expires_at is None else datetime.fromisoformat(expires_at)
    if moment is not None and moment.tzinfo is None:
        raise ValueError("an entry expires at a moment with a time zone")
    return ManagedEntry(value=value, expires_at=moment)


@contextmanager
def _refusals() -> Generator[None]:
    """Raise the framework's errors for what the store refuses."""
    try:
        yield
    except ValueNotSerializableError as error:
        path = error.path.removeprefix("$.")
        raise SerializationError(f"{path}: {error.reason}") from error
    except InvalidKeyError as error:
        raise TheirInvalidKeyError(str(error)) from error
