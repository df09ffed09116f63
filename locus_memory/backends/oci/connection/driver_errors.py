"""The one table that translates the errors of the SDK and of the service.

The codes are those of https://docs.oracle.com/iaas/Content/API/References/apierrors.htm and of the
service itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from locus_memory.backends.driver_errors import DriverErrors, ErrorTable, Kind
from locus_memory.backends.oci.connection.driver import sdk
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)

__all__ = [
    "AbsentError",
    "ChangedError",
    "UnchangedError",
    "answered",
    "errors",
    "is_refused",
    "is_transient",
    "refusal_of",
    "retry_after",
]

_LONGEST_MESSAGE: Final = 400

_STATUSES: Final = {
    "401": ConfigurationError,
    "403": ConfigurationError,
    "404": ConfigurationError,
    "408": BackendUnavailableError,
    "413": BackendWriteError,
    "429": BackendUnavailableError,
    "500": BackendUnavailableError,
    "502": BackendUnavailableError,
    "503": BackendUnavailableError,
    "504": BackendUnavailableError,
    "507": BackendWriteError,
}
"""The library's errors by status, where the code is not in the table."""

_CODES: Final[dict[str, Kind]] = {
    **_STATUSES,
    "ConcurrentObjectUpdate": BackendUnavailableError,
    "IncorrectState": BackendUnavailableError,
    "LockConflict": BackendUnavailableError,
    "ObjectNotFound": BackendError,
    "QuotaExceeded": BackendWriteError,
    "StorageQuotaExceeded": BackendWriteError,
    "LimitExceeded": BackendWriteError,
    "RetentionRuleViolation": BackendWriteError,
    "UnmatchedContentMD5": BackendUnavailableError,
}

_REMEDIES: Final = {
    "401": "check the key, the fingerprint and the clock of this machine",
    "403": "a policy must allow the user to read, write, delete and list the objects",
    "404": "the bucket or namespace does not exist, or no policy allows this user to use it",
}

_TRANSIENT: Final = frozenset({408, 429, 500, 502, 503, 504})
_BUSY: Final = frozenset({"ConcurrentObjectUpdate", "IncorrectState", "LockConflict"})
_UNREAD: Final = frozenset({401, 429})
"""The statuses of requests that the service refused without an effect."""


@cache
def _table() -> ErrorTable:
    oci = sdk()
    theirs = oci.exceptions
    requests = oci._vendor.requests.exceptions  # noqa: SLF001 - the SDK raises them unchanged
    return ErrorTable(
        codes=_CODES,
        classes={
            theirs.ClientError: ConfigurationError,
            theirs.MissingEndpointForNonRegionalServiceClientError: ConfigurationError,
            requests.RequestException: BackendUnavailableError,
            requests.InvalidURL: ConfigurationError,
            requests.MissingSchema: ConfigurationError,
            _breaker(): BackendUnavailableError,
            # A key file or token file, which is no matter of the network.
            FileNotFoundError: ConfigurationError,
            PermissionError: ConfigurationError,
            OSError: BackendUnavailableError,
            # Of the configuration: the SDK checks nothing else with it.
            ValueError: ConfigurationError,
        },
        remedies=_REMEDIES,
    )


def _breaker() -> type[Exception]:
    """Return the error of a circuit breaker, which a client that was passed in may have."""
    found: type[Exception] = sdk().base_client.circuitbreaker.CircuitBreakerError
    return found


@cache
def errors() -> DriverErrors:
    """Return the translation of the SDK's errors."""
    theirs = sdk().exceptions
    raised = (
        theirs.ServiceError,
        theirs.ClientError,
        theirs.RequestException,
        theirs.ConnectTimeout,
        _breaker(),
        OSError,
        ValueError,
    )
    return DriverErrors(raised=raised, describe=_described)


def _service_error(error: BaseException) -> Any:
    """Return the error if it is an answer of the service, or `None`."""
    return error if isinstance(error, sdk().exceptions.ServiceError) else None


def _codes(error: BaseException) -> tuple[str, ...]:
    answer = _service_error(error)
    return () if answer is None else (str(answer.code), str(answer.status))


def _described(error: BaseException, place: str) -> LocusMemoryError:
    return _table().describe(error, f"oci {place}: {_words(error)}", *_codes(error))


def _words(error: BaseException) -> str:
    answer = _service_error(error)
    if answer is not None:
        message = str(answer.message or "").partition("\n")[0]
        said = f"{answer.status} {answer.code or ''}: {message} (request {answer.request_id})"
    elif isinstance(error, TimeoutError) and not str(error):
        said = "no answer in time"
    else:
        said = str(error).partition("\n")[0] or type(error).__name__
    return said[:_LONGEST_MESSAGE]


def answered(error: BaseException) -> bool:
    """Return whether the service answered."""
    return _service_error(error) is not None


class ChangedError(Exception):
    """The object is not as the condition of a write says. It never reaches a caller of a store.

    Attributes:
        unsure: Whether an answer was lost before; a delete leaves no mark.
    """

    def __init__(self, *, unsure: bool) -> None:
        self.unsure = unsure
        super().__init__("the object has changed")


class AbsentError(ChangedError):
    """There is no such object; a missing bucket is another error."""


class UnchangedError(ChangedError):
    """The object still has the entity tag that the caller knows."""


_ANSWERS: Final[dict[int, type[ChangedError]]] = {304: UnchangedError, 412: ChangedError}


def refusal_of(error: BaseException) -> type[ChangedError] | None:
    """Return the error for an answer that tells how the object is; `None`: it is another answer."""
    answer = _service_error(error)
    if answer is None or (answer.status, answer.code) == (404, "ObjectNotFound"):
        return None if answer is None else AbsentError
    return _ANSWERS.get(answer.status)


def is_refused(error: BaseException) -> bool:
    """Whether the request certainly had no effect, though it may be sent again."""
    answer = _service_error(error)
    if answer is None:
        return isinstance(error, sdk().exceptions.ConnectTimeout | _breaker())
    return answer.status in _UNREAD or answer.code in _BUSY or answer.code == "UnmatchedContentMD5"


def is_transient(error: BaseException) -> bool:
    """Whether the request may succeed if it is sent again."""
    if isinstance(error, LocusMemoryError):
        # There is no free thread, or the connection is closed.
        return False
    answer = _service_error(error)
    if answer is not None:
        return answer.status in _TRANSIENT or answer.code in {*_BUSY, "UnmatchedContentMD5"}
    return issubclass(_table().kind(error), BackendUnavailableError)


def retry_after(error: BaseException) -> float:
    """Return the seconds that the service asks to wait, or 0."""
    answer = _service_error(error)
    try:
        seconds = float((answer.headers or {}).get("retry-after", 0)) if answer else 0.0
    except ValueError:
        # A date, which the service does not send.
        seconds = 0.0
    return max(seconds, 0.0)
