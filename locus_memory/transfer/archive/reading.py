"""The reading of an archive: it is checked as a whole, and then imported."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from locus_memory.errors import ArchiveError
from locus_memory.store.item import check_limit
from locus_memory.transfer.archive.format import MANIFEST, SEAL, Entry, Manifest, seal_of
from locus_memory.transfer.archive.lines import CheckpointReader, read_item

__all__ = ["MOST_LINE", "Archive", "check_archive", "open_archive"]

_MOST_MANIFEST: Final = 512 * 2**20
"""Bytes of a manifest: one of this size would have over a million entries."""

MOST_LINE: Final = 16 * 2**20
"""Bytes that a line may always have, by default."""

_RATIO: Final = 100
"""A line may have so many bytes for each compressed one, which texts do not reach."""

_REMEDY: Final = "if you trust the archive, read it with a larger `max_line`"

_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""The errors of `zipfile` for content that is damaged, or of a form that no archive has."""


class Archive:
    """An archive that is open for reading, and whose manifest is intact.

    Attributes:
        path: The file.
        manifest: The manifest.
    """

    def __init__(self, path: str, archive: zipfile.ZipFile, max_line: int) -> None:
        self.path = path
        self._archive = archive
        self._max_line = max_line
        self.manifest = self._manifest()
        self._check_files()

    def _read(self, name: str) -> bytes:
        try:
            info = self._archive.getinfo(name)
        except KeyError:
            raise ArchiveError(self.path, name, "it is missing") from None
        if info.file_size > min(_MOST_MANIFEST, self._most(info)):
            raise ArchiveError(self.path, name, f"it is too large; {_REMEDY}")
        with self._damaged(name):
            return self._archive.read(info)

    @contextmanager
    def _damaged(self, name: str) -> Generator[None]:
        try:
            yield
        except _BROKEN as error:
            raise ArchiveError(self.path, name, f"it is damaged: {error}") from error

    def _most(self, info: zipfile.ZipInfo) -> int:
        """Return the most bytes of a line; what the archive says of its sizes may be untrue."""
        compressed = min(info.compress_size, Path(self.path).stat().st_size)
        return max(self._max_line, _RATIO * compressed)

    def _manifest(self) -> Manifest:
        content = self._read(MANIFEST)
        if self._read(SEAL) != seal_of(content):
            raise ArchiveError(self.path, MANIFEST, f"its SHA-256 is not that in {SEAL}")
        try:
            return Manifest.from_bytes(content)
        except ValueError as error:
            raise ArchiveError(self.path, MANIFEST, str(error)) from error

    def _check_files(self) -> None:
        """Refuse an archive whose files are not those of the manifest."""
        there = Counter(self._archive.namelist())
        expected = Counter([MANIFEST, SEAL, *(entry.file for entry in self.manifest.entries)])
        for name in sorted({*there, *expected}):
            if there[name] < expected[name]:
                raise ArchiveError(self.path, name, "it is missing")
            if there[name] != expected[name] or expected[name] > 1:
                raise ArchiveError(self.path, name, "the manifest does not list it once")

    def lines(self, entry: Entry) -> Iterator[bytes]:
        """Yield the lines of an entry.

        Raises:
            ArchiveError: The entry is not as the manifest describes it, or a line is too long.
        """
        digest, size, count = sha256(), 0, 0
        most = self._most(self._archive.getinfo(entry.file))
        with self._damaged(entry.file), self._archive.open(entry.file) as stream:
            # At most one byte more than was promised is read.
            while line := stream.readline(min(entry.size + 1 - size, most + 1)):
                digest.update(line)
                size += len(line)
                count += 1
                if len(line) > most:
                    reason = f"line {count} has more than {most:,} bytes; {_REMEDY}"
                    raise ArchiveError(self.path, entry.file, reason)
                yield line
        if (size, count) != (entry.size, entry.count):
            raise ArchiveError(
                self.path,
                entry.file,
                f"it has {count} lines and {size} bytes or more, and the manifest says "
                f"{entry.count} and {entry.size}",
            )
        if digest.hexdigest() != entry.digest:
            raise ArchiveError(self.path, entry.file, "its SHA-256 is not that in the manifest")

    def records(self, entry: Entry) -> Iterator[Any]:
        """Yield the items of a namespace, or the checkpoints of a thread.

        Raises:
            ArchiveError: As for `lines`; or a line is none.
        """
        read: Callable[[bytes], Any] = partial(read_item, namespace=entry.name)
        if entry.kind == "thread":
            read = CheckpointReader(entry.name[0]).read
        for number, line in enumerate(self.lines(entry), 1):
            try:
                record = read(line)
            except ValueError as error:
                raise ArchiveError(self.path, entry.file, f"line {number}: {error}") from error
            yield record

    def check(self, entry: Entry) -> None:
        """Read an entry to its end.

        Raises:
            ArchiveError: It is not as it was written; the error names the entry and the line.
        """
        for _ in self.records(entry):
            pass


@contextmanager
def open_archive(path: str | os.PathLike[str], max_line: int = MOST_LINE) -> Generator[Archive]:
    """Yield an archive whose manifest is intact.

    Args:
        path: The archive.
        max_line: See `check_archive`.

    Raises:
        InvalidArgumentError: `max_line` is no number of bytes.
        ArchiveError: It is not an archive, it is truncated or altered, or of a newer version.
        OSError: The file cannot be read.
    """
    name = os.fspath(path)
    try:
        opened = zipfile.ZipFile(name)
    except _BROKEN as error:
        raise ArchiveError(name, None, f"it is truncated, or no archive: {error}") from error
    with opened:
        if any(each.header_offset < 0 for each in opened.infolist()):
            raise ArchiveError(name, None, "it is truncated: an entry begins before the file")
        yield Archive(name, opened, check_limit(max_line, "max_line"))


def check_archive(
    path: str | os.PathLike[str],
    *,
    max_line: int = MOST_LINE,
) -> Manifest:
    """Read an archive to its end, and return its manifest.

    Args:
        path: The archive.
        max_line: A line, or the manifest, has at most this many bytes, or 100 times the bytes that
            its file has in the archive, if that is more. A small archive may unpack to a value that
            takes all memory.

    Raises:
        InvalidArgumentError: `max_line` is no number of bytes.
        ArchiveError: A part is not as it was written; the error names the entry.
        OSError: The file cannot be read.
    """
    with open_archive(path, max_line) as archive:
        for entry in archive.manifest.entries:
            archive.check(entry)
        return archive.manifest
