"""Memories: lists, search with reasons, history, edits, undo and erasure."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, Literal

from pydantic import Field

from locus_memory.errors import StoreCapabilityError
from locus_memory.inspection.memories import (
    describe,
    history_of,
    row_of,
    sequence_of,
    users,
)
from locus_memory.inspection.sources import UNREADABLE
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory, MemoryType, Origin, is_expired
from locus_memory.memory.recall.as_of import copied
from locus_memory.memory.recall.recall import FLOOR
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import current_key
from locus_memory.memory.validity import Then
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.ranking.explain import Explanation
from locus_memory.store.base import BaseStore
from locus_memory.store.item import StoreItem, timestamp
from locus_memory.web.errors import RefusalError
from locus_memory.web.matching import write_etag
from locus_memory.web.models import (
    Answer,
    Asked,
    Limit,
    PageAnswer,
    PageAsked,
    ThenAsked,
    UserAsked,
    cursor_key,
    cursor_offset,
    cut,
)
from locus_memory.web.questions.data import Data

__all__ = [
    "MemoriesAsked",
    "MemoriesPage",
    "MemoryAsked",
    "MemoryDetail",
    "MemoryHistory",
    "MemoryHistoryAsked",
    "MemoryHit",
    "MemoryHits",
    "MemoryRow",
    "MemorySearchAsked",
    "MemoryVersion",
    "UsersAnswer",
    "current_memory",
    "detail_of",
    "get_memory",
    "list_memories",
    "list_users",
    "memory_history",
    "search_everybody",
    "search_memories",
    "usage_of",
]

_COUNTED = 1_000
"""The most memories of a user that are counted."""


_IS_MEMORY = {"type": {"$in": [each.value for each in MemoryType]}}


class UsersAnswer(Answer):
    """The users that have memories, in order."""

    users: list[str]


class SourceMessage(Answer):
    """A message that a memory came from."""

    thread_id: str
    message_id: str | None
    place: int | None
    """Its place in the newest state of the thread, from 1; `null`: it is no longer there."""
    text: str | None


class MemoryRow(Answer):
    """A current memory, with the record of its use."""

    user: str | None
    id: str
    type: MemoryType
    key: str
    content: str
    sequence: int | None
    """The number of this version."""
    since: str | None
    """The moment from which it is true, ISO 8601."""
    metadata: dict[str, Any]
    salience: float
    trust: float
    hits: int
    uses: int
    last_used: str | None

    @property
    def etag(self) -> str:
        """The number of the version."""
        return write_etag(self.sequence or 0)


class MemoryVersion(Answer):
    """One version of a memory."""

    type: MemoryType
    key: str
    content: str
    since: str | None
    until: str | None
    """The moment when it ended; `null`: it is current."""
    origin: str | None
    """Who told it; `null`: the user."""
    sources: list[SourceMessage]
    metadata: dict[str, Any]


class MemoryDetail(MemoryRow):
    """A current memory with its sources and the version that it replaced."""

    origin: str | None
    sources: list[SourceMessage]
    replaced: MemoryVersion | None


class MemoriesAsked(PageAsked, ThenAsked):
    """Which memories to list; those of an earlier moment only in the order of the keys."""

    type: MemoryType | None = None
    order: Literal["key", "newest"] = "key"
    """By type and key, or the newest change first."""


class MemoriesPage(PageAnswer):
    """A page of memories."""

    memories: list[MemoryRow]


class MemoryAsked(UserAsked):
    """One memory, by its type and key."""

    type: MemoryType
    key: str = Field(min_length=1)


class MemoryHistoryAsked(UserAsked):
    """The versions of a memory."""

    key: str = Field(min_length=1)
    type: MemoryType | None = None
    """By default all types that have the key."""


class MemoryHistory(Answer):
    """All versions of a memory, the current one first."""

    versions: list[MemoryVersion]


class MemorySearchAsked(PageAsked, ThenAsked):
    """A search in the memories."""

    query: str
    type: MemoryType | None = None
    origin: Origin | None = None
    """Only memories that this one told."""
    min_score: float | None = Field(default=FLOOR, ge=0, le=1)
    """The lowest relevance of a hit; `null`: any."""
    limit: Limit = 20


class MemoryHit(Answer):
    """A memory that was found, and the reasons of its rank."""

    memory: MemoryRow
    score: float
    """Higher is better; comparable within one search."""
    relevance: float
    """From 0 to 1; comparable between queries and backends."""
    why: str
    """The parts of the score, in words."""
    explanation: Explanation | None


class MemoryHits(PageAnswer):
    """A page of hits, the best first."""

    hits: list[MemoryHit]


async def _rows(data: Data, user: str | None, memories: list[Memory]) -> list[MemoryRow]:
    """Return the rows of memories, with the vital signs of all of them read at once."""
    vitals = await data.scoped(user).vitals(memories)
    pairs = zip(memories, vitals, strict=True)
    return [MemoryRow(sequence=sequence_of(each[0]), **row_of(user, *each)) for each in pairs]


async def list_users(data: Data, asked: Asked) -> UsersAnswer:
    """List the users that have memories."""
    del asked
    return UsersAnswer(users=await users(data.store, data.manager))


async def usage_of(data: Data, user: str | None) -> dict[str, Any]:
    """Return how many memories a user has, the newest one, and when one was last used."""
    scope = data.scope(user)
    count = len(await data.store.list_keys(scope.current, _COUNTED))
    newest, used = list[StoreItem](), list[StoreItem]()
    with suppress(*UNREADABLE):
        newest = await data.store.search(scope.current, None, 1)
        used = await data.store.search(scope.vitals, None, 1)
    return {
        "user": user,
        "count": count,
        "newest": next((memory for _, memory in _read(newest)), None),
        "written": newest[0].updated_at if newest else None,
        "used": used[0].updated_at if used else None,
    }


async def search_everybody(
    data: Data, query: str, limit: int
) -> list[tuple[str | None, Memory]] | None:
    """Find memories of all users by words and meaning, each with its user, the best first.

    Returns:
        The memories; `None`: the provider has no search, or one of them cannot be read.
    """
    root = data.settings.namespace
    try:
        found = await HybridSearch(data.store, data.embedder).search(
            root, query, limit, recursive=True, filter=_IS_MEMORY, min_score=FLOOR
        )
    except (StoreCapabilityError, *UNREADABLE):
        return None
    read = [(hit.item.namespace[len(root) :], *each) for hit in found for each in _read([hit.item])]
    return [
        (space[1] if space[:1] == ("users",) else None, memory)
        for space, _, memory in read
        if space[-1:] == ("current",)
    ]


async def list_memories(data: Data, asked: MemoriesAsked) -> MemoriesPage:
    """List the current memories of a user, or those of an earlier moment."""
    if asked.then is not None:
        return await _list_at(data, asked)
    if asked.order == "newest":
        return await _list_newest(data, asked)
    kind = None if asked.type is None else current_key(asked.type, "")
    after = cursor_key(asked.cursor)
    current = data.scope(asked.user).current
    found: list[tuple[str, Memory]] = []
    size = asked.limit + 1
    while len(found) < size:
        items = await data.store.scan(current, size, prefix=kind, after=after)
        found += [(item.key, memory) for item, memory in _read(items)]
        if len(items) < size:
            break
        after = items[-1].key
    page, following = cut(found, asked.limit, lambda each: each[0])
    rows = await _rows(data, asked.user, [memory for _, memory in page])
    return MemoriesPage(memories=rows, next=following)


async def _list_newest(data: Data, asked: MemoriesAsked) -> MemoriesPage:
    offset = cursor_offset(asked.cursor)
    condition = None if asked.type is None else {"type": asked.type.value}
    current = data.scope(asked.user).current
    items = await data.store.search(current, None, asked.limit + 1, filter=condition, offset=offset)
    page, following = cut(items, asked.limit, lambda _: offset + asked.limit)
    rows = await _rows(data, asked.user, [memory for _, memory in _read(page)])
    return MemoriesPage(memories=rows, next=following)


async def _list_at(data: Data, asked: MemoriesAsked) -> MemoriesPage:
    if asked.order != "key":
        raise RefusalError(400, "memories of an earlier moment come in the order of the keys")
    manager = data.scoped(asked.user)
    after = cursor_key(asked.cursor) or ""
    found: list[Memory] = []
    async for memory in manager.memories(asked.type, **asked.moments):
        if current_key(memory.type, memory.key) > after:
            found.append(memory)
        if len(found) > asked.limit:
            break
    page, following = cut(found, asked.limit, lambda each: current_key(each.type, each.key))
    return MemoriesPage(memories=await _rows(data, asked.user, page), next=following)


async def search_memories(data: Data, asked: MemorySearchAsked) -> MemoryHits:
    """Find memories by words and meaning, with the reasons of the ranking."""
    offset = cursor_offset(asked.cursor)
    selection = Selection(type=asked.type, origins=asked.origin and [asked.origin])
    async with _store_then(data, asked) as store:
        found = await HybridSearch(store, data.embedder).search(
            data.scope(asked.user).current,
            asked.query,
            asked.limit + 1,
            filter=selection.condition,
            offset=offset,
            min_score=asked.min_score,
            explain=True,
        )
    page, following = cut(found, asked.limit, lambda _: offset + asked.limit)
    read = [(hit, memory) for hit in page for _, memory in _read([hit.item], asked.then)]
    rows = await _rows(data, asked.user, [memory for _, memory in read])
    hits = [
        MemoryHit(
            memory=row,
            score=hit.score,
            relevance=hit.relevance,
            why="" if hit.parts is None else hit.parts.describe(),
            explanation=hit.parts,
        )
        for row, (hit, _) in zip(rows, read, strict=True)
    ]
    return MemoryHits(hits=hits, next=following)


def _store_then(data: Data, asked: MemorySearchAsked) -> AbstractAsyncContextManager[BaseStore]:
    """Return the store, or a copy of the memories as they were at a moment."""
    if asked.then is None:
        return nullcontext(data.store)
    ledger, scope = Ledger(data.store, 0, clock=time.time), data.scope(asked.user)
    return copied(asked.then, ledger=ledger, embedder=data.embedder, scope=scope)


async def get_memory(data: Data, asked: MemoryAsked) -> MemoryDetail:
    """Return one memory with its sources and what it replaced."""
    memory = await current_memory(data, asked.user, asked.type, asked.key)
    if memory is None:
        raise RefusalError(404, "there is no such memory")
    return await detail_of(data, asked.user, memory)


async def memory_history(data: Data, asked: MemoryHistoryAsked) -> MemoryHistory:
    """Return all versions of a memory, the current one first, then the newest."""
    versions = await history_of(
        data.scoped(asked.user), data.sources, asked.key, asked.type, asked.user
    )
    return MemoryHistory.model_validate({"versions": versions})


async def current_memory(data: Data, user: str | None, kind: MemoryType, key: str) -> Memory | None:
    """Return a current memory by its type and key; an expired one is gone."""
    item = await data.store.get_item(data.scope(user).current, current_key(kind, key))
    return next((memory for _, memory in _read([] if item is None else [item])), None)


async def detail_of(data: Data, user: str | None, memory: Memory) -> MemoryDetail:
    """Return the document of a current memory."""
    told = await describe(data.scoped(user), data.sources, memory, user)
    return MemoryDetail.model_validate({"sequence": sequence_of(memory), **told})


def _read(items: list[StoreItem], then: Then | None = None) -> list[tuple[StoreItem, Memory]]:
    """Return the items that are memories, and have not expired now or at a moment."""
    now = (timestamp(time.time()) if then is None else then.now).isoformat()
    read = [(item, memory) for item in items if (memory := read_memory(item)) is not None]
    return [each for each in read if not is_expired(each[1], now)]
