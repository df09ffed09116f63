"""Checkpoints as files: one per record, written to a temporary file, synced and renamed."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.offload import Undertaking
from locus_memory._internal.options import checked
from locus_memory.backends.file.threads import ThreadFolders, UnfinishedError, named
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import DeltaStorage, page_of
from locus_memory.errors import (
    NO_ROOM,
    BackendClosedError,
    BackendCorruptError,
    BackendUnavailableError,
    BackendWriteError,
    LocusMemoryError,
)

__all__ = ["FileCheckpointer", "FileDeltaStorage"]

T = TypeVar("T")

_ATTEMPTS: Final = 5
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REFUSED: Final = _FULL | {errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
_MISPLACED: Final = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ELOOP})


class FileDeltaStorage(DeltaStorage):
    """Records in a folder, safe for many tasks and processes on one machine.

    Args:
        base_dir: The folder; created at its first use.
    """

    @checked
    def __init__(self, base_dir: str | os.PathLike[str] = "./checkpoints") -> None:
        self._base = Path(base_dir)
        self._threads = ThreadFolders(self._base)
        self._closed = False
        self._running: set[Future[None]] = set()

    def __repr__(self) -> str:
        return f"FileDeltaStorage({str(self._base)!r})"

    @property
    @override
    def place(self) -> str:
        return str(self._base)

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        return await self._write_with(
            lambda: self._threads.store(record, expected_parent, rebased), record.thread_id
        )

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        chain = await self.retrieve_chain(thread_id, checkpoint_id)
        return chain[-1] if chain else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        def work() -> RecordHead | None:
            entry = named(self._threads.entries(thread_id), checkpoint_id)
            return None if entry is None else self._threads.read(thread_id, entry)

        return await self._read_with(work, thread_id)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        return await self.with_chain(thread_id, checkpoint_id, list)

    @override
    async def with_chain(
        self, thread_id: str, checkpoint_id: str | None, work: Callable[[list[Record]], T]
    ) -> T:
        def read() -> list[Record]:
            return self._threads.chain(thread_id, checkpoint_id)

        reading = self._reading(read, [thread_id])
        return await self._run(Undertaking(lambda begin: work(reading(begin)), is_read=True))

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        def work() -> list[RecordHead]:
            older = [
                entry
                for entry in reversed(self._threads.entries(thread_id))
                if before is None or entry.sequence < before
            ]
            return [self._threads.read(thread_id, entry) for entry in older[:limit]]

        return await self._read_with(work, thread_id)

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        def work() -> list[int]:
            return [entry.sequence for entry in reversed(self._threads.entries(thread_id))]

        return await self._read_with(work, thread_id)

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        return await self._write_with(
            lambda: self._threads.delete(thread_id, revisions, rebased), thread_id
        )

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        return await self._read_with(
            lambda: page_of(self._threads.names(), limit, prefix=prefix, after=after)
        )

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        return await self._write_with(
            lambda: self._threads.copy(source, target, through), source, target
        )

    @override
    async def reclaim(self) -> None:
        await self._write_with(self._threads.reclaim)

    @override
    async def open(self) -> None:
        await self._write_with(self._threads.open)

    @override
    async def close(self) -> None:
        """Wait for running work, also that of cancelled calls."""
        self._closed = True
        for running in list(self._running):
            await asyncio.wrap_future(running)

    async def _read_with(self, read: Callable[[], T], *threads: str) -> T:
        """Return the result of `read`, during which no process writes to these threads."""
        return await self._run(Undertaking(self._reading(read, threads), is_read=True))

    def _reading(
        self, read: Callable[[], T], threads: Sequence[str]
    ) -> Callable[[Callable[[], None]], T]:
        """Return the work of a read, which first completes the changes of dead writers."""

        def work(begin: Callable[[], None]) -> T:
            begin()
            for _ in range(_ATTEMPTS):
                try:
                    with self._threads.locked(*threads, shared=True):
                        return read()
                except UnfinishedError:
                    with self._threads.locked(*threads):
                        self._threads.complete(threads)
            raise BackendUnavailableError(
                f"file {self._base}: other processes change the thread; retry"
            )

        return work

    async def _write_with(self, write: Callable[[], T], *threads: str) -> T:
        """Return the result of `write`, during which nothing else reads or writes these threads."""

        def work(begin: Callable[[], None]) -> T:
            with self._threads.locked(*threads):
                # Only now, so that a call that waits for another process can be cancelled.
                begin()
                self._threads.complete(threads)
                return write()

        return await self._run(Undertaking(work))

    async def _run(self, undertaking: Undertaking[T]) -> T:
        if self._closed:
            raise BackendClosedError(f"file {self._base}: used after close()")
        self._running.add(undertaking.over)
        undertaking.over.add_done_callback(self._running.discard)
        with _translated(self._base, is_read=undertaking.is_read):
            return await undertaking.result()


@contextmanager
def _translated(base: Path, *, is_read: bool) -> Generator[None]:
    """Translate the errors of the operating system into those of the library."""
    try:
        yield
    except OSError as error:
        if isinstance(error, LocusMemoryError):
            raise
        where = error.filename if isinstance(error.filename, str) else base
        if error.errno in _MISPLACED:
            raise BackendCorruptError(
                f"file {where}: {error.strerror}: something else is in the place of a folder or "
                "file of the backend; move it away"
            ) from error
        refused = error.errno in _REFUSED and not is_read
        kind = BackendWriteError if refused else BackendUnavailableError
        remedy = f"; {NO_ROOM}" if error.errno in _FULL else ""
        raise kind(f"file {where}: {error.strerror or error}{remedy}") from error


class FileCheckpointer(DeltaCheckpointer[StateT]):
    """Checkpoints as files; the other options are `DeltaCheckpointer`'s.

    Args:
        base_dir: The folder; created at its first use.
        options: See `DeltaCheckpointer`.
    """

    @checked
    def __init__(
        self,
        base_dir: str | os.PathLike[str] = "./checkpoints",
        **options: Unpack[CheckpointerOptions[StateT]],
    ) -> None:
        super().__init__(FileDeltaStorage(base_dir), **options)
