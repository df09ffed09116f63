"""Adding of files to an index: only what has changed, and never stopped by one file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from locus_memory._internal.offload import in_thread
from locus_memory.documents.chunking.config import ChunkConfig
from locus_memory.documents.ingest.files import File, files_of
from locus_memory.documents.ingest.formats import Text, kind_of
from locus_memory.documents.ingest.reader import DocumentReader
from locus_memory.documents.ingest.reading import MOST_BYTES, read_bytes, reason_of
from locus_memory.documents.layout import (
    Document,
    check_source,
    checked_metadata,
    digest_of,
    document_id,
)
from locus_memory.documents.values import Ingested
from locus_memory.documents.writing import Change, Outcome, Writer
from locus_memory.errors import InvalidArgumentError, MissingDriverError
from locus_memory.events import emit
from locus_memory.store.item import check_limit, check_text

__all__ = ["MOST_BYTES", "PathAdding", "counted"]

_LOOKED_UP: Final = 200
"""How many records are read at a time."""

_TOGETHER: Final = 64
"""Files are written once they have this many chunks together, which are embedded in one call."""


def counted(outcome: Outcome, chunks: int, seconds: float = 0.0) -> Ingested:
    """Return the result of adding one document."""
    count: dict[str, Any] = {outcome: 1}
    return Ingested(chunks=chunks, seconds=seconds, **count)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A file whose change is not written yet.

    Attributes:
        file: The file.
        number: Its place among all of them, from 1.
        done: What is counted for it.
        change: What is to be written; `None`: nothing.
    """

    file: File
    number: int
    done: Ingested
    change: Change | None = None


class PathAdding:
    """One call of `DocumentIndex.add_path`.

    Args:
        writer: Writes the documents.
        config: The sizes of chunks.
        prefix: Stands in front of each source.
        metadata: The caller's own metadata.
        max_bytes: Larger files are skipped.
        reader: Reads the files.

    Raises:
        InvalidArgumentError: An invalid prefix, metadata or size.
    """

    def __init__(
        self,
        writer: Writer,
        config: ChunkConfig,
        *,
        prefix: str = "",
        metadata: Mapping[str, Any] | None = None,
        max_bytes: int = MOST_BYTES,
        reader: DocumentReader,
    ) -> None:
        self._writer = writer
        self._config = config
        self._prefix = check_text(prefix, "a prefix") or ""
        check_source(self._prefix)
        self._metadata = checked_metadata(metadata)
        self._max_bytes = check_limit(max_bytes, "max_bytes")
        self._reader = reader
        self._adopts = False
        self._place = Path()

    async def run(self, path: str | Path, *, prune: bool) -> Ingested:
        """Add a file or a folder."""
        started = time.perf_counter()
        files, place, is_folder = await in_thread(_listed, path)
        root = _root(place, self._prefix)
        self._adopts, self._place = is_folder, place
        done = Ingested()
        for start in range(0, len(files), _LOOKED_UP):
            part = files[start : start + _LOOKED_UP]
            known = await self._writer.records(list(filter(_is_source, map(self._source, part))))
            group: list[_Planned] = []
            for number, file in enumerate(part, start + 1):
                group.append(await self._planned(file, number, root, known))
                waiting = [len(each.change.puts) for each in group if each.change is not None]
                if not waiting or sum(waiting) >= _TOGETHER:
                    done += await self._write(group, len(files))
                    group = []
            done += await self._write(group, len(files))
        if prune and is_folder:
            done += await self._prune(root, files)
        return replace(done, seconds=time.perf_counter() - started)

    def _source(self, file: File) -> str:
        return self._prefix + file.source

    async def _planned(
        self, file: File, number: int, root: str, known: Mapping[str, Mapping[str, Any]]
    ) -> _Planned:
        source = self._source(file)
        was = known.get(source)
        root_was = root if was is None else was["root"]
        try:
            check_source(source)
            known_id = was["document"] if was is not None and was["complete"] else None
            name, digest, text = await in_thread(self._read, file, known_id)
        except (OSError, InvalidArgumentError, MissingDriverError) as error:
            return _Planned(file, number, Ingested(skipped=((file.shown, reason_of(error)),)))
        if text is None:
            # A file that is added alone stays with its folder.
            if self._adopts and known_id is not None and root_was != root:
                await self._writer.adopt(source, known_id, root)
            return _Planned(file, number, counted("unchanged", 0))
        document = Document(
            id=name,
            source=source,
            text=text.text,
            digest=digest,
            kind=text.kind,
            metadata=self._metadata,
            record=source,
            root=root_was if self._stays(source, root_was) else root,
        )
        change = await self._writer.change(document, self._config)
        if change.chunks > self._reader.limits.chunks:
            reason = str(self._reader.limits.exceeded("chunks"))
            return _Planned(file, number, Ingested(skipped=((file.shown, reason),)))
        done = counted(change.outcome, change.chunks)
        done = replace(done, notes=((file.source, text.note),)) if text.note else done
        return _Planned(file, number, done, change)

    async def _write(self, group: Sequence[_Planned], total: int) -> Ingested:
        """Write the files of a group; their chunks are embedded together."""
        changes = [each.change for each in group if each.change is not None]
        ready = iter(await self._writer.embedded(changes))
        done = Ingested()
        for each in group:
            one = each.done
            if each.change is not None:
                # Another process may have been first.
                change = await self._writer.apply(next(ready))
                one = replace(counted(change.outcome, change.chunks), notes=one.notes)
            done += one
            self._tell(each.file, one, each.number, total)
        return done

    def _read(self, file: File, known: str | None) -> tuple[str, str, Text | None]:
        """Return the id and the digest of a file, and its text, unless it is the known one."""
        content = read_bytes(file, self._max_bytes)
        digest = digest_of(content)
        kind = kind_of(file.source)
        name = document_id(self._source(file), digest, self._config, kind, self._metadata)
        text = None if name == known else self._reader.read(file.source, content)
        return name, digest, text

    def _stays(self, source: str, root: str) -> bool:
        """Whether a file that is added alone is from a folder that has it under this source."""
        if self._adopts:
            return False
        names = ((each, self._place.relative_to(each).as_posix()) for each in self._place.parents)
        return any(
            source.endswith(name) and _root(folder, source.removesuffix(name)) == root
            for folder, name in names
        )

    def _tell(self, file: File, one: Ingested, number: int, total: int) -> None:
        outcome = next(
            (name for name in ("added", "updated", "unchanged") if getattr(one, name)), "skipped"
        )
        emit(
            "documents.ingested",
            source=f"{self._prefix}{file.shown}",
            outcome=outcome,
            chunks=one.chunks,
            number=number,
            total=total,
        )

    async def _prune(self, root: str, files: Sequence[File]) -> Ingested:
        gone = self._gone(files, await self._writer.sources_from(root))
        if gone:
            # Another process may have added a file since the folder was listed.
            gone = self._gone(await in_thread(files_of, self._place), gone)
        for source in gone:
            await self._writer.delete_source(source)
        return Ingested(deleted=len(gone))

    def _gone(self, files: Sequence[File], sources: Sequence[str]) -> list[str]:
        """Return the sources that none of the files of the folder has."""
        there = {self._source(each) for each in files}
        # Of a folder that cannot be listed, nobody knows what is gone.
        closed = tuple(f"{self._source(each)}/" for each in files if each.error is not None)
        return [each for each in sources if each not in there and not each.startswith(closed)]


def _root(place: Path, prefix: str) -> str:
    """Return the digest of a folder, or of a file that is added alone."""
    return digest_of(f"{place}\n{prefix}")


def _is_source(name: str) -> bool:
    try:
        check_source(name)
    except InvalidArgumentError:
        return False
    return True


def _listed(path: str | Path) -> tuple[list[File], Path, bool]:
    """Return the files, the folder's own path, and whether it is a folder."""
    root = Path(path)
    return files_of(path), root.resolve(), root.is_dir()
