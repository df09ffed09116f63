"""The folders of threads, each with its records; a writer holds their locks.

A reader needs none: what it listed is still there once it has read it, or it reads again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

from locus_memory._internal.locks import locked
from locus_memory.backends.file import journal
from locus_memory.backends.file.folders import (
    aside_in,
    discard,
    is_folder,
    names_in,
    remove_asides,
    write_synced,
)
from locus_memory.backends.file.schema import (
    Entry,
    decode_record,
    digest,
    encode_record,
    folder_name,
    hashed_name,
    thread_name,
)
from locus_memory.backends.folders import (
    PRIVATE_FOLDER,
    make_folder,
    replace_file,
    sync_folder,
)
from locus_memory.checkpoint.base import UNSET, Unset
from locus_memory.checkpoint.record import Record
from locus_memory.checkpoint.storage import (
    StaleChainError,
    chain_of,
    check_parent,
    check_replacement,
    copied,
)
from locus_memory.errors import BackendUnavailableError, CheckpointConflictError

__all__ = ["BusyError", "ThreadFolders", "named"]

T = TypeVar("T")

_LOCKS: Final = ".locks"

_ATTEMPTS: Final = 3
"""How often a reader reads without a lock what changes meanwhile, before it takes the lock."""

_ASIDE: Final = ".aside"
"""The folder of temporary folders, each named after its lock, whose holder finds the dead ones."""


class BusyError(Exception):
    """Another process holds the lock of a thread."""


class ThreadFolders:
    """The folders of threads in one folder.

    Attributes:
        base: The folder.
        is_made: Whether the folder existed before.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.is_made = False

    def reclaim(self) -> None:
        """Delete the files that dead writers left."""
        self.discard_dead()
        for name in names_in(self.base):
            folder = self.base / name
            if is_folder(folder) and (hashed := _hash_of(name)) is not None:
                self._tidy(folder, hashed)

    def open(self) -> None:
        """Create the folder, and delete the temporary folders of dead writers."""
        make_folder(self.base, f"file {self.base}")
        self.is_made = True
        with contextlib.suppress(OSError):
            self.discard_dead()

    def delete(
        self, thread_id: str, revisions: Collection[int] | None, rebased: Sequence[Record]
    ) -> int:
        """Delete records, or a whole thread, and the files that dead writers left of it."""
        self.discard_dead(thread_id)
        remove_asides(self.folder(thread_id))
        entries = self._settled(thread_id)
        removed = [e for e in entries if revisions is None or e.revision in revisions]
        if revisions is None:
            self._remove(thread_id, removed)
        else:
            self._check(thread_id, entries, removed, rebased, None)
            self._change(thread_id, entries, rebased, removed)
        return len(removed)

    def store(
        self, record: Record, expected_parent: str | Unset | None, rebased: Sequence[Record]
    ) -> int:
        """Add a record and return its sequence; see `DeltaStorage.store`."""
        thread_id = record.thread_id
        entries = self._settled(thread_id)
        newest = entries[-1] if entries else None
        if expected_parent is not UNSET and (
            newest is None
            or not isinstance(expected_parent, str)
            or newest.digest != digest(expected_parent)
        ):
            known = None if newest is None else self.read(thread_id, newest).checkpoint_id
            check_parent(thread_id, expected_parent, known)
        named = digest(record.checkpoint_id)
        replaced = [entry for entry in entries if entry.digest == named]
        self._check(thread_id, entries, replaced, rebased, record.base)
        entry = Entry((newest.sequence if newest else 0) + 1, record.revision, named)
        if not entries:
            self.folder(thread_id).mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
            # Whoever created a folder may have died before it was durable.
            sync_folder(self.base.parent)
            sync_folder(self.base)
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
        """Raise `StaleChainError` if the write would take the base of a record away."""
        revisions = {entry.revision for entry in removed}
        if revisions or rebased:
            heads = [self.read(thread_id, entry) for entry in entries]
            check_replacement(heads, removed=revisions, rebased=rebased, base=base)
        elif base is not None and all(entry.revision != base for entry in entries):
            raise StaleChainError

    def chain(
        self, thread_id: str, entries: Sequence[Entry], checkpoint_id: str | None
    ) -> list[Record]:
        """Return the chain of a checkpoint; see `DeltaStorage.retrieve_chain`."""
        newest = named(entries, checkpoint_id)
        if newest is None:
            return []
        places = {entry.revision: entry for entry in entries}

        def find(revision: int) -> Record | None:
            entry = places.get(revision)
            return None if entry is None else self.read(thread_id, entry, whole=True)

        return chain_of(find, self.read(thread_id, newest, whole=True))

    def _tidy(self, folder: Path, hashed: str) -> None:
        """Delete the files of dead writers in a thread's folder, unless a process writes there."""
        with contextlib.suppress(BlockingIOError), locked(self._lock(hashed), wait=False):
            journal.complete(folder)
            _bury(folder, names_in(folder))
            remove_asides(folder)

    def complete(self, threads: Iterable[str]) -> None:
        """Carry out the rest of the changes that dead writers began."""
        for thread in threads:
            journal.complete(self.folder(thread))

    @contextmanager
    def locked(self, *threads: str, shared: bool = False) -> Generator[None]:
        """Hold the locks of these threads.

        Raises:
            BusyError: Another writer holds one.
        """
        if threads and not shared:
            self._check_base()
            for folder in (self.base, self.base / _LOCKS):
                folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
            self.is_made = True
        with ExitStack() as stack:
            try:
                for path in self.locks(*threads):
                    stack.enter_context(locked(path, shared=shared, wait=False))
            except BlockingIOError as error:
                raise BusyError from error
            yield

    def locks(self, *threads: str) -> list[Path]:
        """Return the lock files of threads, in the order in which they are taken."""
        return sorted({self._lock(_hash(thread)) for thread in threads})

    def _lock(self, hashed: str) -> Path:
        # A fixed set of lock files: a file created and deleted with its thread would not be a lock.
        return self.base / _LOCKS / f"{hashed[:2]}.lock"

    def _check_base(self) -> None:
        """Refuse an empty path in place of a folder that existed before.

        Raises:
            BackendUnavailableError: The folder existed before, and does not now.
        """
        if self.is_made and not self.base.is_dir():
            raise BackendUnavailableError(
                f"file {self.base}: the folder was deleted or unmounted while it was open; bring "
                "it back, or open a new checkpointer to begin with an empty one"
            )

    def folder(self, thread_id: str) -> Path:
        """Return the folder of a thread."""
        return self.base / folder_name(thread_id)

    def reading(self, thread_id: str, read: Callable[[list[Entry]], T]) -> T:
        """Return the result of `read` for the thread's records, oldest first, of one moment.

        Raises:
            BusyError: Writers change the thread all the time, and one holds its lock.
        """
        folder = self.folder(thread_id)
        for _ in range(_ATTEMPTS):
            names = names_in(folder)
            try:
                result = read(self.entries(thread_id, names))
            except Exception:
                if sorted(names) == sorted(names_in(folder)):
                    raise
            else:
                if names == (after := names_in(folder)) or sorted(names) == sorted(after):
                    return result
        with self.locked(thread_id, shared=True):
            return read(self.entries(thread_id, names_in(folder)))

    def entries(self, thread_id: str, names: Sequence[str]) -> list[Entry]:
        """Return the records among the names in the thread's folder, oldest first.

        Of two with one checkpoint id, which a process leaves that dies while it replaces a
        checkpoint, it is the later one.
        """
        if not names:
            self._check_base()
        if journal.JOURNAL not in names:
            return _latest(_records(names))
        renamed, removed = journal.planned(self.folder(thread_id)) or ({}, ())
        asides = {name: aside for aside, name in renamed.items()}
        entries = _latest(_records(set(names).difference(removed)))
        return [replace(each, aside=asides.get(each.name)) for each in entries]

    def _settled(self, thread_id: str) -> list[Entry]:
        """Return the thread's records, after the deletion of those that no reader sees."""
        names = names_in(folder := self.folder(thread_id))
        if not names:
            self._check_base()
        return _bury(folder, names)

    def read(self, thread_id: str, entry: Entry, *, whole: bool = False) -> Record:
        """Return a record, with an empty payload unless `whole` is true."""
        folder = self.folder(thread_id)
        if entry.aside is not None:
            with contextlib.suppress(FileNotFoundError):
                return decode_record(folder / entry.aside, entry, thread_id, whole=whole)
        return decode_record(folder / entry.name, entry, thread_id, whole=whole)

    def names(self) -> Iterator[str]:
        """Yield the names of all threads."""
        names = names_in(self.base)
        if not names:
            self._check_base()
        for place in names:
            folder = self.base / place
            if _hash_of(place) is None or not is_folder(folder):
                continue
            name = thread_name(place) or _hashed_thread(folder)
            if name is not None and self.entries(name, names_in(folder)):
                yield name

    def _write(self, entry: Entry, record: Record) -> None:
        """Write a record's file so that it is complete or absent."""
        folder = self.folder(record.thread_id)
        aside = aside_in(folder)
        try:
            write_synced(aside, encode_record(record))
            replace_file(aside, folder / entry.name)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        sync_folder(folder)

    def _overwrite(self, entries: Sequence[Entry], rebased: Sequence[Record]) -> None:
        places = {entry.revision: entry for entry in entries}
        for record in rebased:
            self._write(places[record.revision], record)

    def copy(self, source: str, target: str, through: int | None) -> int:
        """Copy records so that the target is complete or absent.

        Raises:
            CheckpointConflictError: The target exists.
        """
        if there := self._settled(target):
            newest = self.read(target, there[-1])
            raise CheckpointConflictError(target, None, newest.checkpoint_id)
        entries = [e for e in self._settled(source) if through is None or e.sequence <= through]
        if not entries:
            return 0
        self.discard_dead(source, target)
        aside, folder = self._aside(target), self.folder(target)
        try:
            aside.mkdir(PRIVATE_FOLDER)
            for entry in entries:
                record = self.read(source, entry, whole=True)
                content = encode_record(copied(record, target, through))
                write_synced(aside / entry.name, content)
            sync_folder(aside)
            # The folder of a deleted thread may still exist, with a file that is not a record.
            remove_asides(folder)
            for name in names_in(folder):
                (folder / name).replace(aside / name)
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()
            aside.replace(folder)
        except BaseException:
            discard(aside)
            raise
        sync_folder(self.base)
        return len(entries)

    def _aside(self, thread_id: str) -> Path:
        """Return the path of a new temporary folder for this thread."""
        (self.base / _ASIDE).mkdir(PRIVATE_FOLDER, exist_ok=True)
        return self.base / _ASIDE / f"{_hash(thread_id)[:2]}-{uuid4().hex}"

    def discard_dead(self, *mine: str) -> None:
        """Delete the temporary folders of dead writers.

        Args:
            mine: Threads whose locks are held; other locks are taken if they are free.
        """
        held = {_hash(thread_id)[:2] for thread_id in mine}
        for name in names_in(self.base / _ASIDE):
            folder = self.base / _ASIDE / name
            if name[:2] in held:
                discard(folder)
                continue
            with contextlib.suppress(BlockingIOError), locked(self._lock(name), wait=False):
                discard(folder)

    def _remove(self, thread_id: str, entries: Sequence[Entry]) -> None:
        """Delete a thread at once."""
        folder = self.folder(thread_id)
        if not all(map(Entry.parse, names_in(folder))):
            # Some files are not records.
            self._change(thread_id, entries, (), entries)
        elif entries:
            aside = self._aside(thread_id)
            folder.replace(aside)
            sync_folder(self.base)
            discard(aside)

    def _change(
        self,
        thread_id: str,
        entries: Sequence[Entry],
        rebased: Sequence[Record],
        removed: Sequence[Entry],
    ) -> None:
        """Replace some records and delete others, all or nothing."""
        if not rebased and len(removed) <= 1:
            self._unlink(thread_id, removed)
            return
        places = {entry.revision: entry.name for entry in entries}
        written = {places[record.revision]: encode_record(record) for record in rebased}
        gone = [entry.name for entry in sorted(removed, reverse=True)]
        folder = self.folder(thread_id)
        journal.change(folder, written, gone)
        with contextlib.suppress(OSError):
            folder.rmdir()

    def _unlink(self, thread_id: str, removed: Sequence[Entry]) -> None:
        """Delete records, the newest first, so that the others have their bases at any moment."""
        folder = self.folder(thread_id)
        for entry in sorted(removed, reverse=True):
            (folder / entry.name).unlink(missing_ok=True)
        if removed:
            sync_folder(folder)
            with contextlib.suppress(OSError):
                folder.rmdir()


def _bury(folder: Path, names: Iterable[str]) -> list[Entry]:
    """Delete the records that a later one of the same id hides, durably; return the others.

    It is done before any other change: without the later one they would be seen again.
    """
    entries = _records(names)
    latest = _latest(entries)
    if len(latest) < len(entries):
        for entry in set(entries).difference(latest):
            (folder / entry.name).unlink(missing_ok=True)
        sync_folder(folder)
    return latest


def _latest(entries: Sequence[Entry]) -> list[Entry]:
    """Return the last of the records of each checkpoint id, oldest first."""
    latest = {entry.digest: entry for entry in entries}
    return [entry for entry in entries if latest[entry.digest] is entry]


def _hashed_thread(folder: Path) -> str | None:
    """Return the thread of a folder with a hashed name, from one of its records."""
    while entries := _records(names_in(folder)):
        # It may be deleted by now, and others written.
        with contextlib.suppress(FileNotFoundError):
            return decode_record(folder / entries[0].name, entries[0], None).thread_id
    return None


def _hash(thread_id: str) -> str:
    return hashlib.sha256(thread_id.encode()).hexdigest()


def _hash_of(folder: str) -> str | None:
    """Return the hash of the thread with this folder name; `None`: it is not a thread's."""
    thread = thread_name(folder)
    return hashed_name(folder) if thread is None else _hash(thread)


def named(entries: Sequence[Entry], checkpoint_id: str | None) -> Entry | None:
    """Return the entry of a checkpoint, the newest for `None`."""
    if checkpoint_id is None:
        return entries[-1] if entries else None
    wanted = digest(checkpoint_id)
    return next((entry for entry in entries if entry.digest == wanted), None)


def _records(names: Iterable[str]) -> list[Entry]:
    """Return the records among the names in a folder, oldest first."""
    entries = map(Entry.parse, names)
    return sorted(entry for entry in entries if entry is not None)
