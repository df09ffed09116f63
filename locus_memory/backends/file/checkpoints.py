"""Checkpoints as files: one per record, written to a temporary file, synced and renamed."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.offload import Undertaking
from locus_memory._internal.options import checked
from locus_memory.backends.file.schema import Entry
from locus_memory.backends.file.threads import BusyError, ThreadFolders, named
from locus_memory.backends.loops import LoopLocal
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import DeltaStorage, page_of
from locus_memory.errors import (
    NO_ROOM,
    BackendClosedError,
    BackendCorruptError,
    BackendTimeoutError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)

__all__ = ["FileCheckpointer", "FileDeltaStorage"]

T = TypeVar("T")

_PAUSES: Final = (0.001, 0.02)
"""The first and the longest pause between two attempts to take a lock, in seconds."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REFUSED: Final = _FULL | {errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
_MISPLACED: Final = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ELOOP})


@dataclass(eq=False, slots=True)
class _Turn:
    """The order of the writes of one event loop that need the same lock.

    Attributes:
        lock: Held by the write whose turn it is; only that one asks the operating system.
        taken_at: When one of them had the lock last.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    taken_at: float = 0.0


class FileDeltaStorage(DeltaStorage):
    """Records in a folder, safe for many tasks and processes on one machine.

    Args:
        base_dir: The folder; created at its first use.
        busy_timeout: Seconds to wait for another process that writes to the same thread, before
            `BackendTimeoutError`. A read waits for none that is suspended or slow.

    Raises:
        ConfigurationError: `busy_timeout` is negative.
    """

    @checked
    def __init__(
        self, base_dir: str | os.PathLike[str] = "./checkpoints", *, busy_timeout: float = 30.0
    ) -> None:
        if busy_timeout < 0:
            raise ConfigurationError("file: needs busy_timeout >= 0")
        self._base = Path(base_dir)
        self._busy_timeout = busy_timeout
        self._threads = ThreadFolders(self._base)
        self._turns = LoopLocal[defaultdict[Path, _Turn]]()
        self._workers = LoopLocal[ThreadPoolExecutor]()
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
        def work(entries: list[Entry]) -> RecordHead | None:
            entry = named(entries, checkpoint_id)
            return None if entry is None else self._threads.read(thread_id, entry)

        return await self._read_thread(thread_id, work)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        return await self.with_chain(thread_id, checkpoint_id, list)

    @override
    async def with_chain(
        self, thread_id: str, checkpoint_id: str | None, work: Callable[[list[Record]], T]
    ) -> T:
        def chain(entries: list[Entry]) -> list[Record]:
            return self._threads.chain(thread_id, entries, checkpoint_id)

        return await self._read_with(lambda: work(self._threads.reading(thread_id, chain)))

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        def work(entries: list[Entry]) -> list[RecordHead]:
            older = [e for e in reversed(entries) if before is None or e.sequence < before]
            return [self._threads.read(thread_id, entry) for entry in older[:limit]]

        return await self._read_thread(thread_id, work)

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        return await self._read_thread(
            thread_id, lambda entries: [entry.sequence for entry in reversed(entries)]
        )

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

    async def _read_thread(self, thread_id: str, read: Callable[[list[Entry]], T]) -> T:
        return await self._read_with(lambda: self._threads.reading(thread_id, read))

    async def _read_with(self, read: Callable[[], T]) -> T:
        def work(begin: Callable[[], None]) -> T:
            begin()
            return read()

        return await self._until_free(work, time.monotonic(), is_read=True)

    async def _write_with(self, write: Callable[[], T], *threads: str) -> T:
        """Return the result of `write`, during which nothing else writes to these threads."""
        turns = self._turns.get(partial(defaultdict, _Turn))
        mine = [turns[lock] for lock in self._threads.locks(*threads)]

        def work(begin: Callable[[], None]) -> T:
            with self._threads.locked(*threads):
                # Only now, so that a call that waits for another process can be cancelled.
                begin()
                for turn in mine:
                    turn.taken_at = time.monotonic()
                self._threads.complete(threads)
                return write()

        called_at = time.monotonic()
        async with AsyncExitStack() as stack:
            for turn in mine:
                await stack.enter_async_context(turn.lock)
            return await self._until_free(work, max([called_at, *(turn.taken_at for turn in mine)]))

    async def _until_free(
        self, work: Callable[[Callable[[], None]], T], since: float, *, is_read: bool = False
    ) -> T:
        """Return the result of `work`, attempted until no other process holds its locks.

        Between two attempts it occupies no thread.

        Args:
            work: The work of an `Undertaking`, which may raise `BusyError`.
            since: Since when it waits.
            is_read: Whether it changes nothing.

        Raises:
            BackendTimeoutError: Another process holds a lock for too long.
        """
        pause, longest = _PAUSES
        while True:
            workers = self._workers.get(partial(ThreadPoolExecutor, thread_name_prefix="file"))
            try:
                return await self._run(Undertaking(work, is_read=is_read, workers=workers))
            except BusyError as error:
                if time.monotonic() >= since + self._busy_timeout:
                    raise BackendTimeoutError(
                        f"file {self._base}: another process has had the lock of the thread for "
                        f"{self._busy_timeout:g} seconds; resume it if it is suspended, or end it"
                    ) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)

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
        busy_timeout: See `FileDeltaStorage`.
        options: See `DeltaCheckpointer`.
    """

    @checked
    def __init__(
        self,
        base_dir: str | os.PathLike[str] = "./checkpoints",
        *,
        busy_timeout: float = 30.0,
        **options: Unpack[CheckpointerOptions[StateT]],
    ) -> None:
        super().__init__(FileDeltaStorage(base_dir, busy_timeout=busy_timeout), **options)
