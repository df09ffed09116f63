"""The writing of an archive, page by page."""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from locus_memory.backends.base import Backend
from locus_memory.backends.folders import create_private, publish
from locus_memory.errors import ConfigurationError
from locus_memory.store.base import all_namespaces
from locus_memory.transfer.archive.format import (
    MANIFEST,
    SEAL,
    Entry,
    Kind,
    Manifest,
    file_name,
    seal_of,
)
from locus_memory.transfer.archive.lines import CheckpointWriter, item_line
from locus_memory.transfer.marker import MARKER
from locus_memory.transfer.options import Progress
from locus_memory.transfer.reading import (
    all_threads,
    checkpointer_of,
    checkpoints_of,
    heads_of,
    opened,
    read_all,
    store_of,
)

__all__ = ["write_archive"]


async def write_archive(
    source: str | Backend,
    path: str | os.PathLike[str],
    *,
    only: str | None = None,
    vectors: bool = True,
    overwrite: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Manifest:
    """Write everything of a backend to an archive; see `docs/archive-format.md`.

    The memory of the process holds one page of items, or one state of a thread. The archive has its
    name only once it is complete. What is written to the source meanwhile may be in it or not.

    Args:
        source: A backend, or a provider string.
        path: The archive, usually with the suffix `.zip`.
        only: `items` or `threads`: only this part.
        vectors: Whether to include the vectors.
        overwrite: Whether to replace a file.
        on_progress: Called after each page.

    Returns:
        The manifest, with the number of items and checkpoints.

    Raises:
        ConfigurationError: The file exists.
        OSError: The file cannot be written.
        BackendError: The database failed, or an item or a checkpoint is damaged.
    """
    place = Path(path)
    if not overwrite and await asyncio.to_thread(place.exists):
        raise ConfigurationError(f"{place} exists: name another file, or pass --force")
    partial = place.with_name(f"{place.name}.part-{os.getpid()}")
    try:
        async with opened(source) as backend:
            await asyncio.to_thread(create_private, partial)
            manifest = await _write(backend, partial, only, vectors, on_progress)
        await asyncio.to_thread(publish, partial, place)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    return manifest


async def _write(
    backend: Backend[Any],
    path: Path,
    only: str | None,
    vectors: bool,  # noqa: FBT001 - it is handed on
    on_progress: Callable[[Progress], None] | None,
) -> Manifest:
    from locus_memory import __version__  # noqa: PLC0415 - the package imports this module

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        writer = _Writer(archive, [], on_progress)
        if only != "threads":
            await writer.items(backend, vectors=vectors)
        if only != "items":
            await writer.threads(backend)
        manifest = Manifest(
            library=__version__,
            created_at=datetime.now(UTC).isoformat(timespec="microseconds"),
            provider=backend.provider,
            entries=tuple(writer.entries),
        )
        content = manifest.to_bytes()
        archive.writestr(MANIFEST, content)
        archive.writestr(SEAL, seal_of(content))
    return manifest


@dataclass(slots=True)
class _Writer:
    """An archive that is being written."""

    archive: zipfile.ZipFile
    entries: list[Entry]
    on_progress: Callable[[Progress], None] | None

    async def items(self, backend: Backend[Any], *, vectors: bool) -> None:
        """Write a file for each namespace."""
        store = store_of(backend)
        if store is None:
            return
        async for namespace in all_namespaces(store):
            if namespace == MARKER:
                continue
            found = read_all(store, namespace, vectors=vectors)
            await self._entry("items", namespace, (map(item_line, page) async for page in found))

    async def threads(self, backend: Backend[Any]) -> None:
        """Write a file for each thread."""
        checkpointer = checkpointer_of(backend)
        if checkpointer is None:
            return
        async for thread_id in all_threads(checkpointer):
            heads, lines = await heads_of(checkpointer, thread_id), CheckpointWriter()
            found = checkpoints_of(checkpointer, heads)
            await self._entry("thread", (thread_id,), ([lines.line(each)] async for each in found))

    async def _entry(
        self, kind: Kind, name: tuple[str, ...], pages: AsyncIterator[Iterable[bytes]]
    ) -> None:
        """Write one file, a page of lines at a time."""
        file = file_name(kind, len(self.entries) + 1, name)
        digest, size, count = sha256(), 0, 0
        with self.archive.open(file, "w", force_zip64=True) as stream:
            async for page in pages:
                for line in page:
                    stream.write(line)
                    digest.update(line)
                    size += len(line)
                    count += 1
                self._show(kind, name, count)
        self.entries.append(Entry(file, kind, name, count, size, digest.hexdigest()))

    def _show(self, kind: Kind, name: tuple[str, ...], count: int) -> None:
        if self.on_progress is not None:
            written = sum(entry.count for entry in self.entries) + count
            step = "items" if kind == "items" else "threads"
            self.on_progress(Progress(step, 1, "/".join(name), written))
