"""Erasure of what is older than its retention: notes, turns, entries of the log, and runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any, Final

from locus_memory.memory.layers.episodes import read_episode
from locus_memory.memory.moments import read_moment
from locus_memory.memory.tending.passes import Pass
from locus_memory.store.base import BaseStore, all_namespaces
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["before", "pages", "prune_log", "prune_notes", "prune_turns"]

_PAGE: Final = 50
"""After so many items, other tasks of the event loop get their turn."""


async def pages(store: BaseStore, namespace: Namespace) -> AsyncIterator[list[StoreItem]]:
    """Yield the items of a namespace in key order, fifty at a time."""
    after: str | None = None
    while items := await store.scan(namespace, _PAGE, after=after):
        yield items
        after = items[-1].key
        # A store in memory never lets the event loop go on by itself.
        await asyncio.sleep(0)


def before(now: object, days: float) -> datetime | None:
    """Return the moment so many days before another one; `None` if that is not a moment."""
    moment = read_moment(now)
    return None if moment is None else moment - timedelta(days=days)


async def prune_notes(work: Pass, oldest: datetime) -> int:
    """Erase the notes of sessions that ended before a moment; returns of how many sessions.

    Raises:
        BackendError: The store failed; call it again.
    """

    def is_old(item: StoreItem) -> bool | None:
        episode = read_episode(item)
        # An item under another key than its own is not this library's to change.
        is_own = episode is not None and episode.key == item.key
        ended = read_moment(episode.ended_at) if episode is not None and is_own else None
        return (ended is not None and ended < oldest) or None

    return await _prune(work, work.scope.episodes, is_old)


async def prune_turns(work: Pass, oldest: datetime) -> int:
    """Erase the turns said before a moment; returns how many.

    Raises:
        BackendError: The store failed; call it again.
    """
    if not work.store.capabilities.list_namespaces:
        return 0
    root = work.scope.transcripts
    threads = [each async for each in all_namespaces(work.store, root) if each[:-1] == root]
    return sum(
        [
            await _prune(
                work, thread, lambda item: _is_before(oldest, item, item.metadata.get("date"))
            )
            for thread in threads
        ]
    )


async def prune_log(work: Pass, logged: datetime, oldest: datetime | None) -> int:
    """Erase entries of the log, and the records of runs; returns how many.

    Args:
        work: The pass.
        logged: The moment before which they go.
        oldest: The moment before which words were said that a record may not show any more;
            `None`: there is none.

    Raises:
        BackendError: The store failed; call it again.
    """

    def shows_old(item: StoreItem) -> bool | None:
        since = read_moment(_part(item, "since"))
        shows = oldest is not None and since is not None and since < oldest
        return shows or _is_before(logged, item, _part(item, "at")) or None

    def is_old(item: StoreItem) -> bool | None:
        return _is_before(logged, item, _part(item, "at"))

    gone = await _prune(work, work.scope.log, is_old)
    return gone + await _prune(work, work.scope.runs, shows_old)


async def _prune(work: Pass, space: Namespace, is_old: Callable[[StoreItem], bool | None]) -> int:
    """Erase the old items of a namespace; returns how many.

    Args:
        work: The pass, which counts them only if it is a dry run.
        space: The namespace.
        is_old: Returns whether an item is old; `False`: all that come later are not, and are not
            read; `None`: only this one is not.
    """
    count = 0
    async for items in pages(work.store, space):
        found = [(item.key, is_old(item)) for item in items]
        old = [(space, key) for key, is_it in found if is_it]
        count += len(old)
        if not work.dry_run:
            await work.store.delete_batch(old)
        if any(is_it is False for _, is_it in found):
            break
    return count


def _is_before(oldest: datetime, item: StoreItem, at: object) -> bool | None:
    """Return whether the moment of an item is before another one; one without is as its write."""
    moment = read_moment(at)
    if moment is None:
        return item.created_at < oldest or None
    return moment < oldest


def _part(item: StoreItem, name: str) -> Any:
    return item.value.get(name) if isinstance(item.value, dict) else None
