"""Deleted words in a SQLite file: its pages, its free pages, its log and its text index."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from locus_memory.backends.remains import ByteSearch, Place, of_file
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase

__all__ = ["find_remains"]

_INT: Final = 4
_HEAD: Final = 8

_READER: Final = """
import sys
with open(sys.argv[1], "rb") as file:
    for line in sys.stdin.buffer:
        at, size = map(int, line.split())
        file.seek(at)
        data = file.read(size)
        sys.stdout.buffer.write(len(data).to_bytes(8, "big") + data)
        sys.stdout.buffer.flush()
"""
_FIRST_TRUNK: Final = slice(32, 36)
"""The first page of the free list in the head of a file; see https://sqlite.org/fileformat.html."""


async def find_remains(database: SQLiteDatabase, search: ByteSearch) -> list[Place]:
    """Return the places of a database file, each looked at for the words."""
    return await database.read(lambda connection: _places(connection, search))


def _places(connection: sqlite3.Connection, search: ByteSearch) -> list[Place]:
    file = str(connection.execute("PRAGMA database_list").fetchone()[2])
    index = _text_index(connection, search)
    if not file:
        return [index, Place(name=":memory:", how="it has no file")]
    with _OtherProcess(file) as pages:
        size, found = search.count_file(pages)
        free = _free_pages(file, pages)
    how = "every byte of all pages, and the checkpoints in them"
    log = of_file(Path(f"{file}-wal"), search, "every byte of the write-ahead log")
    return [
        Place(name=file, how=how, bytes=size, found=found),
        free,
        log,
        of_file(Path(f"{file}-journal"), search),
        index,
    ]


class _OtherProcess:
    """A database file, read by another process.

    A process that closes a file loses the locks of its SQLite connections on that file; see
    https://sqlite.org/howtocorrupt.html, section 2.2.
    """

    def __init__(self, path: str) -> None:
        command = [sys.executable, "-I", "-S", "-c", _READER, path]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe)  # noqa: S603 - our script
        self._at = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with ExitStack() as stack:
            stack.callback(self._process.wait)
            for stream in (self._process.stdin, self._process.stdout):
                stack.callback(_opened(stream).close)

    def seek(self, at: int) -> None:
        """Continue at this byte."""
        self._at = at

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most so many.

        Raises:
            OSError: The other process cannot read the file.
        """
        stdin, stdout = _opened(self._process.stdin), _opened(self._process.stdout)
        stdin.write(b"%d %d\n" % (self._at, size))
        stdin.flush()
        head = stdout.read(_HEAD)
        if len(head) < _HEAD:
            raise OSError("the database file cannot be read")
        data = stdout.read(int.from_bytes(head, "big"))
        self._at += len(data)
        return data


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise OSError("the process has no such stream")
    return stream


def _text_index(connection: sqlite3.Connection, search: ByteSearch) -> Place:
    """Return the place of the terms in the shadow tables of FTS5, where they share prefixes."""
    name = "texts_data, texts_idx (FTS5)"
    blobs = connection.execute("SELECT block FROM texts_data").fetchall()
    size = sum(len(block) for (block,) in blobs)
    found = sum(search.count(block) for (block,) in blobs)
    connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, texts, 'row')")
    try:
        terms = connection.execute("SELECT term FROM temp.terms").fetchall()
    finally:
        connection.execute("DROP TABLE temp.terms")
    found += sum(search.count_text(term) for (term,) in terms)
    how = f"every block, and each of {len(terms)} terms"
    return Place(name=name, how=how, bytes=size, found=found)


def _free_pages(path: str, file: _OtherProcess) -> Place:
    """Return the place of the free pages, which have to be empty: they may hold parts of words."""
    file.seek(0)
    size = int.from_bytes(file.read(100)[16:18], "big")
    size = 65536 if size == 1 else size
    pages = list(_listed(file, size))
    dirty = sum(any(_page(file, size, page)) for page in pages)
    problem = f"{dirty} free pages hold old data: run compact" if dirty else None
    how = f"{len(pages)} free pages" if dirty else f"{len(pages)} free pages, which hold only zeros"
    return Place(name=f"{path} (free list)", how=how, bytes=len(pages) * size, problem=problem)


def _listed(file: _OtherProcess, size: int) -> Iterator[int]:
    """Yield the leaves of the free list."""
    file.seek(0)
    trunk = int.from_bytes(file.read(100)[_FIRST_TRUNK], "big")
    seen: set[int] = set()
    while trunk and trunk not in seen:
        seen.add(trunk)
        content = _page(file, size, trunk)
        numbers = [int.from_bytes(content[at : at + _INT], "big") for at in range(0, size, _INT)]
        yield from numbers[2 : 2 + numbers[1]]
        trunk = numbers[0]


def _page(file: _OtherProcess, size: int, number: int) -> bytes:
    file.seek((number - 1) * size)
    return file.read(size)
