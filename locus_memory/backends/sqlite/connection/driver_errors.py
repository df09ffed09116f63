"""The table that makes the errors of `sqlite3` the library's own."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import ExitStack
from typing import Final

from locus_memory.backends.driver_errors import DriverErrors, ErrorTable, Kind
from locus_memory.errors import (
    NO_ROOM,
    BackendCorruptError,
    BackendUnavailableError,
    BackendWriteError,
)

__all__ = ["code_names", "is_busy", "translate", "translated"]

# By the name of the extended code, else by that of the primary one it refines:
# https://www.sqlite.org/rescode.html. What is not here is a plain `BackendError`.
_CODES: Final[dict[str, Kind]] = {
    "SQLITE_BUSY": BackendUnavailableError,
    "SQLITE_CANTOPEN": BackendUnavailableError,
    "SQLITE_INTERRUPT": BackendUnavailableError,
    "SQLITE_IOERR": BackendUnavailableError,
    "SQLITE_LOCKED": BackendUnavailableError,
    "SQLITE_NOMEM": BackendUnavailableError,
    "SQLITE_PERM": BackendUnavailableError,
    "SQLITE_PROTOCOL": BackendUnavailableError,
    "SQLITE_FULL": BackendWriteError,
    "SQLITE_IOERR_DIR_FSYNC": BackendWriteError,
    "SQLITE_IOERR_FSYNC": BackendWriteError,
    "SQLITE_IOERR_SHMSIZE": BackendWriteError,
    "SQLITE_IOERR_TRUNCATE": BackendWriteError,
    "SQLITE_IOERR_WRITE": BackendWriteError,
    "SQLITE_READONLY": BackendWriteError,
    "SQLITE_TOOBIG": BackendWriteError,
    "SQLITE_CORRUPT": BackendCorruptError,
    "SQLITE_FORMAT": BackendCorruptError,
    "SQLITE_IOERR_CORRUPTFS": BackendCorruptError,
    "SQLITE_IOERR_SHORT_READ": BackendCorruptError,
    "SQLITE_NOTADB": BackendCorruptError,
}

# What SQLite says, under no code of its own, of a file that says it is ours and is not as we
# left it.
_DAMAGE: Final = (
    "already exists",
    "duplicate column name",
    "decode to UTF-8",
    "foreign key mismatch",
    "has no column named",
    "malformed JSON",
    "no such column",
    "no such table",
    "vtable constructor failed",
)

# A file that may not grow, as one on a full disk, is the second; the log's index is the third.
_FULL: Final = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")

_WORDS: Final = {"SQLITE_IOERR_SHMSIZE": "the disk has no room for the -shm file"}
"""What the codes mean whose messages do not say it."""

_NO_FILES: Final = "the process has too many files open; close some, or raise its limit (ulimit -n)"

_NEEDED: Final = 4
"""How many files a connection opens: the database, its log, the log's index, and a folder."""

_TABLE: Final = ErrorTable(
    codes=_CODES,
    phrases=dict.fromkeys(_DAMAGE, BackendCorruptError),
    remedies=dict.fromkeys(_FULL, NO_ROOM),
)

_UNDECODED: Final = "Could not decode to UTF-8 column"

# These say that the library is wrong, not the database: they must surface as they are.
_BUGS: Final = (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.NotSupportedError)


def code_names(error: sqlite3.Error) -> tuple[str, str]:
    """Return the names of an error's extended and primary result codes."""
    name: str = getattr(error, "sqlite_errorname", "") or ""
    return name, "_".join(name.split("_")[:2])


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds a lock that this one needs."""
    return code_names(error)[1] in {"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"}


def _described(error: BaseException, path: str) -> BaseException:
    if isinstance(error, UnicodeDecodeError):
        # The driver could not even read SQLite's message, which quotes the damaged schema.
        return BackendCorruptError(f"sqlite {path}: its schema is damaged")
    if not isinstance(error, sqlite3.Error) or isinstance(error, _BUGS):
        return error
    if _quotes_a_text(error):
        return BackendCorruptError(f"sqlite {path}: a stored text is not UTF-8")
    name, primary = code_names(error)
    code = f" ({name})" if name else ""
    if primary in ("SQLITE_CANTOPEN", "SQLITE_READONLY") and _lacks_files():
        return BackendUnavailableError(f"sqlite {path}: {_NO_FILES}{code}")
    message = f"sqlite {path}: {_WORDS.get(name, error)}{code}"
    return _TABLE.describe(error, message, name, primary)


def _lacks_files() -> bool:
    """Whether this process, or the system, may open no more files: SQLite does not say so."""
    with ExitStack() as stack:
        try:
            for _ in range(_NEEDED):
                stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def _quotes_a_text(error: BaseException) -> bool:
    return str(error).startswith(_UNDECODED)


_ERRORS: Final = DriverErrors(
    raised=(sqlite3.Error, UnicodeDecodeError), describe=_described, quotes=_quotes_a_text
)

translate: Final = _ERRORS.translate
translated: Final = _ERRORS.translated
