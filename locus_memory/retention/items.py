"""The items that a rule deletes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Final

from locus_memory._internal.running.paging import paged
from locus_memory.errors import VersionConflictError
from locus_memory.retention.report import Retained
from locus_memory.retention.rules import ItemRule, RetentionRule, moment_before
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Delete, Namespace

__all__ = ["retain_items"]

_BATCH: Final = 100
_PAGE: Final = 500


_Head = tuple[datetime, str, Delete]
"""An item without its value: when it was updated, its key, and its deletion as it is."""


async def retain_items(
    store: BaseStore, rules: Sequence[RetentionRule], now: datetime, *, dry_run: bool
) -> AsyncIterator[Retained]:
    """Apply rules to the items of a store, and yield the result of each namespace.

    An item that is put meanwhile stays, and so does one that is deleted and put again.

    Args:
        store: The store.
        rules: All rules; the first one for items that matches a namespace decides.
        now: The present moment.
        dry_run: Only report.
    """
    for place, rule in enumerate(rules):
        if not isinstance(rule, ItemRule) or not rule.deletes:
            continue
        earlier = [each for each in rules[:place] if isinstance(each, ItemRule)]
        async for space in _spaces(store, rule.namespace):
            if not any(each.matches(space) for each in earlier):
                yield await _retain(store, space, place, rule, now, dry_run=dry_run)


def _spaces(store: BaseStore, prefix: Namespace) -> AsyncIterator[Namespace]:
    """Yield the namespaces below a prefix, whose `*` matches any label."""
    return paged(lambda after: store.list_namespaces(prefix, _PAGE, after=after))


async def _retain(
    store: BaseStore,
    namespace: Namespace,
    place: int,
    rule: ItemRule,
    now: datetime,
    *,
    dry_run: bool,
) -> Retained:
    heads: list[_Head] = []
    async for item in scan_all(store, namespace):
        gone = Delete(namespace=namespace, key=item.key, if_version=item.version)
        heads.append((item.updated_at, item.key, gone))
    condemned = _expendable(heads, rule, now)
    deleted = len(condemned)
    if not dry_run:
        batches = (condemned[at : at + _BATCH] for at in range(0, len(condemned), _BATCH))
        deleted = sum([await _delete(store, each) for each in batches])
    kept = len(heads) - deleted
    return Retained(rule=place, namespace=namespace, deleted=deleted, kept=kept)


def _expendable(heads: Sequence[_Head], rule: ItemRule, now: datetime) -> list[Delete]:
    """Return the items over every limit of a rule, the oldest first."""
    newest_first = sorted(heads, key=itemgetter(0, 1), reverse=True)
    before = moment_before(rule.older_than, now)
    over = newest_first[rule.keep_last or 0 :]
    return [gone for at, _, gone in over if before is None or at < before][::-1]


async def _delete(store: BaseStore, batch: Sequence[Delete]) -> int:
    """Delete items that have not changed; return how many."""
    if store.capabilities.transactions:
        try:
            return sum(bool(each) for each in await store.write_batch(batch))
        except VersionConflictError:
            # One of them has changed: the others are deleted one by one.
            pass
    return sum([await _delete_one(store, each) for each in batch])


async def _delete_one(store: BaseStore, gone: Delete) -> bool:
    try:
        return await store.delete(gone.namespace, gone.key, if_version=gone.if_version)
    except VersionConflictError:
        return False
