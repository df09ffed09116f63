"""Checkpoints as files: one a record, written aside, synced and renamed into place."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, TypeVar, Unpack
from uuid import uuid4

from typing_extensions import override

from locus_memory.backends.file.locks import locked
from locus_memory.backends.file.schema import (
    Entry,
    decode_record,
    digest,
    encode_record,
    folder_name,
    hashed_name,
    thread_name,
)
from locus_memory.checkpoint.base import UNSET, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    StaleChainError,
    chain_of,
    check_parent,
    check_replacement,
    copied,
    page_of,
)
from locus_memory.errors import (
    BackendClosedError,
    BackendUnavailableError,
    BackendWriteError,
    CheckpointConflictError,
    LocusMemoryError,
)
from locus_memory.options import checked

__all__ = ["FileCheckpointer", "FileDeltaStorage"]

T = TypeVar("T")

_LOCKS: Final = ".locks"
_COPY: Final = ".copy-"
_ASIDE: Final = ".tmp"
_STALE_SECONDS: Final = 3600.0
_REFUSED: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
)


class FileDeltaStorage(DeltaStorage):
    """Records in a folder, safe with many tasks and processes on one machine.

    Args:
        base_dir: The folder; made on first use.
    """

    @checked
    def __init__(self, base_dir: str | os.PathLike[str] = "./checkpoints") -> None:
        self._base = Path(base_dir)
        self._closed = False

    def __repr__(self) -> str:
        return f"FileDeltaStorage({str(self._base)!r})"

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        def work() -> int:
            with self._locked(record.thread_id):
                return self._store(record, expected_parent, rebased)

        return await self._run(work)

    def _store(
        self, record: Record, expected_parent: str | Unset | None, rebased: Sequence[Record]
    ) -> int:
        thread_id = record.thread_id
        entries = self._entries(thread_id)
        newest = entries[-1] if entries else None
        if expected_parent is not UNSET and (
            newest is None
            or not isinstance(expected_parent, str)
            or newest.digest != digest(expected_parent)
        ):
            known = None if newest is None else self._read(thread_id, newest).checkpoint_id
            check_parent(thread_id, expected_parent, known)
        named = digest(record.checkpoint_id)
        replaced = [entry for entry in entries if entry.digest == named]
        self._check(thread_id, entries, replaced, rebased, record.base)
        entry = Entry((newest.sequence if newest else 0) + 1, record.revision, named)
        self._folder(thread_id).mkdir(parents=True, exist_ok=True)
        self._overwrite(entries, rebased)
        self._write(entry, record)
        self._unlink(thread_id, replaced)
        return entry.sequence

    def _check(
        self,
        thread_id: str,
        entries: Sequence[Entry],
        removed: Sequence[Entry],
        rebased: Sequence[Record],
        base: int | None,
    ) -> None:
        """Raise `StaleChainError` unless the write leaves every base in place."""
        revisions = {entry.revision for entry in removed}
        if revisions or rebased:
            heads = [self._read(thread_id, entry) for entry in entries]
            check_replacement(heads, removed=revisions, rebased=rebased, base=base)
        elif base is not None and all(entry.revision != base for entry in entries):
            raise StaleChainError

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        chain = await self.retrieve_chain(thread_id, checkpoint_id)
        return chain[-1] if chain else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        def work() -> RecordHead | None:
            with self._locked(thread_id, shared=True):
                entry = _named(self._entries(thread_id), checkpoint_id)
                return None if entry is None else self._read(thread_id, entry)

        return await self._run(work)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        return await self.with_chain(thread_id, checkpoint_id, list)

    @override
    async def with_chain(
        self, thread_id: str, checkpoint_id: str | None, work: Callable[[list[Record]], T]
    ) -> T:
        return await self._run(lambda: work(self._chain(thread_id, checkpoint_id)))

    def _chain(self, thread_id: str, checkpoint_id: str | None) -> list[Record]:
        with self._locked(thread_id, shared=True):
            entries = self._entries(thread_id)
            newest = _named(entries, checkpoint_id)
            if newest is None:
                return []
            places = {entry.revision: entry for entry in entries}

            def find(revision: int) -> Record | None:
                entry = places.get(revision)
                return None if entry is None else self._read(thread_id, entry, whole=True)

            return chain_of(find, self._read(thread_id, newest, whole=True))

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        def work() -> list[RecordHead]:
            with self._locked(thread_id, shared=True):
                older = [
                    entry
                    for entry in reversed(self._entries(thread_id))
                    if before is None or entry.sequence < before
                ]
                return [self._read(thread_id, entry) for entry in older[:limit]]

        return await self._run(work)

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        def work() -> int:
            with self._locked(thread_id):
                entries = self._entries(thread_id)
                removed = [e for e in entries if revisions is None or e.revision in revisions]
                if revisions is None:
                    self._remove(thread_id, removed)
                    return len(removed)
                self._check(thread_id, entries, removed, rebased, None)
                self._overwrite(entries, rebased)
                self._unlink(thread_id, removed)
                return len(removed)

        return await self._run(work)

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        return await self._run(lambda: page_of(self._threads(), limit, prefix=prefix, after=after))

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        def work() -> int:
            with self._locked(source, target):
                if self._entries(target):
                    newest = self._read(target, self._entries(target)[-1])
                    raise CheckpointConflictError(target, None, newest.checkpoint_id)
                entries = [
                    entry
                    for entry in self._entries(source)
                    if through is None or entry.sequence <= through
                ]
                return self._copy(source, target, entries, through)

        return await self._run(work)

    @override
    async def reclaim(self) -> None:
        def work() -> None:
            for folder in filter(Path.is_dir, _listed(self._base)):
                for path in _listed(folder):
                    if path.name.startswith(".") and path.suffix == _ASIDE and _is_stale(path):
                        path.unlink(missing_ok=True)
                if folder.name.startswith(_COPY) and _is_stale(folder):
                    _discard(folder)

        await self._run(work)

    @override
    async def open(self) -> None:
        await self._run(lambda: self._base.mkdir(parents=True, exist_ok=True))

    @override
    async def close(self) -> None:
        self._closed = True

    async def _run(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise BackendClosedError(f"file {self._base}: used after close()")
        with _translated(self._base):
            return await asyncio.to_thread(work)

    @contextmanager
    def _locked(self, *threads: str, shared: bool = False) -> Generator[None]:
        """Hold the locks of these threads; always taken in one order."""
        if not shared:
            (self._base / _LOCKS).mkdir(parents=True, exist_ok=True)
        paths = {self._lock(hashlib.sha256(thread.encode()).hexdigest()) for thread in threads}
        with ExitStack() as stack:
            for path in sorted(paths):
                stack.enter_context(locked(path, shared=shared))
            yield

    def _lock(self, hashed: str) -> Path:
        # A fixed set of lock files: one that came and went with its thread would be no lock.
        return self._base / _LOCKS / f"{hashed[:2]}.lock"

    def _folder(self, thread_id: str) -> Path:
        return self._base / folder_name(thread_id)

    def _entries(self, thread_id: str) -> list[Entry]:
        """Return the thread's records, oldest first."""
        entries = _records(self._folder(thread_id))
        # A process that died while it replaced a checkpoint may have left both records.
        latest = {entry.digest: entry for entry in entries}
        return [entry for entry in entries if latest[entry.digest] is entry]

    def _read(self, thread_id: str, entry: Entry, *, whole: bool = False) -> Record:
        return decode_record(self._folder(thread_id) / entry.name, entry, thread_id, whole=whole)

    def _threads(self) -> Iterator[str]:
        for folder in _listed(self._base):
            name = thread_name(folder.name) or self._hashed_thread(folder)
            if name is not None and _records(folder):
                yield name

    def _hashed_thread(self, folder: Path) -> str | None:
        """Return the thread of a folder whose name does not tell, from one of its records."""
        hashed = hashed_name(folder.name)
        if hashed is None:
            return None
        with locked(self._lock(hashed), shared=True):
            for entry in _records(folder):
                # Where there are no locks, it may be gone by now.
                with contextlib.suppress(FileNotFoundError):
                    return decode_record(folder / entry.name, entry, None).thread_id
        return None

    def _write(self, entry: Entry, record: Record) -> None:
        """Write a record's file so that it is there whole, or not at all."""
        folder = self._folder(record.thread_id)
        aside = folder / f".{uuid4().hex}{_ASIDE}"
        try:
            _write_synced(aside, record)
            aside.replace(folder / entry.name)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        _sync_folder(folder)

    def _overwrite(self, entries: Sequence[Entry], rebased: Sequence[Record]) -> None:
        places = {entry.revision: entry for entry in entries}
        for record in rebased:
            self._write(places[record.revision], record)

    def _copy(self, source: str, target: str, entries: Sequence[Entry], through: int | None) -> int:
        """Copy records so that the target is there whole, or not at all."""
        if not entries:
            return 0
        aside, folder = self._base / f"{_COPY}{uuid4().hex}", self._folder(target)
        try:
            aside.mkdir()
            for entry in entries:
                record = self._read(source, entry, whole=True)
                _write_synced(aside / entry.name, copied(record, target, through))
            _sync_folder(aside)
            # The folder of a removed thread may have stayed, for a file that is not a record.
            for path in _listed(folder):
                path.replace(aside / path.name)
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()
            aside.replace(folder)
        except BaseException:
            _discard(aside)
            raise
        _sync_folder(self._base)
        return len(entries)

    def _remove(self, thread_id: str, entries: Sequence[Entry]) -> None:
        """Remove a thread at once, unless its folder has files that are not records."""
        folder, aside = self._folder(thread_id), self._base / f"{_COPY}{uuid4().hex}"
        if not all(map(Entry.parse, (path.name for path in _listed(folder)))):
            self._unlink(thread_id, entries)
        elif entries:
            folder.replace(aside)
            _sync_folder(self._base)
            _discard(aside)

    def _unlink(self, thread_id: str, removed: Sequence[Entry]) -> None:
        """Remove records, the newest first: what is left at any moment has its bases."""
        folder = self._folder(thread_id)
        for entry in sorted(removed, reverse=True):
            (folder / entry.name).unlink(missing_ok=True)
        if removed:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _named(entries: Sequence[Entry], checkpoint_id: str | None) -> Entry | None:
    if checkpoint_id is None:
        return entries[-1] if entries else None
    wanted = digest(checkpoint_id)
    return next((entry for entry in entries if entry.digest == wanted), None)


def _listed(folder: Path) -> list[Path]:
    """Return what is in a folder; nothing if it is gone, or no folder."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _records(folder: Path) -> list[Entry]:
    """Return the records in a folder, oldest first."""
    entries = (Entry.parse(path.name) for path in _listed(folder))
    return sorted(entry for entry in entries if entry is not None)


def _is_stale(path: Path) -> bool:
    """Whether a file or folder was left by a process that died long ago."""
    try:
        return path.stat().st_mtime < time.time() - _STALE_SECONDS
    except FileNotFoundError:
        return False


def _discard(folder: Path) -> None:
    """Remove what is out of sight; a file that is not a record stays."""
    for entry in _records(folder):
        (folder / entry.name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _write_synced(path: Path, record: Record) -> None:
    with path.open("xb") as file:
        file.write(encode_record(record))
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a rename last; not every system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _translated(base: Path) -> Generator[None]:
    """Raise the system's errors as the library's own."""
    try:
        yield
    except OSError as error:
        if isinstance(error, LocusMemoryError):
            raise
        kind = BackendWriteError if error.errno in _REFUSED else BackendUnavailableError
        raise kind(f"file {base}: {error.strerror or error}") from error


class FileCheckpointer(DeltaCheckpointer):
    """Checkpoints as files; the other options are `DeltaCheckpointer`'s.

    Args:
        base_dir: The folder; made on first use.
        options: See `DeltaCheckpointer`.
    """

    @checked
    def __init__(
        self,
        base_dir: str | os.PathLike[str] = "./checkpoints",
        **options: Unpack[CheckpointerOptions],
    ) -> None:
        super().__init__(FileDeltaStorage(base_dir), **options)
