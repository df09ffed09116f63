"""The import of an archive into a backend, after all of it was checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer, RestoredCheckpoint
from locus_memory.checkpoint.record import RecordHead
from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders.marks import unmarked
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Restored, StoreItem, timestamp
from locus_memory.transfer.archive.format import Entry
from locus_memory.transfer.archive.lines import CheckpointReader, read_item
from locus_memory.transfer.archive.reading import MOST_LINE, Archive, open_archive
from locus_memory.transfer.items import items_at, pages
from locus_memory.transfer.opening import opened
from locus_memory.transfer.options import MigrateOptions, Progress
from locus_memory.transfer.pace import Pace
from locus_memory.transfer.parts import checkpointer_of, store_of
from locus_memory.transfer.threads import heads_of
from locus_memory.transfer.writing import ItemWriter

__all__ = ["ImportReport", "read_archive"]


@dataclass(slots=True)
class ImportReport:
    """The work of an import.

    Attributes:
        items: Items written.
        known_items: Items that the target had already, the same.
        kept_items: Items of the target that were kept, since they are newer.
        checkpoints: Checkpoints written.
        known_checkpoints: Checkpoints that the target had already.
        conflicts: Threads of the target that were kept, since they have other checkpoints.
    """

    items: int = 0
    known_items: int = 0
    kept_items: int = 0
    checkpoints: int = 0
    known_checkpoints: int = 0
    conflicts: list[str] = field(default_factory=list[str])


async def read_archive(
    path: str | os.PathLike[str],
    target: str | Backend,
    options: MigrateOptions | None = None,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    max_line: int = MOST_LINE,
) -> ImportReport:
    """Import an archive; the data of the target that is not in it stays.

    All of the archive is read and checked before anything is written. Of two versions of an item,
    the one that was written last stays. A thread of the target with other checkpoints stays as it
    is. A call may be interrupted and repeated: it writes what is missing.

    Args:
        path: The archive.
        target: A backend, or a provider string.
        options: `only`, `vectors`, `reembed`, `rate` and `dry_run` count here.
        on_progress: Called after each page.
        max_line: See `check_archive`.

    Raises:
        ArchiveError: The archive is truncated or altered, or of a newer version; the error names
            the entry, and nothing was written.
        ConfigurationError: The target has no place for items, or none for threads.
        StoreCapabilityError: The target cannot hold an item.
        BackendError: The database failed.
    """
    asked = options or MigrateOptions()
    with open_archive(path, max_line) as archive:
        for entry in archive.manifest.entries:
            archive.check(entry)
        async with opened(target) as backend:
            wanted = _wanted(archive.manifest.entries, backend, asked)
            run = _Import(archive, asked, Pace(asked.rate), on_progress)
            for entry in wanted:
                await run.entry(backend, entry)
            return run.report


def _wanted(
    entries: Iterable[Entry], backend: Backend[Any], options: MigrateOptions
) -> list[Entry]:
    left_out = {"items": "thread", "threads": "items"}.get(options.only or "")
    wanted = [entry for entry in entries if entry.kind != left_out]
    kinds = {entry.kind for entry in wanted if entry.count}
    if "items" in kinds and store_of(backend) is None:
        raise ConfigurationError("the target has no store for the items: pass --only threads")
    if "thread" in kinds and checkpointer_of(backend) is None:
        raise ConfigurationError("the target has no checkpoints: pass --only items")
    return [entry for entry in wanted if entry.kind in kinds]


@dataclass(slots=True)
class _Import:
    """One call of `read_archive`."""

    archive: Archive
    options: MigrateOptions
    pace: Pace
    on_progress: Callable[[Progress], None] | None
    report: ImportReport = field(default_factory=ImportReport)

    async def entry(self, backend: Backend[Any], entry: Entry) -> None:
        """Import a namespace or a thread."""
        if entry.kind == "items":
            await self.items(backend.store, entry)
        else:
            await self.thread(backend.checkpointer, entry)

    async def items(self, store: BaseStore, entry: Entry) -> None:
        """Import the items of a namespace."""
        options = self.options
        writer = ItemWriter(store, self.pace, options.reembed, options.vectors)
        lines = (read_item(line, entry.name) for line in self.archive.lines(entry))
        for page in pages(lines):
            missing = await self._missing(store, page)
            self.report.items += len(missing) if options.dry_run else await writer.write(missing)
            self._show("items", entry)

    async def _missing(self, store: BaseStore, page: Sequence[Restored]) -> list[Restored]:
        """Return the items that are to be written."""
        found = await items_at(store, page[0].namespace, [item.key for item in page])
        there = {item.key: item for item in found}
        missing: list[Restored] = []
        for item in page:
            known = there.get(item.key)
            if known is None or not (_same(item, known) or known.updated_at > item.updated_at):
                missing.append(item)
            elif _same(item, known):
                self.report.known_items += 1
            else:
                self.report.kept_items += 1
        return missing

    async def thread(self, checkpointer: BaseCheckpointer, entry: Entry) -> None:
        """Import the checkpoints of a thread that the target does not have."""
        [thread_id] = entry.name
        heads = await heads_of(checkpointer, thread_id)
        reader, parent = CheckpointReader(thread_id), None
        for place, line in enumerate(self.archive.lines(entry)):
            checkpoint = reader.read(line)
            if place < len(heads):
                if not _same_head(checkpoint, heads[place]):
                    self.report.conflicts.append(thread_id)
                    return
                self.report.known_checkpoints += 1
            else:
                self.report.checkpoints += 1
                if not self.options.dry_run:
                    await self.pace.take(1)
                    await checkpointer.restore(thread_id, checkpoint, expected_parent=parent)
            parent = checkpoint.checkpoint_id
        self._show("threads", entry)

    def _show(self, step: str, entry: Entry) -> None:
        if self.on_progress is not None:
            written = self.report.items + self.report.checkpoints
            self.on_progress(Progress(step, 1, "/".join(entry.name), written))


def _same(item: Restored, known: StoreItem) -> bool:
    past = item.version, item.created_at, item.updated_at, item.expires_at
    if past != (known.version, known.created_at, known.updated_at, known.expires_at):
        return False
    plain = unmarked(item.metadata or {}), unmarked(known.metadata)
    return item.value == known.value and plain[0] == plain[1]


def _same_head(checkpoint: RestoredCheckpoint, head: RecordHead) -> bool:
    origin = None if head.forked_from is None else (*head.forked_from,)
    return (
        checkpoint.checkpoint_id,
        checkpoint.created_at,
        checkpoint.metadata,
        checkpoint.forked_from,
    ) == (head.checkpoint_id, timestamp(head.created_at), head.metadata, origin)
