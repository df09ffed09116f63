"""Backups of a SQLite file: a copy of one moment, while others read and write.

SQLite's own backup reads all pages in one transaction: https://www.sqlite.org/backup.html. A copy
is checked before it gets its name, and a backup before it is restored. A new file is readable by
its owner alone; one that replaces another gets its mode.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from locus_memory.backends.folders import (
    PRIVATE_FOLDER,
    create_private,
    publish,
    sync_folder,
)
from locus_memory.backends.sqlite.connection.driver_errors import translated
from locus_memory.backends.sqlite.connection.opening import readable_version
from locus_memory.backends.sqlite.connection.strangers import check_schema
from locus_memory.backends.sqlite.connection.strangers import strip as strip_schema
from locus_memory.errors import (
    BackendCorruptError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
)

__all__ = ["BackupReport", "backup", "restore"]

_TIMEOUT: Final = 30.0
"""Seconds to wait for a lock."""

_BESIDE: Final = ("-wal", "-shm", "-journal")
"""The ends of the names of the files that belong to a database."""


@dataclass(frozen=True, slots=True)
class BackupReport:
    """The result of a backup, or of its restoration.

    Attributes:
        path: The file that was written.
        size: Its bytes.
        items: The number of its items, expired ones included.
        checkpoints: The number of its checkpoints.
        aside: The damaged file that was in its place, renamed; `None`: there was none.
    """

    path: str
    size: int
    items: int
    checkpoints: int
    aside: str | None = None


async def backup(
    source: str | os.PathLike[str], path: str | os.PathLike[str], *, overwrite: bool = False
) -> BackupReport:
    """Copy a database to one file, and check the copy.

    Other processes may read and write meanwhile; the copy is the database of one moment. It has its
    name only once it is complete and intact.

    Args:
        source: The file of the database.
        path: The file of the backup.
        overwrite: Whether to replace a file.

    Raises:
        ConfigurationError: The file of the backup exists, or is the database itself.
        BackendUnavailableError: There is no database.
        BackendCorruptError: The database is damaged, or is not of this library.
        BackendWriteError: The file cannot be written.
    """
    return await asyncio.to_thread(_backup, Path(source), Path(path), overwrite=overwrite)


async def restore(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    strip: bool = False,
) -> BackupReport:
    """Replace a database by a backup, after the backup was checked.

    The replacement is one transaction: if it is interrupted, the database is as it was before.
    Other processes may have the database open. A file that is no database any more is renamed.

    Args:
        path: The file of the backup.
        target: The file of the database.
        overwrite: Whether to replace a database.
        strip: Whether to leave out tables, views, triggers and indexes that are not ours.

    Raises:
        ConfigurationError: The database exists, or is the backup itself.
        BackendUnavailableError: There is no backup, or others hold the database locked.
        BackendCorruptError: The backup is damaged or not of this library, or has something else
            in its schema, which `strip` would leave out; a table of ours that was changed stays.
        BackendWriteError: The file cannot be written.
    """
    return await asyncio.to_thread(
        _restore, Path(path), Path(target), overwrite=overwrite, is_stripped=strip
    )


def _backup(source: Path, path: Path, *, overwrite: bool) -> BackupReport:
    _check_places(source, path, overwrite=overwrite)
    with _reading(source) as connection:
        return _copied(connection, path, journal="DELETE")


def _restore(path: Path, target: Path, *, overwrite: bool, is_stripped: bool) -> BackupReport:
    _check_places(path, target, overwrite=overwrite)
    # A database without a name is a temporary file.
    with _reading(path) as given, closing(sqlite3.connect("")) as copy:
        connection = copy if is_stripped else given
        if is_stripped:
            _copy(given, copy)
            strip_schema(copy, readable_version(copy, str(path)))
        _check(connection, path)
        check_schema(
            connection, str(path), readable_version(connection, str(path)), allows_others=False
        )
        if not target.exists():
            return _copied(connection, target, journal="WAL")
        try:
            with translated(str(target)), closing(_connect(target, "rw")) as other:
                _copy(connection, other)
                return _report(other, target)
        except BackendCorruptError:
            aside = _set_aside(target)
        report = _copied(connection, target, journal="WAL")
        target.chmod(Path(aside).stat().st_mode)
        return BackupReport(report.path, report.size, report.items, report.checkpoints, aside)


def _check_places(source: Path, path: Path, *, overwrite: bool) -> None:
    if not source.is_file():
        raise BackendUnavailableError(f"sqlite {source}: there is no such file")
    if path.exists():
        if path.samefile(source):
            raise ConfigurationError(f"{path} is the source itself: name another file")
        if not overwrite:
            raise ConfigurationError(f"{path} exists: name another file, or pass --force")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, timeout=_TIMEOUT, isolation_level=None, uri=True)


@contextmanager
def _reading(path: Path) -> Generator[sqlite3.Connection]:
    """Yield a connection to a database of this library.

    Raises:
        BackendCorruptError: It is none.
    """
    with translated(str(path)), closing(_connect(path, "ro")) as connection:
        if not readable_version(connection, str(path)):
            raise BackendCorruptError(f"sqlite {path}: it has no tables of this library")
        yield connection


def _copied(connection: sqlite3.Connection, path: Path, *, journal: str) -> BackupReport:
    """Copy a database to a file that has its name once it is complete and intact.

    Args:
        connection: The database.
        path: The file to create or replace.
        journal: `DELETE` for a backup, which is one file without a log; `WAL` for a database.
    """
    partial = path.with_name(f"{path.name}.part-{os.getpid()}")
    made = [folder for folder in path.absolute().parents if not folder.exists()]
    try:
        path.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        create_private(partial)
        with closing(_connect(partial, "rwc")) as other:
            _copy(connection, other)
            other.execute(f"PRAGMA journal_mode = {journal}")
            _check(other, path)
            report = _report(other, path)
        publish(partial, path)
        for folder in made:
            sync_folder(folder.parent)
    except OSError as error:
        raise BackendWriteError(f"sqlite {path}: {error.strerror}") from error
    finally:
        for end in ("", *_BESIDE):
            with suppress(OSError):
                Path(f"{partial}{end}").unlink()
    return report


def _copy(connection: sqlite3.Connection, other: sqlite3.Connection) -> None:
    # All pages in one step: otherwise each write of another process would start it over.
    connection.backup(other, pages=-1)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `BackendCorruptError` unless SQLite finds the file intact."""
    [(found,), *_] = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if found != "ok":
        raise BackendCorruptError(f"sqlite {path}: {found}")


def _report(connection: sqlite3.Connection, path: Path) -> BackupReport:
    [pages], [size] = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
    )
    [items], [checkpoints] = (
        connection.execute(query).fetchone()
        for query in ("SELECT count(*) FROM items", "SELECT count(*) FROM checkpoints")
    )
    return BackupReport(str(path), pages * size, items, checkpoints)


def _set_aside(target: Path) -> str:
    """Rename a file that is no database any more, with the files beside it; return the name."""
    number = 1
    while (aside := Path(f"{target}.damaged-{number}")).exists():
        number += 1
    for end in (*_BESIDE, ""):
        with suppress(FileNotFoundError):
            Path(f"{target}{end}").rename(f"{aside}{end}")
    return str(aside)
