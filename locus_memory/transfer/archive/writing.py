"""The writing of an archive, page by page."""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from locus_memory.backends.base import Backend, checkpointer_of, store_of
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
from locus_memory.transfer.reading import all_threads, checkpoints_of, heads_of, opened, read_all

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

    store, checkpointer = store_of(backend), checkpointer_of(backend)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        writer = _Writer(archive, on_progress)
        if only != "threads" and store is not None:
            async for space in all_namespaces(store):
                if space != MARKER:
                    found = read_all(store, space, vectors=vectors)
                    await writer.add("items", space, (map(item_line, page) async for page in found))
        if only != "items" and checkpointer is not None:
            async for name in all_threads(checkpointer):
                saved = checkpoints_of(checkpointer, await heads_of(checkpointer, name))
                lines = CheckpointWriter()
                await writer.add("thread", (name,), ([lines.line(each)] async for each in saved))
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


class _Writer:
    """An archive that is being written."""

    def __init__(
        self, archive: zipfile.ZipFile, on_progress: Callable[[Progress], None] | None
    ) -> None:
        self.entries: list[Entry] = []
        self._archive = archive
        self._show = on_progress or (lambda _: None)
        self._written = 0

    async def add(
        self, kind: Kind, name: tuple[str, ...], pages: AsyncIterator[Iterable[bytes]]
    ) -> None:
        """Write one file, a page of lines at a time."""
        file = file_name(kind, len(self.entries) + 1, name)
        step = "items" if kind == "items" else "threads"
        digest, size, count = sha256(), 0, 0
        with self._archive.open(file, "w", force_zip64=True) as stream:
            async for page in pages:
                for line in page:
                    stream.write(line)
                    digest.update(line)
                    size += len(line)
                    count += 1
                self._show(Progress(step, 1, "/".join(name), self._written + count))
        self._written += count
        self.entries.append(Entry(file, kind, name, count, size, digest.hexdigest()))
