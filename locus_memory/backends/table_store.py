"""A store whose verbs are functions of a backend, called with a place or a range, and a moment."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from typing_extensions import override

from locus_memory.backends.base import ConnectionT, OverConnection
from locus_memory.backends.checked_store import CheckedStore, Encoded
from locus_memory.backends.selection import KeyRange, Page, Selection
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    StoreItem,
    check_key,
    check_namespace,
)
from locus_memory.store.listing import Listing

__all__ = ["TableStore", "Verb", "Verbs"]

T = TypeVar("T")

Verb = Callable[..., Awaitable[T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    """The functions of a backend; each gets the connection, then what is said here.

    Attributes:
        address: Returns the place of a namespace and a key, with the version that a write expects;
            without the connection, as the next.
        scope: Returns the range of a namespace at a moment, perhaps with its descendants.
        read_item: The item at an address at a moment, or `None`.
        get_values: The values at addresses at a moment, by address.
        scan: The items of a scope and a range of keys, at most so many.
        scan_keys: Their keys.
        list_namespaces: The namespaces of a listing, at most so many, at a moment.
        clear: Deletes what is in a scope, and returns how many items it was.
        newest: A page of the items of a scope that satisfy a condition, the newest write first.
        read_vector: The numbers of the vector at an address at a moment, or `None`.
        search_text: A page of the items of a scope with some words that satisfy a condition, the
            best first; `None`: the backend has its own `_search_text`.
        read_value: The value at an address at a moment, or `None`, if that is less work.
        exists: Whether there is an item at an address at a moment, likewise.
        read_items: The items at addresses at a moment, by address, if that is less work than one
            by one.
    """

    address: Callable[..., Any]
    scope: Callable[..., Any]
    read_item: Verb[StoreItem | None]
    get_values: Verb[dict[Any, Any]]
    scan: Verb[list[StoreItem]]
    scan_keys: Verb[list[str]]
    list_namespaces: Verb[list[Namespace]]
    clear: Verb[int]
    newest: Verb[list[StoreItem]]
    read_vector: Verb[list[float] | None]
    search_text: Verb[list[StoreItem]] | None = None
    read_value: Verb[Any] | None = None
    exists: Verb[bool] | None = None
    read_items: Verb[dict[Any, StoreItem]] | None = None


class TableStore(OverConnection[ConnectionT], CheckedStore[Encoded], Generic[ConnectionT, Encoded]):
    """A store over a connection whose verbs are the functions of `_verbs`.

    A backend sets `_verbs`, and implements `capabilities`, `_row`, `_write` and `_now`. A delete
    is the address of its item.
    """

    _verbs: Verbs

    @abstractmethod
    def _row(self, address: Any, operation: Put, vector: bytes | None) -> Encoded:
        """Return a put at an address ready to write; see `_encode`."""

    @override
    def _encode(self, operation: Put | Delete, vector: bytes | None) -> Encoded:
        address = self._verbs.address(operation.namespace, operation.key, operation.if_version)
        return address if isinstance(operation, Delete) else self._row(address, operation, vector)

    @abstractmethod
    async def _now(self) -> Any:
        """Return the moment of a call, as the functions take it."""

    async def _ask(self, verb: Verb[T], *arguments: Any) -> T:
        """Return what a read of items by their names returns."""
        return await verb(self._connection, *arguments)

    async def _seek(self, verb: Verb[T], *arguments: Any) -> T:
        """Return what a search or a list returns."""
        return await self._ask(verb, *arguments)

    async def _change(self, verb: Verb[T], *arguments: Any) -> T:
        """Return what a write returns."""
        return await verb(self._connection, *arguments)

    async def _at(self, verb: Verb[T], namespace: Namespace, key: str) -> T:
        address = self._verbs.address(namespace, key)
        return await self._ask(verb, address, await self._now())

    async def _scope(self, namespace: Namespace, *, recursive: bool = False) -> Any:
        return self._verbs.scope(namespace, await self._now(), recursive=recursive)

    async def _scope_of(self, selection: Selection) -> Any:
        return await self._scope(selection.namespace, recursive=selection.recursive)

    @override
    async def _get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        return await self._at(self._verbs.read_item, namespace, key)

    @override
    async def _get_value(self, namespace: Namespace, key: str) -> Any:
        if self._verbs.read_value is None:
            return await super()._get_value(namespace, key)
        return await self._at(self._verbs.read_value, namespace, key)

    @override
    async def _exists(self, namespace: Namespace, key: str) -> bool:
        if self._verbs.exists is None:
            return await super()._exists(namespace, key)
        return await self._at(self._verbs.exists, namespace, key)

    @override
    async def _get_values(
        self, names: Sequence[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        given = {self._verbs.address(*name): name for name in names}
        found = await self._ask(self._verbs.get_values, list(given), await self._now())
        return {given[address]: value for address, value in found.items()}

    @override
    async def _get_items(
        self, names: Sequence[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], StoreItem]:
        if self._verbs.read_items is None or not names:
            return await super()._get_items(names)
        given = {
            self._verbs.address(check_namespace(each), check_key(key)): (each, key)
            for each, key in names
        }
        found = await self._ask(self._verbs.read_items, list(given), await self._now())
        return {given[address]: item for address, item in found.items()}

    @override
    async def _scan(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[StoreItem]:
        scope = await self._scope(namespace)
        return await self._seek(self._verbs.scan, scope, keys, limit)

    @override
    async def _list_keys(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[str]:
        scope = await self._scope(namespace)
        return await self._seek(self._verbs.scan_keys, scope, keys, limit)

    @override
    async def _list_namespaces(self, listing: Listing, limit: int) -> list[Namespace]:
        now = await self._now()
        return await self._seek(self._verbs.list_namespaces, listing, limit, now)

    @override
    async def _clear(self, namespace: Namespace, *, recursive: bool) -> int:
        scope = await self._scope(namespace, recursive=recursive)
        return await self._change(self._verbs.clear, scope)

    @override
    async def _newest(self, selection: Selection, page: Page) -> list[StoreItem]:
        scope, condition = await self._scope_of(selection), selection.condition
        return await self._seek(self._verbs.newest, scope, condition, page)

    @override
    async def _search_text(
        self, selection: Selection, page: Page, words: list[str]
    ) -> list[StoreItem]:
        if self._verbs.search_text is None:
            return await super()._search_text(selection, page, words)
        wanted = await self._scope_of(selection), words, selection.condition, page
        return await self._seek(self._verbs.search_text, *wanted)

    @override
    async def _get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        return await self._at(self._verbs.read_vector, namespace, key)
