"""The table that makes redis-py's errors the library's own."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator
from typing import Final

from redis import exceptions

from locus_memory.backends.redis.connection.lost_keys import LOST, LostKeyError
from locus_memory.errors import (
    NO_ROOM,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)

__all__ = [
    "FAILURES",
    "is_busy",
    "is_lost",
    "is_made_already",
    "is_no_index",
    "is_over_limit",
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

# By the code that an error of the server begins with; one that a script ran into is quoted
# within another: https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors
_CODES: Final[dict[str, type[LocusMemoryError]]] = {
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
}

# A script that only deletes may run where memory is full. A server that cannot save to its disk
# refuses all that writes.
_REMEDIES: Final = {
    "MISCONF": f"; {NO_ROOM}",
    "OOM": "; deleting items and whole threads makes room, all else needs a larger maxmemory",
}

_CODE: Final = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(_CODES)})(?![A-Za-z])")

# The first that fits. The driver cuts the code off where it has a class for it.
_CLASSES: Final[tuple[tuple[type[BaseException], type[LocusMemoryError]], ...]] = (
    (exceptions.AuthenticationError, ConfigurationError),
    (exceptions.AuthenticationWrongNumberOfArgsError, ConfigurationError),
    (exceptions.AuthorizationError, ConfigurationError),
    (exceptions.NoPermissionError, ConfigurationError),
    (exceptions.AskError, ConfigurationError),
    (exceptions.ReadOnlyError, BackendWriteError),
    (exceptions.OutOfMemoryError, BackendWriteError),
    (exceptions.ConnectionError, BackendUnavailableError),
    (exceptions.TimeoutError, BackendUnavailableError),
    (exceptions.ClusterError, BackendUnavailableError),
    (exceptions.TryAgainError, BackendUnavailableError),
    (exceptions.SlotNotCoveredError, BackendUnavailableError),
    (OSError, BackendUnavailableError),
)

# What has no code and no class of its own.
_PHRASES: Final[dict[str, type[LocusMemoryError]]] = {
    "Cluster mode is not enabled": ConfigurationError,
    "cannot be connected": BackendUnavailableError,
    "DB index is out of range": ConfigurationError,
    "invalid DB index": ConfigurationError,
    "Invalid Database": ConfigurationError,
    "Timeout limit was reached": BackendUnavailableError,
}

# What RediSearch says, whose errors have had codes since Redis 8.6 only.
_NO_INDEX: Final = re.compile("no such index|unknown index name|index not found", re.IGNORECASE)
_IS_INDEX: Final = re.compile("index already exists", re.IGNORECASE)
_OVER_LIMIT: Final = re.compile("(?:limit|offset) exceeds maximum", re.IGNORECASE)

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


def is_no_index(error: BackendError) -> bool:
    """Whether RediSearch has no index of that name."""
    return bool(_NO_INDEX.search(str(error)))


def is_made_already(error: BackendError) -> bool:
    """Whether RediSearch has an index of that name."""
    return bool(_IS_INDEX.search(str(error)))


def is_over_limit(error: BackendError) -> bool:
    """Whether RediSearch returns fewer rows at once than were asked for."""
    return bool(_OVER_LIMIT.search(str(error)))


def _code(error: BaseException) -> str | None:
    if not isinstance(error, exceptions.ResponseError):
        return None
    found = _CODE.search(str(error))
    return found and found.group()


def _kind(error: BaseException) -> type[LocusMemoryError]:
    cause = error.__cause__
    if isinstance(error, exceptions.RedisClusterException) and isinstance(cause, FAILURES):
        return _kind(cause)
    text = str(error)
    code = _code(error)
    if code is not None:
        return _CODES[code]
    for phrase, kind in _PHRASES.items():
        if phrase in text:
            return kind
    return next((ours for theirs, ours in _CLASSES if isinstance(error, theirs)), BackendError)


def _words(error: BaseException) -> str:
    if isinstance(error, exceptions.AskError):
        return "the server is one of a cluster; pass cluster=True"
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer in time"
    # What follows may quote the arguments of a command.
    said = str(error).partition(", with args")[0].partition("\n")[0]
    return said[:400] or type(error).__name__


def _remedy(error: BaseException) -> str:
    is_out_of_memory = isinstance(error, exceptions.OutOfMemoryError)
    return _REMEDIES.get("OOM" if is_out_of_memory else _code(error) or "", "")


def translate(error: BaseException, place: str) -> LocusMemoryError:
    """Return the library's error for one of the driver's, naming the server."""
    lost = LOST.search(str(error)) if isinstance(error, exceptions.ResponseError) else None
    described: LocusMemoryError = (
        LostKeyError(place, lost[1])
        if lost
        else _kind(error)(f"redis {place}: {_words(error)}{_remedy(error)}")
    )
    described.__cause__ = error
    return described


@contextlib.contextmanager
def translated(place: str) -> Generator[None]:
    """Raise redis-py's errors as the library's own, naming the server."""
    try:
        yield
    except LocusMemoryError:
        raise
    except FAILURES as error:
        raise translate(error, place) from error
