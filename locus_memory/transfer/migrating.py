"""The migration of one backend to another: passes over both, in which differences are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import ConfigurationError
from locus_memory.store.base import BaseStore, all_namespaces
from locus_memory.store.item import Namespace
from locus_memory.transfer.differences import Pair, either, pairs, same_item
from locus_memory.transfer.items import Names, pages, restorable
from locus_memory.transfer.marker import MARKER, Marker, begin
from locus_memory.transfer.opening import opened
from locus_memory.transfer.options import MigrateOptions, MigrationReport, Progress
from locus_memory.transfer.pace import Pace
from locus_memory.transfer.parts import checkpointer_of, store_of
from locus_memory.transfer.threads import all_threads, heads_of, same_checkpoint
from locus_memory.transfer.verifying import compare
from locus_memory.transfer.writing import ItemWriter, append_checkpoints

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
        ConfigurationError: The target holds data that is not from this source, or it has no store
            and the source has items.
        StoreCapabilityError: The target cannot hold an item.
        BackendError: A database failed.
    """
    asked = options or MigrateOptions()
    async with opened(source) as ours, opened(target) as theirs:
        run = _Run(ours, theirs, asked, on_progress, name or _place(ours))
        await run.work()
        if asked.verify and not asked.dry_run:
            run.report.comparisons = [
                each async for each in compare(ours, theirs, asked, on_progress)
            ]
        return run.report


def _place(backend: Backend[Any]) -> str:
    """Return the place of a database, without a password."""
    store = store_of(backend)
    return repr(store if store is not None else backend.checkpointer)


class _Run:
    """One call of `migrate`."""

    def __init__(
        self,
        source: Backend[Any],
        target: Backend[Any],
        options: MigrateOptions,
        on_progress: OnProgress | None,
        name: str,
    ) -> None:
        self.options = options
        self.report = MigrationReport(dry_run=options.dry_run)
        self._source, self._target = source, target
        self._on_progress = on_progress
        self._pace = Pace(options.rate)
        self._marker = Marker(name)

    async def work(self) -> None:
        """Do all passes."""
        options, store = self.options, store_of(self._target)
        self._marker = await begin(
            self._target,
            self._marker.source,
            merge=options.merge,
            threads_only=options.only == "threads",
        )
        if not options.dry_run:
            await self._marker.save(store)
        for _ in range(1 if options.dry_run else options.passes):
            self.report.passes += 1
            await self._pass()
            self._marker = Marker(self._marker.source, passed=True)
            if not options.dry_run:
                await self._marker.save(store)

    async def _pass(self) -> None:
        if self.options.only != "threads":
            await self._items()
        if self.options.only != "items":
            await self._threads()

    async def _items(self) -> None:
        source, target = store_of(self._source), store_of(self._target)
        if source is None:
            return
        if target is None:
            async for namespace in all_namespaces(source):
                raise ConfigurationError(
                    f"the target has no store for the items of {list(namespace)}: name another "
                    "target, or pass --only threads (only='threads')"
                )
            return
        done = self._marker.namespace
        async for namespace in either(all_namespaces(source), all_namespaces(target)):
            if namespace == MARKER or (done is not None and namespace <= done):
                continue
            await self._namespace(source, target, namespace)
            await self._save(self._marker.at(namespace=namespace))

    async def _namespace(self, source: BaseStore, target: BaseStore, namespace: Namespace) -> None:
        """Make a namespace of the target that of the source, in the order of its writes."""
        options, label = self.options, orjson.dumps(namespace).decode()
        writer = ItemWriter(target, self._pace, options.reembed, options.vectors)
        with Names() as changed, Names() as gone:
            async for pair in pairs(source, target, namespace):
                self._sort(pair, changed, gone)
            if options.dry_run:
                self.report.items += len(changed)
                self.report.deleted_items += len(gone)
                return
            for keys in pages(changed):
                items = await restorable(source, namespace, keys, vectors=options.vectors)
                self.report.items += await writer.write(items)
                self._show("items", label)
            for keys in pages(gone):
                await self._pace.take(len(keys))
                names = [(namespace, key) for key in keys]
                self.report.deleted_items += await target.delete_batch(names)
        self._show("items", label)

    def _sort(self, pair: Pair, changed: Names, gone: Names) -> None:
        """Add the key of a pair to those to write, to those to delete, or to neither."""
        ours, theirs = pair
        if ours is None:
            if theirs is not None and not self.options.merge:
                gone.add([theirs])
        elif theirs is None:
            changed.add([ours])
        elif not same_item(ours, theirs, self.options.reembed):
            if self.options.merge and theirs.updated_at > ours.updated_at:
                self.report.kept_items += self.report.passes == 1
            else:
                changed.add([ours])

    async def _threads(self) -> None:
        source, target = checkpointer_of(self._source), checkpointer_of(self._target)
        if source is None:
            return
        if target is None:
            async for thread_id in all_threads(source):
                raise ConfigurationError(
                    f"the target has no checkpoints for the thread {thread_id!r}: name another "
                    "target, or pass --only items (only='items')"
                )
            return
        done = self._marker.thread
        async for thread_id in either(all_threads(source), all_threads(target)):
            if done is not None and thread_id <= done:
                continue
            await self._thread(source, target, thread_id)
            await self._save(self._marker.at(thread=thread_id))

    async def _thread(
        self, source: BaseCheckpointer, target: BaseCheckpointer, thread_id: str
    ) -> None:
        """Make a thread of the target that of the source."""
        ours, theirs = await heads_of(source, thread_id), await heads_of(target, thread_id)
        start = len(theirs)
        is_prefix = start <= len(ours) and all(map(same_checkpoint, ours, theirs))
        if not is_prefix:
            if self.options.merge:
                if ours and thread_id not in self.report.conflicts:
                    self.report.conflicts.append(thread_id)
                return
            start = 0
            self.report.deleted_threads += not ours
            if not self.options.dry_run:
                await target.delete(thread_id)
        if self.options.dry_run:
            self.report.checkpoints += len(ours) - start
        elif start < len(ours):
            self.report.checkpoints += await append_checkpoints(
                source, target, ours, start, self._pace
            )
        self._show("threads", thread_id)

    async def _save(self, marker: Marker) -> None:
        """Keep the progress of the first pass."""
        if not self._marker.passed and not self.options.dry_run:
            self._marker = await marker.save(store_of(self._target))

    def _show(self, step: str, name: str) -> None:
        if self._on_progress is not None:
            written = self.report.written
            self._on_progress(Progress(step, self.report.passes, name, written))
