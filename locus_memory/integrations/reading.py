"""Reads that leave out damaged items, for adapters whose framework must always get an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

from locus_memory.errors import BackendCorruptError, EncryptionError, ValueNotSerializableError
from locus_memory.events import emit
from locus_memory.store.base import BaseStore, all_keys
from locus_memory.store.item import Namespace, StoreItem

__all__ = [
    "DAMAGE",
    "NOT_OURS",
    "decoded",
    "get_readable",
    "labels_below",
    "naming",
    "readable",
    "tell_unreadable",
]

_PAGE: Final = 500

DAMAGE: Final = (BackendCorruptError, EncryptionError)
"""What a store raises for an item that is damaged, or that no key decrypts."""

NOT_OURS: Final = (ValueError, TypeError, LookupError)
"""What a `decode` raises for a value that another program wrote."""

_T = TypeVar("_T")
_Stored = TypeVar("_Stored")


async def readable(
    store: BaseStore,
    namespace: Namespace,
    decode: Callable[[StoreItem], _T],
    *,
    prefix: str | None = None,
    after: str | None = None,
    descending: bool = False,
    page: int = _PAGE,
) -> AsyncIterator[tuple[StoreItem, _T]]:
    """Yield the items of a namespace in key order, each with its decoded value.

    An item that is damaged, that no key decrypts, or that `decode` refuses is left out, and is
    told by the event `integrations.item_unreadable`.

    Args:
        store: The store to read.
        namespace: The namespace, without its descendants.
        decode: Returns the value of an item; raises `ValueError`, `TypeError` or `LookupError` for
            a value of another form.
        prefix: Only keys that start with this prefix.
        after: Only keys that follow this one in the chosen order.
        descending: From the last key to the first.
        page: How many items one query reads.
    """
    while True:
        try:
            items = await store.scan(
                namespace, page, prefix=prefix, after=after, descending=descending
            )
        except DAMAGE:
            break
        for item in items:
            if (found := _pair(item, decode)) is not None:
                yield found
        if len(items) < page:
            return
        after = items[-1].key
    for key in sorted(await all_keys(store, namespace, prefix), reverse=descending):
        if after is not None and (key >= after if descending else key <= after):
            continue
        # One query for many items fails on a damaged one.
        alone = await get_readable(store, namespace, key, decode)
        if alone is not None:
            yield alone


async def get_readable(
    store: BaseStore, namespace: Namespace, key: str, decode: Callable[[StoreItem], _T]
) -> tuple[StoreItem, _T] | None:
    """Return an item and its decoded value; `None` if it does not exist or cannot be read."""
    try:
        item = await store.get_item(namespace, key)
    except DAMAGE as error:
        tell_unreadable(namespace, key, error)
        return None
    return None if item is None else _pair(item, decode)


async def labels_below(store: BaseStore, namespace: Namespace) -> AsyncIterator[str]:
    """Yield the labels that follow a namespace in those below it."""
    after: Namespace | None = None
    while page := await store.list_namespaces(
        namespace, _PAGE, max_depth=len(namespace) + 1, after=after
    ):
        for each in page:
            # A label "*" of the namespace matches any label.
            if each[:-1] == namespace:
                yield each[-1]
        after = page[-1]


def decoded(
    namespace: Namespace, key: str, decode: Callable[[_Stored], _T], stored: _Stored
) -> _T | None:
    """Return what `decode` reads; `None`, with the event, for a value of another form."""
    try:
        return decode(stored)
    except NOT_OURS as error:
        tell_unreadable(namespace, key, error)
        return None


def _pair(item: StoreItem, decode: Callable[[StoreItem], _T]) -> tuple[StoreItem, _T] | None:
    return decoded(item.namespace, item.key, lambda each: (each, decode(each)), item)


@contextmanager
def naming(field: str) -> Generator[None]:
    """Name the field of the caller in the error for what JSON cannot hold."""
    try:
        yield
    except ValueNotSerializableError as error:
        path = f"{field}{error.path.removeprefix('$')}"
        raise ValueNotSerializableError(path, error.reason) from None


def tell_unreadable(namespace: Namespace, key: str, error: Exception) -> None:
    """Emit the event of an item that cannot be read."""
    emit("integrations.item_unreadable", error=error, namespace=list(namespace), key=key)
