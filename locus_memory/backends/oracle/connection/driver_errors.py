"""The table that translates the errors of oracledb and of the server to the library's own."""

from __future__ import annotations

from typing import Final

from locus_memory.backends.driver_errors import DriverErrors, ErrorTable
from locus_memory.backends.oracle.connection.driver import DRIVER_ERRORS, DriverError, code_of
from locus_memory.errors import (
    NO_ROOM,
    BackendClosedError,
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)

__all__ = [
    "NO_PARENT",
    "NULL_GUARD",
    "NULL_GUARD_IN_UPDATE",
    "TABLE",
    "UNIQUE_VIOLATED",
    "is_lost",
    "is_readable_again",
    "is_repeatable",
    "translate",
    "translated",
]

UNIQUE_VIOLATED: Final = "ORA-00001"
NULL_GUARD: Final = "ORA-01400"
NULL_GUARD_IN_UPDATE: Final = "ORA-01407"
NO_PARENT: Final = "ORA-02291"

_TO_UNAVAILABLE: Final = (
    # The driver: not connected, pool empty, connection closed, call timeout, idle too long.
    *("DPY-1001", "DPY-4005", "DPY-4011", "DPY-4024", "DPY-4033"),
    # The listener: it refuses, does not know the service yet, does not answer.
    *("DPY-6000", "DPY-6001", "DPY-6003", "DPY-6004", "DPY-6005", "DPY-6006"),
    # Sessions or processes are used up; resource busy; deadlock; a session is killed.
    *("ORA-00018", "ORA-00020", "ORA-00054", "ORA-00060", "ORA-00061", "ORA-02049"),
    # Cancelled by the user of the database, or by a limit of its resource manager.
    *("ORA-01013", "ORA-02391", "ORA-02399"),
    # It starts, stops, is mounted only, or is not there.
    *("ORA-01033", "ORA-01034", "ORA-01035", "ORA-01090", "ORA-01109", "ORA-03111", "ORA-12203"),
    *("ORA-04021", "ORA-04031", "ORA-08177", "ORA-30006", "ORA-12500", "ORA-12502", "ORA-12505"),
    *("ORA-12514", "ORA-12516", "ORA-12518", "ORA-12519", "ORA-12520", "ORA-12526", "ORA-12528"),
    *("ORA-12541", "ORA-12543", "ORA-12545", "ORA-12560", "ORA-12571", "ORA-12757", "ORA-12170"),
    *("ORA-25408", "ORA-27102", "ORA-43610"),
    # What the statement is to read was overwritten meanwhile: the undo, or a graph of vectors.
    *("ORA-01555", "ORA-51815"),
)
_TO_CONFIGURATION: Final = (
    # No such alias, no credentials, no file of names or wallet, a string that cannot be read.
    *("DPY-2018", "DPY-2029", "DPY-2049", "DPY-2059", "DPY-4000", "DPY-4001", "DPY-4017"),
    *("DPY-4018", "DPY-4021", "DPY-4022", "DPY-4026", "DPY-4027", "DPY-4028", "DPY-4030"),
    *("DPY-4032", "DPY-6002", "DPY-6008", "DPY-6009"),
    # The database, its verifier of the password, or its character set is too old.
    *("DPY-3010", "DPY-3012", "DPY-3015", "DPY-3016", "DPY-3040"),
    # User or password, no password, locked, expired, no right to connect, no such edition.
    *("ORA-01017", "ORA-01004", "ORA-01045", "ORA-28000", "ORA-28001", "ORA-28007", "ORA-28009"),
    *("ORA-38801", "ORA-38802", "ORA-01918"),
)
_TO_WRITE: Final = (
    # The quota, the tablespace, the undo, the archive or the memory of vectors is full.
    *("ORA-01536", "ORA-01552", "ORA-01628", "ORA-01631", "ORA-01632", "ORA-01650", "ORA-01652"),
    *("ORA-01653", "ORA-01654", "ORA-01655", "ORA-01658", "ORA-01683", "ORA-01685", "ORA-01688"),
    *("ORA-01691", "ORA-01692", "ORA-01693", "ORA-01694", "ORA-12953", "ORA-12954", "ORA-19809"),
    *("ORA-00257", "ORA-30036"),
)
_TO_READ_ONLY: Final = ("ORA-00372", "ORA-01456", "ORA-16000", "ORA-12081", "ORA-51928")
_TO_CORRUPT: Final = (
    # A table, a column, a sequence or an index is not there, or a block is damaged.
    *("ORA-00904", "ORA-00942", "ORA-01418", "ORA-01502", "ORA-01578", "ORA-02289", "ORA-04043"),
    *("ORA-08102", "ORA-08103", "ORA-26040"),
)

TABLE: Final = ErrorTable(
    codes={
        **dict.fromkeys(_TO_UNAVAILABLE, BackendUnavailableError),
        **dict.fromkeys(_TO_CONFIGURATION, ConfigurationError),
        **dict.fromkeys((*_TO_WRITE, *_TO_READ_ONLY), BackendWriteError),
        **dict.fromkeys(_TO_CORRUPT, BackendCorruptError),
        "DPY-1002": BackendClosedError,
        "DPY-1005": BackendUnavailableError,
    },
    classes={OSError: BackendUnavailableError, DriverError: BackendError},
    remedies={
        **dict.fromkeys(_TO_WRITE, NO_ROOM),
        "ORA-01031": "the user needs CREATE TABLE and CREATE SEQUENCE, and a quota",
        "ORA-01950": "the user needs a quota on its tablespace",
        "ORA-51928": "this release refuses writes beside an HNSW index: drop the index, "
        "and pass vector_index='ivf'",
        "DPY-4001": "write oracle:user:password@..., or pass user= and password=",
        "DPY-4026": "pass config_dir=, the folder of tnsnames.ora and of the wallet",
        "DPY-4027": "pass config_dir=, the folder of tnsnames.ora and of the wallet",
    },
)
"""By the code of the server or the driver: https://docs.oracle.com/en/error-help/db/ and
https://python-oracledb.readthedocs.io/en/latest/user_guide/exception_handling.html. A code that is
not here is a plain `BackendError`."""

_LOST: Final = frozenset({"DPY-1001", "DPY-4011", "DPY-4033"})
_REPEATABLE: Final = frozenset({"ORA-00060", "ORA-08177"})
_OVERWRITTEN: Final = frozenset({"ORA-01555", "ORA-51815"})


def _described(error: BaseException, where: str) -> LocusMemoryError:
    """Describe an error by its code and the first words: the rest may quote a value."""
    if isinstance(error, DriverError):
        code = code_of(error)
        words = "" if _quotes(error) else _words(error)
        message = f"{where}: {words} ({code})" if words and code else f"{where}: {words or code}"
        return TABLE.describe(error, message, code)
    if isinstance(error, TimeoutError):
        return BackendUnavailableError(f"{where}: no answer in time")
    return TABLE.kind(error)(f"{where}: cannot connect: {error}")


def _words(error: BaseException) -> str:
    """Return the first line of the message, without its code."""
    first = str(error).split("\n", 1)[0]
    return first.partition(": ")[2] or first


_QUOTING_CLASSES: Final = frozenset({"IntegrityError", "DataError", "Warning"})
_QUOTING: Final = frozenset({"ORA-01722", "ORA-01858", "ORA-01861", "ORA-40441", "ORA-12899"})


def _quotes(error: BaseException) -> bool:
    """Return whether a message may quote a value, as 23ai does for a violated constraint."""
    if type(error).__name__ in _QUOTING_CLASSES:
        return True
    code = code_of(error)
    # The driver quotes a connect string that it cannot read, which may hold a password.
    return code in _QUOTING or code in {"DPY-4017", "DPY-4018", "DPY-4000"} or not code


_ERRORS: Final = DriverErrors(raised=DRIVER_ERRORS, describe=_described, quotes=_quotes)

translate: Final = _ERRORS.translate
translated: Final = _ERRORS.translated


def is_repeatable(error: BaseException | None) -> bool:
    """Return whether the server gave up a statement that may succeed in a new transaction."""
    return code_of(error) in _REPEATABLE


def is_readable_again(error: BaseException | None) -> bool:
    """Return whether a query may succeed if it runs again, on a new connection where needed."""
    return is_lost(error) or code_of(error) in _OVERWRITTEN


def is_lost(error: BaseException | None) -> bool:
    """Return whether the connection is lost; what was sent over it may or may not be done."""
    return code_of(error) in _LOST or isinstance(error, ConnectionError)
