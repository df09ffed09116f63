"""Opening a SQLite file: its identity, its settings and its migrations."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from locus_memory.backends.folders import create_private, make_folder
from locus_memory.backends.sqlite.connection.driver_errors import code_names, is_busy
from locus_memory.backends.sqlite.connection.strangers import check_schema
from locus_memory.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS
from locus_memory.backends.sqlite.search.filters import register_functions
from locus_memory.errors import (
    BackendCorruptError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
)

__all__ = ["LOG_LIMIT", "MEMORY", "Identity", "Settings", "readable_version", "roll_back"]

MEMORY: Final = ":memory:"

LOG_LIMIT: Final = 16 * 2**20
"""Bytes of the write-ahead log that stay when it is empty; a reader may let it grow beyond them."""

_TABLE_COUNT: Final = "SELECT count(*) FROM sqlite_master"
_RETRY_SECONDS: Final = 0.005

_CREATION: Final = threading.Lock()
"""Held while a file is created: closing it would end the locks of another connection on it."""

Identity = tuple[int, int]
"""The device and inode of a file, unique at one moment."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a thread that opens a connection.

    Attributes:
        path: The file.
        busy_timeout: Seconds to wait for others.
        synchronous: See `SQLiteDatabase`.
        opened: Which file it was when the first thread opened it.
        connected: Set once a thread has opened it.
    """

    path: str
    busy_timeout: float
    synchronous: str
    opened: list[Identity] = field(default_factory=list)
    connected: threading.Event = field(default_factory=threading.Event)

    @property
    def file(self) -> Path:
        """The path as an object."""
        return Path(self.path)

    def connect(self) -> tuple[sqlite3.Connection, bool]:
        """Return a connection to an up-to-date file, and whether it may be kept open."""
        connection, is_kept = self._connection()
        self.connected.set()
        return connection, is_kept

    def _connection(self) -> tuple[sqlite3.Connection, bool]:
        if self.path == MEMORY:
            return self._prepared(MEMORY), True
        self.check_file()
        self._make_parents()
        connection, is_kept = self._connection_to_file()
        # Windows lets nobody take away a file that is open.
        if not self.opened and sys.platform != "win32":
            self.opened.append(self._identity())
        return connection, is_kept

    def _connection_to_file(self) -> tuple[sqlite3.Connection, bool]:
        deadline = time.monotonic() + self.busy_timeout
        with _CREATION:
            create_private(self.file)
        while True:
            try:
                return self._prepared(f"{self.file.as_uri()}?mode=rwc"), True
            except sqlite3.OperationalError as error:
                if self._only_readable(error):
                    return self._prepared(f"{self.file.as_uri()}?mode=ro&immutable=1"), False
                # Switching to WAL fails at once, whatever the timeout, when others open too.
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)

    def check_file(self) -> None:
        """Refuse a path that leads elsewhere than when it was first opened.

        Raises:
            BackendUnavailableError: What is read and written there nobody will find any more.
        """
        if not self.opened:
            return
        try:
            found = self._identity()
        except FileNotFoundError:
            found = None
        if found != self.opened[0]:
            what = "deleted or moved" if found is None else "replaced by another"
            raise BackendUnavailableError(
                f"sqlite {self.path}: the file was {what} while it was open, so nothing is read "
                "from it or written to it any more; put it back, or close this store and make a "
                "new one to use what is there now"
            )

    def log_size(self) -> int:
        """Return the bytes of the write-ahead log.

        Raises:
            OSError: There is none, as beside a file that nobody has written yet.
        """
        return os.stat(f"{self.path}-wal").st_size  # noqa: PTH116 - after each write: it is faster

    def _identity(self) -> Identity:
        found = os.stat(self.path)  # noqa: PTH116 - once a transaction, and twice as fast
        return found.st_dev, found.st_ino

    def _make_parents(self) -> None:
        try:
            make_folder(self.file.parent, f"sqlite {self.path}")
        except OSError as error:
            raise BackendUnavailableError(
                f"sqlite {self.path}: cannot make its folder: {error.strerror}"
            ) from error

    def _only_readable(self, error: sqlite3.Error) -> bool:
        """Whether the file is whole and readable, but the files of its WAL cannot be made."""
        refused = code_names(error)[1] in {"SQLITE_CANTOPEN", "SQLITE_READONLY"}
        if not refused or not os.access(self.path, os.R_OK) or not self.file.is_file():
            return False
        try:
            logged = Path(f"{self.path}-wal").exists() and self.log_size()
            return self.file.stat().st_size > 0 and not logged
        except OSError:
            return False

    def _prepared(self, target: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            target,
            timeout=self.busy_timeout,
            isolation_level=None,
            cached_statements=256,
            uri=target != MEMORY,
        )
        try:
            register_functions(connection)
            # Not every SQLite is built with it: what is deleted is overwritten.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(f"PRAGMA synchronous = {self.synchronous}")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -16384")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT}")
            with _snapshot(connection):
                version = readable_version(connection, self.path)
                check_schema(connection, self.path, version)
            if version != len(MIGRATIONS):
                _migrate(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Generator[None]:
    """Let all queries see one state of the file: another process may make its tables in between."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        roll_back(connection)


def readable_version(connection: sqlite3.Connection, path: str) -> int:
    """Return how many migrations the file has had; 0 for an empty one.

    Raises:
        BackendCorruptError: It is somebody else's file.
        ConfigurationError: A newer locus_memory wrote it.
    """
    with _snapshot(connection):
        version = _number(connection, "PRAGMA user_version")
        owner = _number(connection, "PRAGMA application_id")
        has_tables = bool(_number(connection, _TABLE_COUNT))
    empty = version == 0 and owner == 0 and not has_tables
    if owner == APPLICATION_ID and version == 0 and has_tables:
        raise BackendCorruptError(
            f"sqlite {path}: its tables are there, and it does not say of which version they are; "
            "restore it from a backup, or set PRAGMA user_version to that version"
        )
    if owner != APPLICATION_ID and not empty:
        raise BackendCorruptError(f"sqlite {path}: this database belongs to another program")
    if version > len(MIGRATIONS):
        raise ConfigurationError(
            f"sqlite {path}: a newer locus_memory wrote this file (schema {version}, "
            f"this one knows {len(MIGRATIONS)}); upgrade locus-memory"
        )
    return version


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the file up to date; safe when others try at the same time.

    Raises:
        BackendWriteError: An earlier locus_memory wrote it, and nobody may write to it here.
    """
    try:
        _write_tables(connection, path)
    except sqlite3.OperationalError as error:
        version = readable_version(connection, path)
        if version and code_names(error)[1] == "SQLITE_READONLY":
            raise BackendWriteError(
                f"sqlite {path}: an earlier locus_memory wrote this file (schema {version}, this "
                f"one reads {len(MIGRATIONS)}), and it is read-only here; open it once where it "
                "can be written, or open a copy"
            ) from error
        raise


def _write_tables(connection: sqlite3.Connection, path: str) -> None:
    # Only an empty file takes this; it lets removed checkpoints give their pages back.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.create_function("locus_code", 1, _code, deterministic=True)
        for statements in MIGRATIONS[readable_version(connection, path) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def _code(vector: object) -> bytes:
    """Return the code of a vector of a file that had none."""
    from locus_memory.backends.sqlite.search.codes import code_of  # noqa: PLC0415 - loads numpy

    return code_of(vector)


def roll_back(connection: sqlite3.Connection) -> None:
    """End the transaction, if there is one: a full disk may have rolled back already."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
