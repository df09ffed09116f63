"""The import of an archive into a backend, after all of it was checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from locus_memory._internal.running.paging import batches
from locus_memory.backends.base import Backend, checkpointer_of, store_of
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders.marks import unmarked
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Restored, StoreItem
from locus_memory.transfer.archive.format import Entry
from locus_memory.transfer.archive.reading import MOST_LINE, Archive, open_archive
from locus_memory.transfer.options import ImportReport, MigrateOptions, Progress
from locus_memory.transfer.reading import PAGE, heads_of, identity, items_at, opened
from locus_memory.transfer.writing import Writer

__all__ = ["read_archive"]

_SAME: Final = ("version", "created_at", "updated_at", "expires_at", "value")


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
            run = _Import(archive, asked, on_progress)
            await run.entries(store_of(backend), checkpointer_of(backend))
            return run.report


class _Import:
    """One call of `read_archive`."""

    def __init__(
        self,
        archive: Archive,
        options: MigrateOptions,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.report = ImportReport()
        self._archive = archive
        self._only = options.only
        self._writer = Writer(options)
        self._told = on_progress or (lambda _: None)

    async def entries(self, store: BaseStore | None, checkpointer: BaseCheckpointer | None) -> None:
        """Import the parts that are asked for."""
        entries = [each for each in self._archive.manifest.entries if each.count]
        spaces = [each for each in entries if each.kind == "items" and self._only != "threads"]
        threads = [each for each in entries if each.kind == "thread" and self._only != "items"]
        if spaces and store is None:
            raise ConfigurationError("the target has no store for the items: pass --only threads")
        if threads and checkpointer is None:
            raise ConfigurationError("the target has no checkpoints: pass --only items")
        if store is not None:
            for entry in spaces:
                await self._items(store, entry)
        if checkpointer is not None:
            for entry in threads:
                await self._thread(checkpointer, entry)

    async def _items(self, store: BaseStore, entry: Entry) -> None:
        """Import the items of a namespace that the target does not have, or has older."""
        report = self.report
        for page in batches(self._archive.records(entry), PAGE):
            found = await items_at(store, entry.name, [item.key for item in page])
            known = {item.key: item for item in found}
            missing: list[Restored] = []
            for item in page:
                there = known.get(item.key)
                if there is not None and _is_same(item, there):
                    report.known_items += 1
                elif there is not None and there.updated_at > item.updated_at:
                    report.kept_items += 1
                else:
                    missing.append(item)
            report.items += await self._writer.items(store, missing)
            self._show("items", entry)

    async def _thread(self, checkpointer: BaseCheckpointer, entry: Entry) -> None:
        """Import the checkpoints of a thread that the target does not have."""
        [thread_id] = entry.name
        heads, parent = await heads_of(checkpointer, thread_id), None
        for place, checkpoint in enumerate(self._archive.records(entry)):
            if place >= len(heads):
                await self._writer.checkpoint(checkpointer, thread_id, checkpoint, parent)
                self.report.checkpoints += 1
            elif identity(checkpoint) == identity(heads[place]):
                self.report.known_checkpoints += 1
            else:
                self.report.conflicts.append(thread_id)
                return
            parent = checkpoint.checkpoint_id
        self._show("threads", entry)

    def _show(self, step: str, entry: Entry) -> None:
        written = self.report.items + self.report.checkpoints
        self._told(Progress(step, 1, "/".join(entry.name), written))


def _is_same(item: Restored, known: StoreItem) -> bool:
    """Whether the target has an item as it is in the archive, but for the model of its vector."""
    same = all(getattr(item, name) == getattr(known, name) for name in _SAME)
    return same and unmarked(item.metadata or {}) == unmarked(known.metadata)
