"""The threads of a SQLite file: one that writes, and a few that read."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from queue import Empty, SimpleQueue
from traceback import clear_frames
from typing import Any, Final, Literal

from locus_memory.backends.sqlite.connection.driver_errors import translate
from locus_memory.backends.sqlite.connection.opening import LOG_LIMIT, Settings, roll_back

__all__ = ["Job", "Queue", "Reader", "Writer", "dismiss", "empty_log", "end", "outcome", "rewrite"]

_BATCH: Final = 256

_LOOK_AGAIN: Final = 0.01
"""Seconds until a reader looks again whether its file is still there; a write always looks."""

_LOG_PATIENCE: Final = 2000
"""Milliseconds that others have to end their reads before the log stays; nobody writes then."""


def end(connection: sqlite3.Connection) -> None:
    """End the thread that is given this as its work."""
    del connection


def empty_log(connection: sqlite3.Connection, most: int = _LOG_PATIENCE) -> bool:
    """Fold the log into the file and empty it; return whether somebody was in the way.

    Args:
        connection: The connection of the writer.
        most: Milliseconds to wait for them.
    """
    patience = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute(f"PRAGMA busy_timeout = {min(patience, most)}")
    try:
        busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
    return bool(busy)


def rewrite(connection: sqlite3.Connection, *, in_memory: bool) -> None:
    """Write the database anew.

    Args:
        connection: The connection of the writer.
        in_memory: Whether the copy is in memory meanwhile, beyond the size of the cache of pages.
    """
    connection.execute(f"PRAGMA temp_store = {'MEMORY' if in_memory else 'FILE'}")
    try:
        connection.execute("VACUUM")
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")


Kind = Literal["read", "write", "alone"]
"""The transaction of a job: one that reads, one that is shared with other writes, or none."""


class Job:
    """Work for a thread, and the future of whoever waits for it.

    Attributes:
        work: The work; it gets a connection.
        kind: Its transaction.
        future: The outcome; to run it is to claim it, as it is for its caller to cancel it.
        result: What the work returned, before it is committed.
        error: What it raised.
    """

    __slots__ = ("error", "future", "kind", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], Any], kind: Kind) -> None:
        self.work, self.kind = work, kind
        self.future: Future[Any] = Future()
        self.result: Any = None
        self.error: BaseException | None = None

    def claim(self) -> bool:
        """Return whether it may run: nobody has cancelled it, and it has not run before."""
        return self.future.running() or (
            not self.future.done() and self.future.set_running_or_notify_cancel()
        )

    def finish(self) -> None:
        """Hand the outcome over, unless it is cancelled."""
        # A loop that is closed by now waits for nothing.
        with contextlib.suppress(RuntimeError, InvalidStateError):
            if self.error is not None:
                self.future.set_exception(self.error)
            else:
                self.future.set_result(self.result)


Queue = SimpleQueue[Job]


async def outcome(job: Job) -> Any:
    """Wait for the result of work that writes.

    Cancelled before it has begun, the work is never done; once it has begun, cancelling waits until
    it is over, so that it cannot surprise whoever comes next.
    """
    try:
        return await asyncio.wrap_future(job.future)
    except asyncio.CancelledError:
        if not job.future.cancel():
            with contextlib.suppress(Exception):
                await asyncio.wrap_future(job.future)
        raise


class Reader:
    """A thread with its own connection, fed by a queue; it holds no reference to the database.

    It runs each job in a read transaction of its own, so that it sees all writes before it.
    """

    def __init__(self, settings: Settings, jobs: Queue) -> None:
        self._settings = settings
        self._jobs = jobs
        self._connection: sqlite3.Connection | None = None
        self._keep = True
        self._look_again = 0.0

    def start(self, name: str) -> threading.Thread:
        """Start the thread; it must not keep the interpreter from ending."""
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        # No local may outlive the round: it would keep a large result alive.
        while (job := self._jobs.get()).work is not end:
            self._serve(job)
            del job
            if not self._keep:
                self._disconnect()
        self._disconnect()
        job.finish()

    def _serve(self, first: Job) -> None:
        self._answer(first)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection, self._keep = self._settings.connect()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._tidy(self._connection)
            self._connection.close()
            self._connection = None

    def _tidy(self, connection: sqlite3.Connection) -> None:
        """Leave the file in good order; the data is safe whether or not this succeeds."""

    def _answer(self, job: Job) -> None:
        """Run a job that reads, and hand its outcome over."""
        try:
            if job.claim():
                self._read(self._connected(), job)
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller
            self._fail([job], error)
        job.finish()

    def _read(self, connection: sqlite3.Connection, job: Job) -> None:
        # What is read from a file that went away this moment is still what was there.
        if (now := time.monotonic()) >= self._look_again:
            self._settings.check_file()
            self._look_again = now + _LOOK_AGAIN
        connection.execute("BEGIN")
        try:
            job.result = job.work(connection)
        except BaseException as error:
            # A cursor in its frames has an open statement, whose snapshot later reads would see.
            clear_frames(error.__traceback__)
            raise
        finally:
            roll_back(connection)

    def _fail(self, jobs: Iterable[Job], error: BaseException) -> None:
        for job in jobs:
            job.error = translate(error, self._settings.path)
            if isinstance(error, StopIteration):
                # No future of a loop holds it.
                job.error = RuntimeError("the work raised StopIteration")


class Writer(Reader):
    """Runs whatever waits to be written at one moment in one transaction.

    What waits to be read comes first: it need not wait until another process lets this one write.
    """

    def _serve(self, first: Job) -> None:
        jobs = [first]
        while len(jobs) < _BATCH and (job := self._more()) is not None:
            jobs.append(job)
        for job in jobs:
            if job.kind == "read":
                self._answer(job)
        self._write([job for job in jobs if job.kind != "read"])

    def _write(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        try:
            self._commit(self._connected(), jobs)
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of anything
            self._fail(jobs, error)
            if self._connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    roll_back(self._connection)
        for job in jobs:
            job.finish()

    def _more(self) -> Job | None:
        """Return a job that waits already, or `None`."""
        try:
            job = self._jobs.get_nowait()
        except Empty:
            return None
        if job.work is end:
            # Leave it for the loop in `_run`.
            self._jobs.put(job)
            return None
        return job

    def _commit(self, connection: sqlite3.Connection, together: list[Job]) -> None:
        waiting = [job for job in together if job.kind == "write"]
        if waiting:
            self._transact(connection, waiting)
            # A reader let it grow, and may have ended. It may also be gone: another process closed.
            with contextlib.suppress(OSError, sqlite3.Error):
                if self._settings.log_size() > LOG_LIMIT:
                    empty_log(connection, 0)
        for job in together:
            if job.kind == "alone" and job.claim():
                self._settings.check_file()
                self._run_one(connection, job)

    def _transact(self, connection: sqlite3.Connection, waiting: list[Job]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        # Only now, so that whoever waits for another process can be cancelled at once.
        jobs = [job for job in waiting if job.claim()]
        if not all(self._run_one(connection, job) for job in jobs):
            # One failed half-way. Do the others again, each where it can be undone alone;
            # savepoints are not the rule because at each of them FTS5 writes its index out.
            roll_back(connection)
            connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._run_apart(connection, job)
        # As late as can be: what is committed to a file that is gone is lost.
        self._settings.check_file()
        connection.execute("COMMIT")

    def _run_one(self, connection: sqlite3.Connection, job: Job) -> bool:
        """Run a job; return whether the transaction holds nothing of a failed one."""
        before = connection.total_changes
        try:
            job.result = job.work(connection)
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller
            self._fail([job], error)
        return job.error is None or (
            connection.in_transaction and connection.total_changes == before
        )

    def _run_apart(self, connection: sqlite3.Connection, job: Job) -> None:
        """Run a job so that its failure undoes nothing else."""
        job.error = None
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(connection)
        except BaseException as error:
            if not connection.in_transaction:
                # SQLite rolled everything back: no job of the batch is done.
                raise
            connection.execute("ROLLBACK TO job")
            self._fail([job], error)
        connection.execute("RELEASE job")

    def _tidy(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA busy_timeout = 100")
        connection.execute("PRAGMA analysis_limit = 400")
        connection.execute("PRAGMA optimize")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def dismiss(reads: Queue, writes: Queue, readers: int) -> None:
    """Tell the threads of a database that nobody holds any more to end."""
    for jobs in (*[reads] * readers, writes):
        jobs.put(Job(end, "alone"))
