"""Reading of files: from a path to chunks, without a store."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from locus_memory.documents.chunking.chunks import chunk_text
from locus_memory.documents.chunking.config import Chunk, ChunkConfig
from locus_memory.documents.ingest.files import File, files_of
from locus_memory.documents.ingest.reader import DocumentLimits, DocumentReader
from locus_memory.errors import InvalidArgumentError, LocusMemoryError
from locus_memory.events import emit

__all__ = ["MOST_BYTES", "ingest_path", "read_bytes", "reason_of"]

MOST_BYTES: Final = 20_000_000
"""Larger files are skipped by default."""

# Windows has no such flags but the one for bytes as they are.
_FLAGS: Final[int] = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)


def ingest_path(
    path: str | Path,
    config: ChunkConfig | None = None,
    *,
    max_bytes: int = MOST_BYTES,
    limits: DocumentLimits | None = None,
) -> list[Chunk]:
    """Return the chunks of a file, or of all files below a folder, in the order of their names.

    The suffix of a file says what it is: Markdown, code, PDF (the extra `documents`), an Office
    document (the extra `documents-all`), else text. Files that cannot be read emit
    `documents.skipped`. This call blocks; `DocumentIndex.add_path` does not.

    Args:
        path: The file or the folder. A chunk's source is the path relative to the folder.
        config: The sizes of chunks; `None` for the defaults.
        max_bytes: Larger files are skipped.
        limits: What a file may take; `None` for the defaults. PDF, HTML and Office documents are
            read in a process of their own.

    Raises:
        InvalidArgumentError: Nothing is there.
    """
    with closing(DocumentReader(limits)) as reader:
        return [
            chunk for file in files_of(path) for chunk in _chunks(file, config, max_bytes, reader)
        ]


def _chunks(
    file: File, config: ChunkConfig | None, max_bytes: int, reader: DocumentReader
) -> Iterator[Chunk]:
    try:
        found = reader.read(file.source, read_bytes(file, max_bytes))
        chunks = chunk_text(found.text, source=file.source, config=config, kind=found.kind)
        if len(chunks) > reader.limits.chunks:
            raise reader.limits.exceeded("chunks")
    except (OSError, LocusMemoryError) as error:
        emit("documents.skipped", error=error, source=file.shown)
        return
    for chunk in chunks:
        metadata = {**chunk.metadata, "kind": found.kind}
        yield replace(chunk, metadata=metadata)


def read_bytes(file: File, max_bytes: int) -> bytes:
    """Return the bytes of a file.

    Raises:
        InvalidArgumentError: It has more bytes than `max_bytes`; or it was exchanged since it was
            listed, and leads out of its folder, or is no regular file.
        OSError: It cannot be read, or it is a folder that cannot be listed.
    """
    if file.error is not None:
        raise file.error
    number = _descriptor(file)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise InvalidArgumentError("it is no regular file")
        with open(number, "rb", closefd=False) as opened:
            content = opened.read(max_bytes + 1)
    finally:
        os.close(number)
    if len(content) > max_bytes:
        raise InvalidArgumentError(f"it has more than {max_bytes:,} bytes")
    return content


def _descriptor(file: File) -> int:
    """Open a file, without waiting for the other end of a pipe.

    Links within its folder are resolved first, and none is followed afterwards.
    """
    place = file.path.resolve(strict=True)
    if file.folder is None:
        return os.open(place, _FLAGS)
    if not place.is_relative_to(file.folder):
        raise InvalidArgumentError("it leads out of the folder")
    if os.open not in os.supports_dir_fd:
        return os.open(place, _FLAGS)
    number = os.open(file.folder, _FLAGS)
    for name in place.relative_to(file.folder).parts:
        try:
            inner = os.open(name, _FLAGS | _NO_LINK, dir_fd=number)
        finally:
            os.close(number)
        number = inner
    return number


def reason_of(error: Exception) -> str:
    """Return why a file was skipped, on one line."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)
