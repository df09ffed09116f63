"""Reading of files: from a path to chunks, without a store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from locus_memory.documents.chunking.chunks import chunk_text
from locus_memory.documents.chunking.config import Chunk, ChunkConfig
from locus_memory.documents.ingest.files import File, files_of
from locus_memory.documents.ingest.formats import read_text
from locus_memory.errors import InvalidArgumentError, LocusMemoryError
from locus_memory.events import emit

__all__ = ["MOST_BYTES", "ingest_path", "read_bytes", "reason_of"]

MOST_BYTES: Final = 20_000_000
"""Larger files are skipped by default."""


def ingest_path(
    path: str | Path, config: ChunkConfig | None = None, *, max_bytes: int = MOST_BYTES
) -> list[Chunk]:
    """Return the chunks of a file, or of all files below a folder, in the order of their names.

    The suffix of a file says what it is: Markdown, code, PDF (the extra `documents`), an Office
    document (the extra `documents-all`), else text. Files that cannot be read emit
    `documents.skipped`. This call blocks; `DocumentIndex.add_path` does not.

    Args:
        path: The file or the folder. A chunk's source is the path relative to the folder.
        config: The sizes of chunks; `None` for the defaults.
        max_bytes: Larger files are skipped.

    Raises:
        InvalidArgumentError: Nothing is there.
    """
    return [chunk for file in files_of(path) for chunk in _chunks(file, config, max_bytes)]


def _chunks(file: File, config: ChunkConfig | None, max_bytes: int) -> Iterator[Chunk]:
    try:
        found = read_text(file.source, read_bytes(file, max_bytes))
    except (OSError, LocusMemoryError) as error:
        emit("documents.skipped", error=error, source=file.shown)
        return
    for chunk in chunk_text(found.text, source=file.source, config=config, kind=found.kind):
        metadata = {**chunk.metadata, "kind": found.kind}
        yield replace(chunk, metadata=metadata)


def read_bytes(file: File, max_bytes: int) -> bytes:
    """Return the bytes of a file.

    Raises:
        InvalidArgumentError: It has more bytes than `max_bytes`.
        OSError: It cannot be read, or it is a folder that cannot be listed.
    """
    if file.error is not None:
        raise file.error
    with file.path.open("rb") as opened:
        content = opened.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise InvalidArgumentError(f"it has more than {max_bytes:,} bytes")
    return content


def reason_of(error: Exception) -> str:
    """Return why a file was skipped, on one line."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)
