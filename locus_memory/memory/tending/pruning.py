"""Erasure of what is older than its retention: turns of transcripts and entries of the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Final

from locus_memory.memory.moments import read_moment
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["before", "pages", "prune_log", "prune_runs", "prune_turns"]

_PAGE: Final = 50
"""After so many items, other tasks of the event loop get their turn."""

_SPACES: Final = 500


async def pages(store: BaseStore, namespace: Namespace) -> AsyncIterator[list[StoreItem]]:
    """Yield the items of a namespace in key order, fifty at a time."""
    after: str | None = None
    while items := await store.scan(namespace, _PAGE, after=after):
        yield items
        after = items[-1].key
        # A store in memory never lets the event loop go on by itself.
        await asyncio.sleep(0)


def before(now: str, days: float) -> datetime | None:
    """Return the moment so many days before another one; `None` if that is not a moment."""
    moment = read_moment(now)
    return None if moment is None else moment - timedelta(days=days)


async def prune_turns(
    store: BaseStore, scope: Scope, oldest: datetime, *, dry_run: bool = False
) -> int:
    """Erase the turns said before a moment; returns how many.

    Raises:
        BackendError: The store failed; call it again.
    """
    count = 0
    for thread in await _threads(store, scope):
        count += await _prune(store, thread, oldest, _said_at, dry_run=dry_run)
    return count


async def prune_log(
    store: BaseStore, scope: Scope, oldest: datetime, *, dry_run: bool = False
) -> int:
    """Erase the entries of the log from before a moment; returns how many.

    Raises:
        BackendError: The store failed; call it again.
    """
    return await _prune(store, scope.log, oldest, _logged_at, dry_run=dry_run)


async def prune_runs(
    store: BaseStore,
    scope: Scope,
    logged: datetime,
    oldest: datetime | None,
    *,
    dry_run: bool = False,
) -> int:
    """Erase the records of runs from before a moment, or that show words of before another one.

    Raises:
        BackendError: The store failed; call it again.
    """

    def is_old(item: StoreItem) -> bool:
        since = read_moment(item.value.get("since")) if isinstance(item.value, dict) else None
        shows_old = oldest is not None and since is not None and since < oldest
        return shows_old or (_logged_at(item) or item.created_at) < logged

    count = 0
    async for items in pages(store, scope.runs):
        old = [(scope.runs, item.key) for item in items if is_old(item)]
        count += len(old)
        if not dry_run:
            await store.delete_batch(old)
    return count


async def _prune(
    store: BaseStore,
    namespace: Namespace,
    oldest: datetime,
    moment_of: Callable[[StoreItem], datetime | None],
    *,
    dry_run: bool,
) -> int:
    """Erase the first items of a namespace, up to the first one of a known later moment.

    The keys are in the order of time, so the rest is later and is not read.
    """
    count = 0
    async for items in pages(store, namespace):
        known = [(item, moment_of(item)) for item in items]
        old = [item for item, moment in known if (moment or item.created_at) < oldest]
        if old and not dry_run:
            await store.delete_batch([(namespace, item.key) for item in old])
        count += len(old)
        if any(moment is not None and moment >= oldest for _, moment in known):
            break
    return count


async def _threads(store: BaseStore, scope: Scope) -> list[Namespace]:
    if not store.capabilities.list_namespaces:
        return []
    root, found = scope.transcripts, list[Namespace]()
    after: Namespace | None = None
    while page := await store.list_namespaces(root, _SPACES, after=after):
        # A label "*" of the scope matches any label.
        found += [each for each in page if each[:-1] == root]
        after = page[-1]
    return found


def _said_at(item: StoreItem) -> datetime | None:
    return read_moment(item.metadata.get("date"))


def _logged_at(item: StoreItem) -> datetime | None:
    return read_moment(item.value.get("at") if isinstance(item.value, dict) else None)
