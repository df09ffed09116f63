"""One SQLite file, used from dedicated threads: one that writes and a few that read.

A connection is made, used and closed on its own thread. Whatever waits to be written at
one moment shares one transaction, so many small writes cost few commits. SQLite itself
keeps several processes on one file apart.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Literal, TypeVar

from locus_memory._internal.options import checked
from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import warn_unless_closed
from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.backends.base import SharedConnection
from locus_memory.backends.sqlite.connection.driver_errors import translated
from locus_memory.backends.sqlite.connection.opening import MEMORY, Settings
from locus_memory.backends.sqlite.connection.pool import (
    Job,
    Queue,
    Reader,
    Writer,
    dismiss,
    empty_log,
    end,
    outcome,
    rewrite,
)
from locus_memory.errors import BackendClosedError, BackendError, ConfigurationError
from locus_memory.events import emit

__all__ = ["SQLiteDatabase", "translated"]

T = TypeVar("T")

_LOG_KEPT: Final = (
    "somebody reads: the -wal file keeps what was deleted until the next compact() or close()"
)


class SQLiteDatabase(SharedConnection):
    """A SQLite file (or `":memory:"`) that any number of tasks, loops and processes share.

    It opens on first use, makes the file and its folder if they are missing, and brings the
    tables up to date. A reader whose folder cannot be written still reads.

    Args:
        path: The file, or `":memory:"`.
        readers: How many reads may run at the same time.
        busy_timeout: Seconds to wait for another process before `BackendUnavailableError`.
        synchronous: `"normal"` keeps every acknowledged write when the process is killed;
            `"full"` also when the machine loses power, at the price of an fsync a commit.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    @checked
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        readers: int = 2,
        busy_timeout: float = 30.0,
        synchronous: Literal["normal", "full"] = "normal",
    ) -> None:
        self.path = self.place = os.fspath(path)
        if not self.path or "\0" in self.path:
            raise ConfigurationError(f"sqlite: {quote(self.path)} is not the path of a file")
        if readers < 1 or busy_timeout < 0:
            raise ConfigurationError("sqlite: needs readers >= 1 and busy_timeout >= 0")
        if synchronous not in ("normal", "full"):
            raise ConfigurationError(
                f"sqlite: synchronous is 'normal' or 'full', not {quote(synchronous)}"
            )
        absolute = self.path if self.path == MEMORY else str(Path(self.path).absolute())
        self._settings = Settings(absolute, busy_timeout, synchronous)
        self._reads: Queue = SimpleQueue()
        self._writes: Queue = SimpleQueue()
        self._max_readers = readers
        self._readers: list[threading.Thread] = []
        self._writers: list[threading.Thread] = []
        self._reading = 0
        self._closed = False
        self._lock = threading.Lock()
        self._process: int | None = None
        self._finalizer = weakref.finalize(self, dismiss, self._reads, self._writes, readers)
        self._finalizer.atexit = False
        self._warning: weakref.finalize[..., Any] | None = None
        POOLS.add(self, f"sqlite {self.path}")

    def use(self) -> PoolUse:
        """Return the use of the connections that read; one more writes."""
        used = min(self._reading, len(self._readers))
        idle = len(self._readers) - used
        return PoolUse(used, idle, self._max_readers, self._reading - used)

    async def open(self) -> None:
        """Open the file and bring its tables up to date now, rather than on first use.

        Raises:
            BackendUnavailableError: It cannot be opened, or stayed locked.
            BackendCorruptError: It is damaged, or not one of ours.
            ConfigurationError: A newer locus_memory wrote it.
        """
        await self.read(lambda _: None)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` inside one consistent snapshot, and return its result.

        Args:
            work: It reads, on a thread for readers; the data in memory have one connection, and it
                reads between two writes.

        Raises:
            BackendError: SQLite failed; see `locus_memory.errors`.
        """
        if self._settings.path == MEMORY:
            return await self._put(Job(work, "read"))  # type: ignore[no-any-return] # as below
        job = Job(work, "read")
        with self._lock:
            self._admit()
            self._reading += 1
            if len(self._readers) < min(self._reading, self._max_readers):
                reader = Reader(self._settings, self._reads)
                self._readers.append(reader.start("locus-memory-sqlite-reader"))
            # A cancelled read keeps its thread busy for a while yet: let it count until then.
            job.future.add_done_callback(self._end_read)
            self._reads.put(job)
        return await asyncio.wrap_future(job.future)

    def _end_read(self, over: Future[Any]) -> None:
        del over
        with self._lock:
            self._reading -= 1

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the writer thread, inside a write transaction, and return its result.

        The transaction is shared with whatever else waits; if `work` raises, only what it did
        itself is undone. It may run a second time, if other work fails: let it change nothing
        but the database. The result is there once the transaction is committed.

        Raises:
            BackendError: SQLite failed, and nothing of `work` is kept.
        """
        return await self._put(Job(work, "write"))  # type: ignore[no-any-return] # see above

    async def _put(self, job: Job) -> Any:
        """Run a job on the thread that writes, and return its result."""
        with self._lock:
            self._admit()
            if not self._writers:
                writer = Writer(self._settings, self._writes)
                self._writers.append(writer.start("locus-memory-sqlite-writer"))
            self._writes.put(job)
        return await outcome(job)

    async def rewrite(self) -> None:
        """Write the file anew, so that it keeps no byte and no page of what is gone.

        It takes free space of the size of the file beside it and in the folder for temporary files.
        Other writers wait meanwhile, those of another process for their `busy_timeout`.

        Raises:
            BackendError: SQLite failed, for instance because a disk is full; nothing is lost.
        """
        in_memory = self._settings.path == MEMORY
        await self._put(Job(partial(rewrite, in_memory=in_memory), "alone"))
        await self.empty_log()

    async def empty_log(self) -> None:
        """Fold the write-ahead log into the file and empty it, so that it keeps no old page.

        Somebody who reads at this moment may need it: then it stays, and the event
        `sqlite.log_kept` says so.

        Raises:
            BackendError: SQLite failed.
        """
        busy = await self._put(Job(empty_log, "alone"))
        if busy:
            emit("sqlite.log_kept", path=self.path, reason=_LOG_KEPT)

    async def close(self) -> None:
        """Finish what was asked for and release the file; calling it again is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._warning is not None:
            self._warning.detach()
        if not self._finalizer.detach() or self._process != os.getpid():
            return
        # The writer goes last: nobody reads any more when it folds the log into the file.
        await self._stop(self._reads, self._readers)
        await self._stop(self._writes, self._writers)

    @staticmethod
    async def _stop(jobs: Queue, threads: list[threading.Thread]) -> None:
        endings = [Job(end, "alone") for _ in threads]
        for ending in endings:
            jobs.put(ending)
        for ending in endings:
            await asyncio.wrap_future(ending.future)
        # Their connections are closed: what is left of them takes no time.
        for thread in threads:
            thread.join()

    def _admit(self) -> None:
        if self._closed:
            raise BackendClosedError(f"sqlite {self.path}: used after close()")
        if self._process is None:
            self._process = os.getpid()
            self._warning = warn_unless_closed(
                self, f"sqlite {self.path}", self._settings.connected.is_set
            )
        elif self._process != os.getpid():
            # SQLite's own bookkeeping does not survive a fork, whoever opens the file then:
            # https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
            raise BackendError(
                f"sqlite {self.path}: opened before fork(); open it in the child process only, "
                "or start the child with 'spawn'"
            )
