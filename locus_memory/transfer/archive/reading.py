"""The reading of an archive: it is checked as a whole, and then imported."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import IO, Final

from locus_memory.errors import ArchiveError
from locus_memory.transfer.archive.format import (
    MANIFEST,
    SEAL,
    Entry,
    Manifest,
    seal_of,
)
from locus_memory.transfer.archive.lines import CheckpointReader, read_item

__all__ = ["Archive", "check_archive", "open_archive"]

_MOST_MANIFEST: Final = 512 * 2**20
"""Bytes of a manifest: one of this size would have over a million entries."""

_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""The errors of `zipfile` for content that is damaged, or of a form that no archive has."""


class Archive:
    """An archive that is open for reading, and whose manifest is intact.

    Attributes:
        path: The file.
        manifest: The manifest.
    """

    def __init__(self, path: str, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._archive = archive
        self.manifest = self._manifest()
        self._check_files()

    def _read(self, name: str) -> bytes:
        try:
            info = self._archive.getinfo(name)
            if info.file_size > _MOST_MANIFEST:
                raise ArchiveError(self.path, name, "it is too large")
            return self._archive.read(info)
        except KeyError:
            raise ArchiveError(self.path, name, "it is missing") from None
        except _BROKEN as error:
            raise ArchiveError(self.path, name, f"it is damaged: {error}") from error

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
        there = self._archive.namelist()
        expected = [MANIFEST, SEAL, *(entry.file for entry in self.manifest.entries)]
        for name in sorted({*there, *expected}):
            if there.count(name) < expected.count(name):
                raise ArchiveError(self.path, name, "it is missing")
            if there.count(name) != expected.count(name) or expected.count(name) > 1:
                raise ArchiveError(self.path, name, "the manifest does not list it once")

    def lines(self, entry: Entry) -> Iterator[bytes]:
        """Yield the lines of an entry.

        Raises:
            ArchiveError: The entry is not as the manifest describes it.
        """
        digest, size, count = sha256(), 0, 0
        try:
            with self._archive.open(entry.file) as stream:
                for line in _bounded(stream, entry.size):
                    digest.update(line)
                    size += len(line)
                    count += 1
                    yield line
        except _BROKEN as error:
            raise ArchiveError(self.path, entry.file, f"it is damaged: {error}") from error
        if (size, count) != (entry.size, entry.count):
            raise ArchiveError(
                self.path,
                entry.file,
                f"it has {count} lines and {size} bytes or more, and the manifest says "
                f"{entry.count} and {entry.size}",
            )
        if digest.hexdigest() != entry.digest:
            raise ArchiveError(self.path, entry.file, "its SHA-256 is not that in the manifest")

    def check(self, entry: Entry) -> None:
        """Read an entry to its end.

        Raises:
            ArchiveError: It is not as it was written; the error names the entry and the line.
        """
        reader = CheckpointReader(entry.name[0])
        number = 0
        try:
            for number, line in enumerate(self.lines(entry), 1):  # noqa: B007 - for the error
                if entry.kind == "items":
                    read_item(line, entry.name)
                else:
                    reader.read(line)
        except ArchiveError:
            raise
        except ValueError as error:
            raise ArchiveError(self.path, entry.file, f"line {number}: {error}") from error


def _bounded(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the lines of a stream, and stop soon after `size` bytes."""
    left = size + 1
    while left > 0 and (line := stream.readline(left)):
        left -= len(line)
        yield line


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Generator[Archive]:
    """Yield an archive whose manifest is intact.

    Raises:
        ArchiveError: It is not an archive, it is truncated or altered, or of a newer version.
        OSError: The file cannot be read.
    """
    name = os.fspath(path)
    try:
        opened = zipfile.ZipFile(name)
    except _BROKEN as error:
        raise ArchiveError(name, None, f"it is truncated, or no archive: {error}") from error
    with opened:
        yield Archive(name, opened)


def check_archive(
    path: str | os.PathLike[str], *, on_entry: Callable[[Entry], None] | None = None
) -> Manifest:
    """Read an archive to its end, and return its manifest.

    Args:
        path: The archive.
        on_entry: Called after each entry.

    Raises:
        ArchiveError: A part is not as it was written; the error names the entry.
        OSError: The file cannot be read.
    """
    with open_archive(path) as archive:
        for entry in archive.manifest.entries:
            archive.check(entry)
            if on_entry is not None:
                on_entry(entry)
        return archive.manifest
