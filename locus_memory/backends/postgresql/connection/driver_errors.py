"""The table that makes the errors of asyncpg and of the server the library's own."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Generator
from typing import Final

from locus_memory.backends.postgresql.connection.driver import (
    DRIVER_ERRORS,
    ClientConfigurationError,
    InterfaceError,
    InternalClientError,
    InvalidCachedStatementError,
    PostgresConnectionError,
    PostgresError,
    TargetServerAttributeNotMatched,
)
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

__all__ = ["is_lost", "is_repeatable", "translate", "translated", "was_never_sent"]

# By SQLSTATE, else by its class, the first two characters:
# https://www.postgresql.org/docs/current/errcodes-appendix.html. What is not here is a plain
# `BackendError`: so is a right that is missing, for it may be to read or to write.
_STATES: Final[dict[str, type[LocusMemoryError]]] = {
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
}

_FULL: Final = "53100"

_PREPARED: Final = frozenset({"26000", "42P05"})
"""A prepared statement is not there, or is there already."""

_QUOTING: Final = "22"
"""The class of the errors whose messages quote the data they are about."""

_ROLLED_BACK: Final = frozenset({"40001", "40P01"})


def translate(error: BaseException, where: str) -> BaseException:
    """Return the library's error for `error`, or `error` itself if it is not the driver's.

    The message holds no value: PostgreSQL puts those into the detail, which is left out.
    """
    if isinstance(error, LocusMemoryError):
        return error
    if isinstance(error, PostgresError):
        return _of_server(error, where)
    if isinstance(error, InterfaceError | InternalClientError):
        return _of_client(error, where)
    if isinstance(error, OSError):
        return _of_network(error, where)
    return error


def _of_network(error: OSError, where: str) -> LocusMemoryError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConfigurationError(f"{where}: {error.verify_message}")
    if isinstance(error, TimeoutError):
        return BackendUnavailableError(f"{where}: no answer in time")
    return BackendUnavailableError(f"{where}: cannot connect: {error}")


def _of_server(error: BaseException, where: str) -> LocusMemoryError:
    state = str(getattr(error, "sqlstate", None) or "")
    kind = _STATES.get(state) or _STATES.get(state[:2], BackendError)
    message = type(error).__name__ if _quotes_data(error) else str(error.args[0])
    if state in _PREPARED:
        message += "; behind a pooler in transaction mode, pass pooler=True"
    remedy = f"; {NO_ROOM}" if state == _FULL else ""
    return kind(f"{where}: {message}" + (f" ({state})" if state else "") + remedy)


def _of_client(error: BaseException, where: str) -> LocusMemoryError:
    if isinstance(error, TargetServerAttributeNotMatched):
        return BackendUnavailableError(f"{where}: {error}")
    message = str(error.args[0])
    if isinstance(error, ClientConfigurationError):
        return ConfigurationError(f"{where}: {message}")
    if _quotes_an_argument(error):
        return BackendError(f"{where}: the driver cannot encode an argument")
    if "pool is" in message:
        return BackendClosedError(f"{where}: {message}")
    if is_lost(error):
        return BackendUnavailableError(f"{where}: {message}")
    return BackendError(f"{where}: {type(error).__name__}: {message}")


def _quotes_an_argument(error: BaseException) -> bool:
    # asyncpg.DataError is the server's; the driver's own has the same name and is not exported.
    return isinstance(error, InterfaceError) and isinstance(error, ValueError)


def _quotes_data(error: BaseException) -> bool:
    return str(getattr(error, "sqlstate", None) or "").startswith(_QUOTING)


@contextlib.contextmanager
def translated(where: str) -> Generator[None]:
    """Raise the driver's errors as the library's own, naming the database."""
    try:
        yield
    except DRIVER_ERRORS as error:
        described = translate(error, where)
        if described is error:
            raise
        if _quotes_an_argument(error) or _quotes_data(error):
            raise described from None
        raise described from error


def is_repeatable(error: BaseException | None) -> bool:
    """Whether the server rolled a transaction back that may succeed when it is run again."""
    state = getattr(error, "sqlstate", None)
    return state in _ROLLED_BACK or isinstance(error, InvalidCachedStatementError)


def is_lost(error: BaseException) -> bool:
    """Whether the connection went away; what was sent over it may or may not be done."""
    return isinstance(error, PostgresConnectionError | ConnectionError) or was_never_sent(error)


def was_never_sent(error: BaseException) -> bool:
    """Whether the connection had gone away before the statement was sent over it.

    The driver says so in one of two ways: it knows that the connection is closed, or it has
    just read the server's farewell.
    """
    if not isinstance(error, InterfaceError | InternalClientError):
        return False
    message = str(error.args[0])
    return message.endswith("connection is closed") or "cannot switch to state" in message
