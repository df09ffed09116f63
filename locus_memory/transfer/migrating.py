"""The migration of one backend to another: passes over both, in which differences are written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson

from locus_memory._internal.running.paging import batches
from locus_memory.backends.base import Backend, checkpointer_of, store_of
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import ConfigurationError
from locus_memory.store.base import BaseStore, all_namespaces
from locus_memory.store.item import Namespace, timestamp
from locus_memory.transfer.comparing import Pair, compare, either, item_pairs, same_item
from locus_memory.transfer.marker import MARKER, Marker, begin, save
from locus_memory.transfer.options import MigrateOptions, MigrationReport, Progress
from locus_memory.transfer.reading import (
    PAGE,
    Names,
    all_threads,
    checkpoints_of,
    heads_of,
    identity,
    opened,
    restorable,
)
from locus_memory.transfer.writing import Writer

__all__ = ["migrate"]

OnProgress = Callable[[Progress], None]


async def migrate(
    source: str | Backend,
    target: str | Backend,
    options: MigrateOptions | None = None,
    *,
    on_progress: OnProgress | None = None,
    name: str | None = None,
) -> MigrationReport:
    """Copy everything of one backend to another.

    Items keep their versions, metadata, moments, expiry and vectors. Threads keep every checkpoint
    with its id, moment, metadata and origin, in order; the target encodes them as chains of its
    own. Memories, their history, queues and cursors are items.

    A call may be interrupted at any time, and repeated: a marker in the target holds the progress,
    and only differences are written. The source is not changed. What is written to it during the
    call is found by the second pass; what is written after that pass is found by the next call.

    Args:
        source: A backend, or a provider string.
        target: A backend, or a provider string.
        options: The options.
        on_progress: Called after each page.
        name: The name of the source in the marker; by default the place of the source.

    Raises:
        ConfigurationError: The target holds data that is not from this source, or that was written
            after the run before; or it has no store and the source has items.
        StoreCapabilityError: The target cannot hold an item.
        BackendError: A database failed.
    """
    asked = options or MigrateOptions()
    async with opened(source) as ours, opened(target) as theirs:
        store = store_of(ours)
        run = _Run(ours, theirs, asked, on_progress)
        await run.work(name or repr(ours.checkpointer if store is None else store))
        if asked.verify and not asked.dry_run:
            run.report.comparisons = [
                each async for each in compare(ours, theirs, asked, on_progress)
            ]
        return run.report


class _Run:
    """One call of `migrate`."""

    def __init__(
        self,
        source: Backend[Any],
        target: Backend[Any],
        options: MigrateOptions,
        on_progress: OnProgress | None,
    ) -> None:
        self.options = options
        self.report = MigrationReport(dry_run=options.dry_run)
        self._target = target
        self._stores = store_of(source), store_of(target)
        self._checkpointers = checkpointer_of(source), checkpointer_of(target)
        self._told = on_progress or (lambda _: None)
        self._writer = Writer(options)
        self._last = Marker("")

    async def work(self, name: str) -> None:
        """Do all passes; the marker has this name of the source."""
        options, is_threads = self.options, self.options.only == "threads"
        marker = await begin(self._target, name, merge=options.merge, threads_only=is_threads)
        await self._mark(marker)
        for _ in range(1 if options.dry_run else options.passes):
            self.report.passes += 1
            began = datetime.now(UTC)
            # What a pass of this run missed is no erasure.
            self._last = marker if self.report.passes == 1 else replace(marker, began=None)
            if not is_threads:
                marker = await self._items(marker)
            if options.only != "items":
                await self._threads(marker)
            marker = Marker(
                name,
                passed=True,
                merged=options.merge,
                since=datetime.now(UTC),
                began=began,
                parts=("items", "threads") if options.only is None else (options.only,),
            )
            await self._mark(marker)

    async def _mark(self, marker: Marker) -> None:
        """Keep the progress in the target, if it has a store."""
        if self._stores[1] is not None and not self.options.dry_run:
            await save(self._stores[1], marker)

    async def _items(self, marker: Marker) -> Marker:
        """Copy all namespaces after that of the marker; return the marker of the last one."""
        source, target = self._stores
        if source is None:
            return marker
        if target is None:
            async for namespace in all_namespaces(source):
                if namespace == MARKER:
                    continue
                raise ConfigurationError(
                    f"the target has no store for the items of {list(namespace)}: name another "
                    "target, or pass --only threads (only='threads')"
                )
            return marker
        done = marker.namespace
        async for namespace in either(all_namespaces(source), all_namespaces(target)):
            if namespace == MARKER or (done is not None and namespace <= done):
                continue
            await self._namespace(source, target, namespace)
            if not marker.passed:
                marker = replace(marker, namespace=namespace)
                await self._mark(marker)
        return marker

    async def _namespace(self, source: BaseStore, target: BaseStore, namespace: Namespace) -> None:
        """Make a namespace of the target that of the source, in the order of its writes."""
        options, label = self.options, orjson.dumps(namespace).decode()
        with closing(Names()) as changed, closing(Names()) as gone:
            async for pair in item_pairs(source, target, namespace):
                self._sort(pair, changed, gone)
            if options.dry_run:
                self.report.items += len(changed)
                self.report.deleted_items += len(gone)
                return
            for keys in batches(changed, PAGE):
                items = await restorable(source, namespace, keys, vectors=options.vectors)
                self.report.items += await self._writer.items(target, items)
                self._show("items", label)
            for keys in batches(gone, PAGE):
                await self._writer.take(len(keys))
                names = [(namespace, key) for key in keys]
                self.report.deleted_items += await target.delete_batch(names)
        self._show("items", label)

    def _sort(self, pair: Pair, changed: Names, gone: Names) -> None:
        """Add the key of a pair to those to write, to those to delete, or to neither."""
        ours, theirs = pair
        merge = self.options.merge
        if ours is None:
            if theirs is not None and not merge:
                self._check_from_source(theirs.updated_at, f"item {theirs.key!r}")
                gone.add(theirs)
        elif theirs is None:
            if ours.expires_at is None:
                self._check_not_erased("items", ours.updated_at, f"item {ours.key!r}")
            changed.add(ours)
        elif not same_item(ours, theirs, self.options.reembed):
            if merge and theirs.updated_at > ours.updated_at:
                self.report.kept_items += self.report.passes == 1
            else:
                if not merge:
                    self._check_from_source(theirs.updated_at, f"item {theirs.key!r}")
                changed.add(ours)

    def _check_not_erased(self, part: str, moment: datetime, what: str) -> None:
        """Check that what is going to be copied was not erased from the target.

        Raises:
            ConfigurationError: It was.
        """
        options = self.options
        may_return = options.overwrite or options.merge or options.dry_run
        began = self._last.began
        was_copied = part in self._last.parts and began is not None and moment < began
        if was_copied and not may_return:
            raise ConfigurationError(
                f"the target no longer has what was copied: {what}; erase it from the source as "
                "well, or pass --overwrite (overwrite=True) to copy it again"
            )

    def _check_from_source(self, moment: datetime, what: str) -> None:
        """Check that what is going to be replaced or deleted was not written to the target itself.

        Raises:
            ConfigurationError: It was.
        """
        may_go = self.options.overwrite or self.options.dry_run
        since = self._last.since
        if since is not None and moment > since and not may_go:
            raise ConfigurationError(
                f"the target was written after it was copied: {what}, at {moment:%Y-%m-%d %H:%M}; "
                "pass --merge (merge=True) to keep what is newer there, or --overwrite "
                "(overwrite=True) to make it equal to the source"
            )

    async def _threads(self, marker: Marker) -> None:
        """Copy all threads after that of the marker."""
        source, target = self._checkpointers
        if source is None:
            return
        if target is None:
            async for thread_id in all_threads(source):
                raise ConfigurationError(
                    f"the target has no checkpoints for the thread {thread_id!r}: name another "
                    "target, or pass --only items (only='items')"
                )
            return
        done = marker.thread
        async for thread_id in either(all_threads(source), all_threads(target)):
            if done is not None and thread_id <= done:
                continue
            await self._thread(source, target, thread_id)
            if not marker.passed:
                await self._mark(replace(marker, thread=thread_id))

    async def _thread(
        self, source: BaseCheckpointer, target: BaseCheckpointer, thread_id: str
    ) -> None:
        """Make a thread of the target that of the source."""
        options, report = self.options, self.report
        ours, theirs = await heads_of(source, thread_id), await heads_of(target, thread_id)
        start = len(theirs)
        if ours and not theirs and all(each.forked_from is None for each in ours):
            moment = timestamp(ours[0].created_at)
            self._check_not_erased("threads", moment, f"thread {thread_id!r}")
        if list(map(identity, ours[:start])) != list(map(identity, theirs)):
            if options.merge:
                goes_on = list(map(identity, theirs[: len(ours)])) == list(map(identity, ours))
                if not goes_on and thread_id not in report.conflicts:
                    report.conflicts.append(thread_id)
                return
            for head in theirs:
                self._check_from_source(timestamp(head.created_at), f"thread {thread_id!r}")
            start = 0
            report.deleted_threads += not ours
            if not options.dry_run:
                await target.delete(thread_id)
        if options.dry_run:
            report.checkpoints += len(ours) - start
        elif start < len(ours):
            parent = ours[start - 1].checkpoint_id if start else None
            async for checkpoint in checkpoints_of(source, ours, start):
                await self._writer.checkpoint(target, thread_id, checkpoint, parent)
                parent = checkpoint.checkpoint_id
                report.checkpoints += 1
        self._show("threads", thread_id)

    def _show(self, step: str, name: str) -> None:
        self._told(Progress(step, self.report.passes, name, self.report.written))
