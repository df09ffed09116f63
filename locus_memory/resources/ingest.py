"""Ingestion of files and folders: one entry a file, unchanged files left alone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import unquote

from locus_memory._internal.offload import in_thread
from locus_memory.documents.ingest.adding import counted
from locus_memory.documents.ingest.files import File, files_of
from locus_memory.documents.ingest.reader import DocumentReader
from locus_memory.documents.ingest.reading import MOST_BYTES, read_bytes, reason_of
from locus_memory.documents.values import Ingested
from locus_memory.errors import (
    LocusMemoryError,
    MemoryConflict,
    MemoryNotFound,
)
from locus_memory.resources.fetching import FetchOptions, fetched, shown
from locus_memory.resources.levels.modelled import LONGEST_HINT
from locus_memory.resources.operations import MemoryOpResource
from locus_memory.resources.reading.memories import FACTS
from locus_memory.resources.results import MemoryResourceResult
from locus_memory.resources.storing.nodes import Entry, is_folder
from locus_memory.resources.storing.places import Path
from locus_memory.resources.storing.writing import TreeWriter
from locus_memory.resources.uri import SCHEME, MemoryURI

__all__ = ["RESOURCES", "ingested"]

RESOURCES: Final = "resources"
"""The top folder of what is ingested."""

_URL: Final = "://"
_PORTS: Final = (None, 80, 443)
"""The ports that need no name."""


async def ingested(
    writer: TreeWriter, op: MemoryOpResource, target: MemoryURI | None, options: FetchOptions
) -> tuple[MemoryResourceResult, list[Path]]:
    """Write an entry for each file of a source; returns the result and what was written.

    Raises:
        MemoryNotFound: There is no such file.
        PermissionError: It may not be read.
        LocusMemoryError: The source is a URL, and as for `fetched`.
    """
    hints = {"reason": op.reason, "instruction": op.instruction}
    metadata = {name: text[:LONGEST_HINT] for name, text in hints.items() if text}
    if _URL not in op.source:
        return await _ingested(writer, op.source, target, metadata)
    found, name, content = await fetched(op.source, options)
    folders = (unquote(each) for each in found.path.split("/")[:-1])
    kept = (each for each in folders if each not in ("", ".", ".."))
    # Servers of one host at other ports have other pages.
    host = str(found.hostname) if found.port in _PORTS else found.netloc.lower()
    folder = target or MemoryURI((RESOURCES, host, *kept))
    with TemporaryDirectory() as place:
        where = FilePath(place, name)
        await in_thread(where.write_bytes, content)
        return await _ingested(writer, str(where), folder, {**metadata, "url": shown(found)})


async def _ingested(
    writer: TreeWriter, where: str, target: MemoryURI | None, metadata: dict[str, str]
) -> tuple[MemoryResourceResult, list[Path]]:
    files = await in_thread(_files, where)
    if files is None:
        place = target or MemoryURI((RESOURCES,), is_folder=True)
        raise MemoryNotFound(str(place), "there is no such file or folder to read")
    folder = target or MemoryURI((RESOURCES, _name(where)))
    done, paths = Ingested(), list[Path]()
    with closing(DocumentReader()) as reader:
        for file in files:
            try:
                path = _place(folder, file)
                text = await in_thread(_text, file, reader)
            except (OSError, LocusMemoryError) as error:
                if file.folder is None and file.error is None:
                    # It is the source itself: there is nothing else to read.
                    raise
                done += Ingested(skipped=((file.shown, reason_of(error)),))
                continue
            try:
                done += await _put(writer, path, text, {**metadata, "source": file.source})
                paths.append(path)
            except MemoryConflict as error:
                done += Ingested(skipped=((file.source, str(error)),))
    result = MemoryResourceResult(
        str(folder.as_folder), done.added, done.updated, done.unchanged, done.skipped, done.chunks
    )
    return result, paths


async def _put(writer: TreeWriter, path: Path, text: str, metadata: dict[str, str]) -> Ingested:
    known = await writer.plans.item(path)
    entry = await writer.write(path, text, "replace", metadata)
    if known is None or is_folder(known):
        return counted("added", entry.chunks)
    if Entry.from_value(known.value).digest == entry.digest:
        return counted("unchanged", 0)
    return counted("updated", entry.chunks)


def _place(folder: MemoryURI, file: File) -> Path:
    """Return the path of the entry of a file.

    Raises:
        InvalidMemoryURI: It is no path.
        MemoryConflict: It is below the view of the memories.
    """
    uri = MemoryURI((*folder.segments, *file.source.split("/")))
    if uri.segments[0] == FACTS:
        raise MemoryConflict(str(uri), f"{SCHEME}{FACTS}/ shows memories, and no files")
    return uri.segments


def _name(where: str) -> str:
    return FilePath(where).expanduser().resolve().name or "files"


def _files(where: str) -> list[File] | None:
    """Return the files of a source; `None`: there is no such source.

    Raises:
        PermissionError: It may not be looked for.
    """
    try:
        source = FilePath(where).expanduser()
        if not source.exists():
            return None
    except PermissionError:
        raise
    except (OSError, RuntimeError):
        # The name is too long for the file system, or nobody has the name after `~`.
        return None
    return files_of(source)


def _text(file: File, reader: DocumentReader) -> str:
    """Return the text of a file.

    Raises:
        OSError: It cannot be read.
        LocusMemoryError: It has no text, or its format needs an extra.
    """
    return reader.read(file.source, read_bytes(file, MOST_BYTES)).text
