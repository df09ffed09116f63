"""The items that a rule deletes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from locus_memory._internal.running.paging import paged
from locus_memory.errors import VersionConflictError
from locus_memory.retention.report import Retained
from locus_memory.retention.rules import ItemRule, RetentionRule, moment_before
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Delete, Namespace

__all__ = ["retain_items"]

_BATCH: Final = 100
_PAGE: Final = 500


class _Head(NamedTuple):
    """An item without its value, in the order of its last update."""

    updated_at: datetime
    key: str
    version: int


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
    heads = [
        _Head(item.updated_at, item.key, item.version) async for item in scan_all(store, namespace)
    ]
    condemned = _expendable(heads, rule, now)
    deleted = len(condemned)
    if not dry_run:
        batches = (condemned[at : at + _BATCH] for at in range(0, len(condemned), _BATCH))
        deleted = sum([await _delete(store, namespace, each) for each in batches])
    kept = len(heads) - deleted
    return Retained(rule=place, namespace=namespace, deleted=deleted, kept=kept)


def _expendable(heads: Sequence[_Head], rule: ItemRule, now: datetime) -> list[_Head]:
    """Return the items over every limit of a rule, the oldest first."""
    newest_first = sorted(heads, reverse=True)
    before = moment_before(rule.older_than, now)
    over = newest_first[rule.keep_last or 0 :]
    return [each for each in over if before is None or each.updated_at < before][::-1]


async def _delete(store: BaseStore, namespace: Namespace, heads: Sequence[_Head]) -> int:
    """Delete items that have not changed; return how many."""
    if store.capabilities.transactions:
        batch = [
            Delete(namespace=namespace, key=each.key, if_version=each.version) for each in heads
        ]
        try:
            return sum(bool(each) for each in await store.write_batch(batch))
        except VersionConflictError:
            # One of them has changed: the others are deleted one by one.
            pass
    return sum([await _delete_one(store, namespace, each) for each in heads])


async def _delete_one(store: BaseStore, namespace: Namespace, head: _Head) -> bool:
    try:
        return await store.delete(namespace, head.key, if_version=head.version)
    except VersionConflictError:
        return False
