"""Items of a store, read for a copy: all namespaces, each in the order of its writes.

A page of a scan has neither the vectors nor that order. So the names of a namespace are sorted
first, in a temporary file that SQLite creates and deletes, and the items are read one by one after
that. The memory of the process holds one page, however large the namespace is.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Final, Self, TypeVar

from locus_memory.retrieval.embedders.marks import mark_of
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Namespace, Restored, StoreItem

__all__ = [
    "PAGE",
    "Names",
    "items_at",
    "pages",
    "read_all",
    "restorable",
]

PAGE: Final = 200
"""How many items are read, written and held at a time."""

_AT_ONCE: Final = 16
"""How many calls of a store run at a time."""

T = TypeVar("T")
R = TypeVar("R")


class Names:
    """Keys of one namespace, in the order in which their items were written.

    Use it as a context manager: it holds a temporary file.
    """

    def __init__(self) -> None:
        # A database without a name is in a temporary file, of which only a part is in memory.
        self._database = sqlite3.connect("")
        self._database.execute("CREATE TABLE names (moment REAL, key BLOB)")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the temporary file."""
        self._database.close()

    def add(self, items: Iterable[StoreItem]) -> None:
        """Add the names of items; those of the same moment keep the order of their keys."""
        rows = ((item.updated_at.timestamp(), item.key.encode()) for item in items)
        self._database.executemany("INSERT INTO names VALUES (?, ?)", rows)

    def __len__(self) -> int:
        """The number of names."""
        count: int = self._database.execute("SELECT count(*) FROM names").fetchone()[0]
        return count

    def __iter__(self) -> Iterator[str]:
        """Yield the keys, that of the oldest write first."""
        statement = "SELECT key FROM names ORDER BY moment, key"
        with closing(self._database.execute(statement)) as rows:
            for (key,) in rows:
                yield key.decode()


def pages(values: Iterable[T], size: int = PAGE) -> Iterator[list[T]]:
    """Yield lists of at most `size` values."""
    remaining = iter(values)
    while page := list(islice(remaining, size)):
        yield page


async def items_at(store: BaseStore, namespace: Namespace, keys: Sequence[str]) -> list[StoreItem]:
    """Return the items that exist under these keys, in their order."""
    found = await _together([store.get_item(namespace, key) for key in keys])
    return [item for item in found if item is not None]


async def restorable(
    store: BaseStore, namespace: Namespace, keys: Sequence[str], *, vectors: bool = True
) -> list[Restored]:
    """Return the items that exist, each with its vector, ready for `restore`.

    Args:
        store: The store.
        namespace: The namespace.
        keys: The keys; the items are in their order.
        vectors: Whether to read the vectors.
    """
    items = await items_at(store, namespace, keys)
    found: Sequence[Sequence[float] | None] = [None] * len(items)
    if vectors and await has_semantic_search(store):
        found = await _together([store.get_embedding(namespace, item.key) for item in items])
    return [_restored(item, vector) for item, vector in zip(items, found, strict=True)]


def _restored(item: StoreItem, vector: Sequence[float] | None) -> Restored:
    mark = mark_of(item.metadata)
    return Restored(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        metadata=item.metadata,
        text=mark.text if mark else None,
        embedding=vector,
        version=item.version,
        created_at=item.created_at,
        updated_at=item.updated_at,
        expires_at=item.expires_at,
    )


async def read_all(
    store: BaseStore, namespace: Namespace, *, vectors: bool = True
) -> AsyncIterator[list[Restored]]:
    """Yield the items of a namespace in pages, in the order of their writes."""
    with Names() as names:
        after: str | None = None
        while items := await store.scan(namespace, PAGE, after=after):
            names.add(items)
            after = items[-1].key
        for keys in pages(names):
            yield await restorable(store, namespace, keys, vectors=vectors)


async def _together(calls: Sequence[Awaitable[R]]) -> list[R]:
    """Return the results of calls, a few of which run at a time."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Awaitable[R]) -> R:
        async with limit:
            return await call

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(call)) for call in calls]
    return [task.result() for task in tasks]
