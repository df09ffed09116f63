"""The function that applies rules of retention to a database."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing

from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.retention.items import retain_items
from locus_memory.retention.report import Retained, RetentionReport, announce
from locus_memory.retention.rules import ItemRule, RetentionRule, ThreadRule
from locus_memory.retention.threads import retain_threads
from locus_memory.store.base import BaseStore
from locus_memory.store.item import timestamp

__all__ = ["retain", "retention_steps"]


async def retain(
    backend: Backend,
    rules: Iterable[RetentionRule],
    *,
    dry_run: bool = False,
    clock: Callable[[], float] = time.time,
) -> RetentionReport:
    """Delete the items and checkpoints that no rule keeps.

    The first rule for items that matches a namespace decides about it, and the first rule for
    threads that matches a thread decides about that one. What no rule matches stays. Items are
    deleted in batches, and threads one after another, each all or nothing; so a call that is
    interrupted leaves a consistent database, and the next one does the rest. What is written
    meanwhile stays. `backend.compact()` frees the space.

    Args:
        backend: The database.
        rules: The rules.
        dry_run: Only report what a call would delete; nothing is written.
        clock: Returns seconds since the epoch; pass the clock of the backend.

    Raises:
        ConfigurationError: There is a rule for items and no store, or one for threads and no
            checkpointer.
        StoreCapabilityError: There is a rule for items, and the store cannot list namespaces.
        BackendError: The database failed; call it again.
    """
    listed = list(rules)
    steps = retention_steps(backend, listed, clock=clock, dry_run=dry_run)
    async with aclosing(steps) as results:
        report = RetentionReport.of([each async for each in results], dry_run=dry_run)
    if not dry_run:
        announce(report)
    return report


async def retention_steps(
    backend: Backend,
    rules: list[RetentionRule],
    *,
    clock: Callable[[], float],
    dry_run: bool = False,
) -> AsyncGenerator[Retained]:
    """Apply rules, and yield the result of each namespace and thread; see `retain`.

    Raises:
        ConfigurationError: As for `retain`.
        BackendError: As for `retain`.
    """
    has_items, has_threads = (
        any(isinstance(each, kind) for each in rules) for kind in (ItemRule, ThreadRule)
    )
    store: BaseStore | None = backend.store if has_items else None
    checkpointer: BaseCheckpointer | None = backend.checkpointer if has_threads else None
    now = timestamp(clock())
    if store is not None:
        async for result in retain_items(store, rules, now, dry_run=dry_run):
            yield result
    if checkpointer is not None:
        async for result in retain_threads(checkpointer, rules, now, dry_run=dry_run):
            yield result
