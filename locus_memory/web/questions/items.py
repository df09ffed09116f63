"""The store: namespaces, items, their versions, and the search."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from pydantic import Field, Json

from locus_memory._internal.running.paging import paged
from locus_memory.errors import VersionConflictError
from locus_memory.inspection.items import hit_fields
from locus_memory.retrieval.hybrid import Hit, HybridSearch
from locus_memory.retrieval.ranking.explain import Explanation
from locus_memory.store.base import all_namespaces
from locus_memory.store.item import Namespace, StoreItem
from locus_memory.web.errors import RefusalError, StaleError
from locus_memory.web.matching import Match, read_etag, write_etag
from locus_memory.web.models import (
    Answer,
    Asked,
    Labels,
    Limit,
    PageAnswer,
    PageAsked,
    cursor_key,
    cursor_labels,
    cursor_offset,
    cut,
)
from locus_memory.web.questions.data import Data

__all__ = [
    "Deleted",
    "Item",
    "ItemAsked",
    "ItemHits",
    "ItemSearchAsked",
    "ItemsAsked",
    "ItemsClear",
    "ItemsPage",
    "NamespacesAsked",
    "NamespacesPage",
    "PutItem",
    "Written",
    "clear_namespace",
    "delete_item",
    "get_item",
    "list_items",
    "list_namespaces",
    "put_item",
    "search_items",
]

_PAGE: Final = 1_000


class NamespacesAsked(PageAsked):
    """Which namespaces to list."""

    prefix: tuple[str, ...] = ()
    """Their first labels; `*` matches any one label."""
    max_depth: int | None = Field(default=None, ge=1, le=1_000)
    """Cut each namespace to this many labels, without duplicates."""


class NamespacesPage(PageAnswer):
    """A page of namespaces, in ascending order."""

    namespaces: list[tuple[str, ...]]


class Item(Answer):
    """An item of the store."""

    namespace: tuple[str, ...]
    key: str
    value: Any
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    version: int
    expires_at: datetime | None

    @property
    def etag(self) -> str:
        """The version, and the moment of the first put: a new item of the same key differs."""
        return write_etag(self.version, self.created_at)


class ItemsAsked(PageAsked):
    """Which items of one namespace to list."""

    namespace: Labels
    prefix: str | None = None
    """Only keys that start with this prefix."""
    descending: bool = False
    """From the last key to the first."""


class ItemsPage(PageAnswer):
    """A page of items, in the order of their keys."""

    items: list[Item]


class ItemAsked(Asked):
    """The name of one item."""

    namespace: Labels
    key: str = Field(min_length=1)


class PutItem(Asked):
    """An item to insert or replace."""

    namespace: Labels
    key: str = Field(min_length=1)
    value: Any
    metadata: dict[str, Any] | None = None
    ttl: float | None = Field(default=None, gt=0)
    """Seconds until the item expires."""
    text: str | None = None
    """The text to index instead of the value's own strings; empty: no text."""


class Written(Answer):
    """The version that a write made."""

    namespace: tuple[str, ...]
    key: str
    version: int


class Deleted(Answer):
    """The result of a deletion."""

    deleted: int
    """How many items were deleted; with `dry_run`, how many would be."""
    dry_run: bool = False


class ItemsClear(Asked):
    """A namespace to clear."""

    namespace: Labels
    recursive: bool = False
    """Also delete the items of the namespaces below."""
    dry_run: bool
    """Only count what would be deleted."""


class ItemSearchAsked(PageAsked):
    """A search in the store."""

    namespace: Labels
    query: str | None = None
    """The words to find; without it, the newest update comes first."""
    filter: Json[dict[str, Any]] | None = None
    """A filter on values and metadata, as JSON."""
    recursive: bool = True
    """Search the namespaces below as well."""
    min_score: float | None = Field(default=None, ge=0, le=1)
    """The lowest relevance of a hit; it needs a query."""
    limit: Limit = 20


class ItemHit(Answer):
    """An item that was found, and the reasons of its rank."""

    item: Item
    score: float | None
    """Higher is better; comparable within one search. `null` without a query."""
    relevance: float | None
    """From 0 to 1; comparable between queries and backends."""
    why: str | None
    """The parts of the score, in words."""
    explanation: Explanation | None


class ItemHits(PageAnswer):
    """A page of hits, the best first."""

    hits: list[ItemHit]


async def list_namespaces(data: Data, asked: NamespacesAsked) -> NamespacesPage:
    """List the namespaces that hold an item."""
    found = await data.store.list_namespaces(
        asked.prefix or None,
        asked.limit + 1,
        max_depth=asked.max_depth,
        after=cursor_labels(asked.cursor),
    )
    page, following = cut(found, asked.limit, tuple)
    return NamespacesPage(namespaces=page, next=following)


async def list_items(data: Data, asked: ItemsAsked) -> ItemsPage:
    """List the items of one namespace, in the order of their keys."""
    found = await data.store.scan(
        asked.namespace,
        asked.limit + 1,
        prefix=asked.prefix,
        after=cursor_key(asked.cursor),
        descending=asked.descending,
    )
    page, following = cut(found, asked.limit, lambda item: item.key)
    return ItemsPage(items=list(map(Item.model_validate, page)), next=following)


async def get_item(data: Data, asked: ItemAsked) -> Item:
    """Return one item; its `ETag` stands for its version."""
    item = await data.store.get_item(asked.namespace, asked.key)
    if item is None:
        raise RefusalError(404, "there is no such item")
    return Item.model_validate(item)


async def put_item(data: Data, asked: PutItem, match: Match) -> Written:
    """Insert or replace an item; `If-Match` makes it a compare-and-swap."""
    yours = asked.model_dump(include={"value", "metadata"})
    try:
        version = await data.store.put(
            asked.namespace,
            asked.key,
            asked.value,
            asked.metadata,
            ttl=asked.ttl,
            if_version=await _expected(data, asked.namespace, asked.key, match),
            text=asked.text,
        )
    except VersionConflictError as conflict:
        raise await _stale(data, asked.namespace, asked.key, conflict, yours) from conflict
    return Written(namespace=asked.namespace, key=asked.key, version=version)


async def delete_item(data: Data, asked: ItemAsked, match: Match) -> Deleted:
    """Delete one item; `If-Match` makes it a compare-and-swap."""
    try:
        expected = await _expected(data, asked.namespace, asked.key, match)
        existed = await data.store.delete(asked.namespace, asked.key, if_version=expected)
    except VersionConflictError as conflict:
        raise await _stale(data, asked.namespace, asked.key, conflict, None) from conflict
    return Deleted(deleted=int(existed))


async def clear_namespace(data: Data, asked: ItemsClear) -> Deleted:
    """Delete all items of a namespace, or count them."""
    if not asked.dry_run:
        cleared = await data.store.clear_namespace(asked.namespace, recursive=asked.recursive)
        return Deleted(deleted=cleared)
    targets = [asked.namespace]
    if asked.recursive:
        targets += await _below(data, asked.namespace)
    count = sum([await _count(data, target) for target in targets])
    return Deleted(deleted=count, dry_run=True)


async def search_items(data: Data, asked: ItemSearchAsked) -> ItemHits:
    """Find items by words, meaning and filter, with the reasons of the ranking."""
    offset = cursor_offset(asked.cursor)
    if asked.query is None:
        if asked.min_score is not None:
            raise RefusalError(400, "min_score needs a query")
        items = await data.store.search(
            asked.namespace,
            None,
            asked.limit + 1,
            filter=asked.filter,
            offset=offset,
            recursive=asked.recursive,
        )
        hits = [_listed(item) for item in items]
    else:
        found = await HybridSearch(data.store, data.embedder, fields=hit_fields()).search(
            asked.namespace,
            asked.query,
            asked.limit + 1,
            filter=asked.filter,
            offset=offset,
            recursive=asked.recursive,
            min_score=asked.min_score,
            explain=True,
        )
        hits = [_explained(hit) for hit in found]
    page, following = cut(hits, asked.limit, lambda _: offset + asked.limit)
    return ItemHits(hits=page, next=following)


def _listed(item: StoreItem) -> ItemHit:
    return ItemHit(
        item=Item.model_validate(item), score=None, relevance=None, why=None, explanation=None
    )


def _explained(hit: Hit) -> ItemHit:
    return ItemHit(
        item=Item.model_validate(hit.item),
        score=hit.score,
        relevance=hit.relevance,
        why=None if hit.parts is None else hit.parts.describe(),
        explanation=hit.parts,
    )


async def _expected(data: Data, namespace: Namespace, key: str, match: Match) -> int | None:
    """Return the version that the stored item must have; `None`: any.

    Raises:
        VersionConflictError: The stored item is another one than that of the tag.
    """
    if match.absent:
        return 0
    if match.tag is None:
        return None
    item = await data.store.get_item(namespace, key)
    actual = 0 if item is None else item.version
    if match.tag == "*":
        if item is None:
            raise VersionConflictError(1, 0, namespace, key)
        return None
    if item is None or Item.model_validate(item).etag != match.tag:
        raise VersionConflictError(read_etag(match.tag), actual, namespace, key)
    return actual


async def _stale(
    data: Data,
    namespace: Namespace,
    key: str,
    conflict: VersionConflictError,
    yours: dict[str, Any] | None,
) -> StaleError:
    item = await data.store.get_item(namespace, key)
    current = None if item is None else Item.model_validate(item).model_dump(mode="json")
    return StaleError(conflict, current, yours)


async def _below(data: Data, namespace: Namespace) -> list[Namespace]:
    """Return the namespaces below one; a label `*` in it matches only itself."""
    return [each async for each in all_namespaces(data.store, namespace) if each != namespace]


async def _count(data: Data, namespace: Namespace) -> int:
    keys = paged(lambda after: data.store.list_keys(namespace, _PAGE, after=after))
    return sum([1 async for _ in keys])
