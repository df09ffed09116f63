"""The table that makes redis-py's errors the library's own."""

from __future__ import annotations

import re
from typing import Final

from redis import exceptions

from locus_memory.backends.driver_errors import DriverErrors, ErrorTable
from locus_memory.backends.redis.connection.link import UnconfirmedError
from locus_memory.backends.redis.connection.lost_keys import LOST, LostKeyError
from locus_memory.errors import (
    NO_ROOM,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)

__all__ = [
    "FAILURES",
    "is_busy",
    "is_lost",
    "is_readonly",
    "translate",
    "translated",
]

FAILURES: Final = (
    exceptions.RedisError,
    exceptions.RedisClusterException,
    exceptions.ChildDeadlockedError,
    exceptions.IncorrectPolicyType,
    OSError,
)
"""What the driver raises; a timeout of asyncio's own is an `OSError` too."""

_TABLE: Final = ErrorTable(
    # An error of the server begins with its code; one that a script ran into is quoted within
    # another: https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors
    codes={
        "BUSY": BackendUnavailableError,
        "CLUSTERDOWN": BackendUnavailableError,
        "LOADING": BackendUnavailableError,
        "MASTERDOWN": BackendUnavailableError,
        "TRYAGAIN": BackendUnavailableError,
        "MISCONF": BackendWriteError,
        "NOREPLICAS": BackendWriteError,
        "OOM": BackendWriteError,
        "READONLY": BackendWriteError,
        "NOAUTH": ConfigurationError,
        "NOPERM": ConfigurationError,
        "WRONGPASS": ConfigurationError,
    },
    # They have no code and no class of their own.
    phrases={
        "Cluster mode is not enabled": ConfigurationError,
        "cannot be connected": BackendUnavailableError,
        "DB index is out of range": ConfigurationError,
        "invalid DB index": ConfigurationError,
        "Invalid Database": ConfigurationError,
    },
    # The driver cuts the code off where it has a class for it.
    classes={
        exceptions.AuthenticationError: ConfigurationError,
        exceptions.AuthenticationWrongNumberOfArgsError: ConfigurationError,
        exceptions.AuthorizationError: ConfigurationError,
        exceptions.NoPermissionError: ConfigurationError,
        exceptions.AskError: ConfigurationError,
        exceptions.ReadOnlyError: BackendWriteError,
        exceptions.OutOfMemoryError: BackendWriteError,
        exceptions.ConnectionError: BackendUnavailableError,
        exceptions.TimeoutError: BackendUnavailableError,
        exceptions.ClusterError: BackendUnavailableError,
        exceptions.TryAgainError: BackendUnavailableError,
        exceptions.SlotNotCoveredError: BackendUnavailableError,
        UnconfirmedError: BackendUnavailableError,
        OSError: BackendUnavailableError,
    },
    # A script that only deletes may run where memory is full. A server that cannot save to its
    # disk refuses all that writes.
    remedies={
        "MISCONF": NO_ROOM,
        "OOM": "deleting items and whole threads makes room, all else needs a larger maxmemory",
    },
)

_CODE: Final = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(_TABLE.codes)})(?![A-Za-z])")

# Nothing of these was lost on the way: to send the command again would change nothing.
_ANSWERS: Final = (
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
    exceptions.BusyLoadingError,
    exceptions.ExternalAuthProviderError,
    exceptions.MaxConnectionsError,
)


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke, so that nobody knows whether the command ran."""
    return isinstance(error, exceptions.ConnectionError) and not isinstance(error, _ANSWERS)


def is_busy(answer: object) -> bool:
    """Whether the server refused a command unread, for somebody's script has run for too long."""
    return isinstance(answer, exceptions.ResponseError) and str(answer).startswith("BUSY ")


def is_readonly(error: BaseException) -> bool:
    """Whether the server is a replica, perhaps since a failover."""
    return isinstance(error, exceptions.ReadOnlyError) or _code(error) == "READONLY"


def _code(error: BaseException) -> str:
    if isinstance(error, exceptions.OutOfMemoryError):
        return "OOM"
    found = _CODE.search(str(error)) if isinstance(error, exceptions.ResponseError) else None
    return found.group() if found else ""


def _decisive(error: BaseException) -> BaseException:
    """Return what the client of a cluster ran into, which says more than its own error."""
    cause = error.__cause__
    if isinstance(error, exceptions.RedisClusterException) and isinstance(cause, FAILURES):
        return _decisive(cause)
    return error


def _words(error: BaseException) -> str:
    if isinstance(error, exceptions.AskError):
        return "the server is one of a cluster; connect with redis+cluster://"
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer in time"
    # What follows may quote the arguments of a command.
    said = str(error).partition(", with args")[0].partition("\n")[0]
    return said[:400] or type(error).__name__


def _described(error: BaseException, place: str) -> LocusMemoryError:
    lost = LOST.search(str(error)) if isinstance(error, exceptions.ResponseError) else None
    if lost:
        return LostKeyError(place, lost[1])
    decisive = _decisive(error)
    return _TABLE.describe(decisive, f"redis {place}: {_words(error)}", _code(decisive))


_ERRORS: Final = DriverErrors(raised=FAILURES, describe=_described)

translate: Final = _ERRORS.translate
translated: Final = _ERRORS.translated
