"""The copy of the items of a store, with their moments and their expiry.

The source is a SQLite or PostgreSQL table of LangGraph's stores, or any `BaseStore` of LangGraph.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol

import orjson
from langgraph.store.base import BaseStore as GraphStore
from langgraph.store.base import IndexConfig

from locus_memory.backends.base import Backend
from locus_memory.errors import InvalidArgumentError, StoreCapabilityError
from locus_memory.integrations.foreign import (
    is_postgresql,
    need_columns,
    postgresql_source,
    sqlite_source,
)
from locus_memory.integrations.langgraph.items.writing import PastItem
from locus_memory.integrations.langgraph.store import LocusStore
from locus_memory.integrations.reading import tell_unreadable
from locus_memory.memory.moments import read_moment
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_key, check_namespace
from locus_memory.store.json_values import encode_json
from locus_memory.store.opening import store_of

__all__ = ["CopiedItems", "ItemSource", "StoredItem", "import_items", "items_of", "open_items"]

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
                self._count(stored.namespace, unreadable=1)
                error = stored.error or ValueError("it is no item")
                tell_unreadable(stored.namespace, stored.key, error)
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

    def _count(self, namespace: Namespace, **more: int) -> None:
        known = self.done.get(namespace) or CopiedItems(namespace)
        sums = {name: getattr(known, name) + count for name, count in more.items()}
        self.done[namespace] = replace(known, **sums)


_WHAT: Final = "LangGraph's store"
_COLUMNS: Final = ("prefix", "key", "value", "created_at", "updated_at")
_EXPIRY: Final = ("expires_at", "ttl_minutes")


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A row of a store; `error`: why it is no item."""

    namespace: tuple[str, ...]
    key: str
    item: PastItem | None = None
    error: Exception | None = None


class ItemSource(Protocol):
    """The items of one store."""

    async def mortal(self) -> bool:
        """Return whether an item has an expiry."""
        ...

    def items(self) -> AsyncIterator[StoredItem]:
        """Yield the items, the oldest put first."""
        ...


@asynccontextmanager
async def open_items(where: str) -> AsyncGenerator[ItemSource]:
    """Open the database of a `SqliteStore` or a `PostgresStore`, to read it only.

    Args:
        where: The path of a SQLite file, with or without `sqlite:`, or the URL of a PostgreSQL.

    Raises:
        ConfigurationError: There is no file, or it has other tables.
        BackendUnavailableError: The database cannot be reached.
    """
    if is_postgresql(where):
        async with postgresql_source(where, _WHAT) as connection:
            # It fails now if there is no such table.
            await connection.fetch(f"SELECT {', '.join((*_COLUMNS, *_EXPIRY))} FROM store LIMIT 0")  # noqa: S608 - constants
            yield _Table(
                partial(connection.cursor, prefetch=_PAGE), _EXPIRY, "updated_at, prefix, key"
            )
        return
    with sqlite_source(where, _WHAT) as connection:
        found = need_columns(connection, "store", _COLUMNS)
        # The first releases had no expiry.
        expiry = [name if name in found else f"NULL AS {name}" for name in _EXPIRY]

        async def rows(statement: str) -> AsyncIterator[Sequence[Any]]:
            for row in connection.execute(statement):
                yield row

        # A put replaces the row, so the number of a row tells the order of puts.
        yield _Table(rows, expiry, "rowid")


def items_of(store: GraphStore) -> ItemSource:
    """Return the items of any store; it tells no expiry, and holds all of them in memory.

    Args:
        store: A store of LangGraph, such as an `InMemoryStore`; it is not closed.
    """
    return _Instance(store)


@dataclass(frozen=True, slots=True)
class _Table:
    """The table of `langgraph.store.sqlite` or `langgraph.store.postgres`.

    Attributes:
        rows: Yields the rows of a statement.
        expiry: The columns of the expiry.
        order: The columns that tell the order of puts.
    """

    rows: Callable[[str], AsyncIterator[Sequence[Any]]]
    expiry: Sequence[str]
    order: str

    async def mortal(self) -> bool:
        table = f"(SELECT {', '.join(self.expiry)} FROM store) AS s"  # noqa: S608 - constants
        statement = f"SELECT 1 FROM {table} WHERE expires_at IS NOT NULL LIMIT 1"  # noqa: S608 - constants
        return bool([row async for row in self.rows(statement)])

    async def items(self) -> AsyncIterator[StoredItem]:
        columns = "prefix, key, CAST(value AS text), created_at, updated_at"
        ordered = f"FROM store ORDER BY {self.order}"
        async for row in self.rows(f"SELECT {columns}, {', '.join(self.expiry)} {ordered}"):
            yield _of_row(row)


class _Instance:
    """Any store, read by LangGraph's own methods."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    async def mortal(self) -> bool:
        return False

    async def items(self) -> AsyncIterator[StoredItem]:
        found: dict[tuple[tuple[str, ...], str], StoredItem] = {}
        offset = 0
        while page := await self._store.asearch((), limit=_PAGE, offset=offset, refresh_ttl=False):
            for each in page:
                moments = each.created_at, each.updated_at
                stored = _stored(each.namespace, each.key, each.value, moments)
                found[each.namespace, each.key] = stored
            offset += len(page)
        for stored in sorted(found.values(), key=_put_at):
            yield stored


def _put_at(stored: StoredItem) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if stored.item is None else stored.item.updated_at


def _of_row(row: Sequence[Any]) -> StoredItem:
    prefix, key, value, created, updated, expires, ttl = row
    # LangGraph refuses labels with a period.
    namespace = tuple(prefix.split("."))
    try:
        content = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        return StoredItem(namespace, key, error=error)
    stored = _stored(namespace, key, content, (created, updated))
    if stored.item is None or expires is None:
        return stored
    minutes = float(ttl) if isinstance(ttl, int | float) and ttl > 0 else None
    return replace(stored, item=replace(stored.item, ttl=minutes, expires_at=read_moment(expires)))


def _stored(
    namespace: tuple[str, ...], key: str, value: Any, moments: tuple[object, object]
) -> StoredItem:
    created, updated = map(read_moment, moments)
    try:
        check_namespace(namespace)
        check_key(key)
        encode_json(value)
    except InvalidArgumentError as error:
        return StoredItem(namespace, key, error=error)
    if not isinstance(value, dict) or created is None or updated is None:
        return StoredItem(namespace, key, error=TypeError("it has no object, or no moments"))
    return StoredItem(namespace, key, PastItem(namespace, key, value, created, updated))
