"""The table that makes the errors of asyncpg and of the server the library's own."""

from __future__ import annotations

import ssl
from typing import Final

from locus_memory.backends.driver_errors import DriverErrors, ErrorTable
from locus_memory.backends.postgresql.connection.driver import DRIVER_ERRORS, errors
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
    "is_lost",
    "is_readonly",
    "is_repeatable",
    "translate",
    "translated",
    "was_never_sent",
]

# By SQLSTATE, else by its class, the first two characters:
# https://www.postgresql.org/docs/current/errcodes-appendix.html. What is not here is a plain
# `BackendError`: so is a right that is missing, for it may be to read or to write.
_SERVER: Final = ErrorTable(
    codes={
        "08": BackendUnavailableError,
        "25006": BackendWriteError,
        "25P03": BackendUnavailableError,
        "28": ConfigurationError,
        "3D": ConfigurationError,
        "40001": BackendUnavailableError,
        "40P01": BackendUnavailableError,
        # A column, a function or a table is not there: the tables are not as we left them.
        "42703": BackendCorruptError,
        "42883": BackendCorruptError,
        "42P01": BackendCorruptError,
        "53": BackendUnavailableError,
        "53100": BackendWriteError,
        "55P03": BackendUnavailableError,
        "57": BackendUnavailableError,
        "XX001": BackendCorruptError,
        "XX002": BackendCorruptError,
    },
    remedies={"53100": NO_ROOM},
)

_CLOSED: Final = "connection is closed"

_FAREWELL: Final = "cannot switch to state"
"""The driver says so when it has just read that the server closes the connection."""

_CLIENT: Final = ErrorTable(
    phrases={
        "pool is": BackendClosedError,
        "released back to the pool": BackendClosedError,
        _CLOSED: BackendUnavailableError,
        _FAREWELL: BackendUnavailableError,
    },
    classes={
        errors.ClientConfigurationError: ConfigurationError,
        errors.TargetServerAttributeNotMatched: BackendUnavailableError,
        ssl.SSLCertVerificationError: ConfigurationError,
        OSError: BackendUnavailableError,
    },
)

_PREPARED: Final = frozenset({"26000", "42P05"})
"""A prepared statement is not there, or is there already."""

_QUOTING: Final = "22"
"""The class of the errors whose messages quote the data they are about."""

_ENDED: Final = frozenset({"57P01", "57P02"})
"""The server ends the connection: an administrator, or a crash of another process."""

_ROLLED_BACK: Final = frozenset({"40001", "40P01"})


def _described(error: BaseException, where: str) -> LocusMemoryError:
    """Tell of an error without a value: PostgreSQL puts those into the detail, left out here."""
    if isinstance(error, errors.PostgresError):
        return _of_server(error, where)
    if _quotes_an_argument(error):
        return BackendError(f"{where}: the driver cannot encode an argument")
    kind = _CLIENT.kind(error)
    name = f"{type(error).__name__}: " if kind is BackendError else ""
    return kind(f"{where}: {name}{_client_words(error)}")


def _of_server(error: BaseException, where: str) -> LocusMemoryError:
    state = str(getattr(error, "sqlstate", None) or "")
    message = type(error).__name__ if _quotes_data(error) else str(error.args[0])
    if state in _PREPARED:
        message += "; behind a pooler in transaction mode, pass pooler=True"
    code = f" ({state})" if state else ""
    return _SERVER.describe(error, f"{where}: {message}{code}", state, state[:2])


def _client_words(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return str(error.verify_message)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        return f"cannot connect: {error}"
    words = str(error.args[0])
    return "the server ended the connection" if _FAREWELL in words else words


def _quotes_an_argument(error: BaseException) -> bool:
    # asyncpg.DataError is the server's; the driver's own has the same name and is not exported.
    is_value = isinstance(error, errors.InterfaceError) and isinstance(error, ValueError)
    return is_value and not isinstance(error, errors.ClientConfigurationError)


def _quotes_data(error: BaseException) -> bool:
    return str(getattr(error, "sqlstate", None) or "").startswith(_QUOTING)


def _quotes(error: BaseException) -> bool:
    # What the driver says of a URL may quote the password.
    is_url = isinstance(error, errors.ClientConfigurationError)
    return is_url or _quotes_an_argument(error) or _quotes_data(error)


_ERRORS: Final = DriverErrors(raised=DRIVER_ERRORS, describe=_described, quotes=_quotes)

translate: Final = _ERRORS.translate
translated: Final = _ERRORS.translated


def is_repeatable(error: BaseException | None) -> bool:
    """Whether the server rolled a transaction back that may succeed when it is run again."""
    state = getattr(error, "sqlstate", None)
    return state in _ROLLED_BACK or isinstance(error, errors.InvalidCachedStatementError)


def is_readonly(error: BaseException | None) -> bool:
    """Whether the server takes no writes: a standby, or a primary that is told so."""
    return getattr(error, "sqlstate", None) == "25006"


def is_lost(error: BaseException) -> bool:
    """Whether the connection went away; what was sent over it may or may not be done."""
    if getattr(error, "sqlstate", None) in _ENDED or was_never_sent(error):
        return True
    return isinstance(error, errors.PostgresConnectionError | ConnectionError)


def was_never_sent(error: BaseException) -> bool:
    """Whether the connection had gone away before the statement was sent over it."""
    if not isinstance(error, errors.InterfaceError | errors.InternalClientError):
        return False
    # Not anywhere: the driver may quote an argument.
    return str(error.args[0]).endswith(_CLOSED) or _FAREWELL in str(error.args[0])
