"""Errors as answers: the one table of status codes, and the document that a client reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from locus_memory import errors as tree
from locus_memory.events import emit
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.web.models import ErrorAnswer, ErrorDetail

__all__ = [
    "STATUS",
    "RefusalError",
    "StaleError",
    "error_response",
    "explain_error",
    "status_of",
]

STATUS: Final[Mapping[type[Exception], int]] = {
    # The library's errors, each with those below it that have no row of their own.
    tree.InvalidArgumentError: 400,
    tree.ConfigurationError: 501,
    tree.StoreCapabilityError: 501,
    tree.VersionConflictError: 412,
    tree.BlockingCallError: 500,
    tree.ArchiveError: 400,
    tree.EncryptionError: 500,
    tree.MemoryBackendError: 500,
    tree.MemoryBackendNotFound: 404,
    tree.UnsupportedMemoryOp: 501,
    tree.MemoryNotFound: 404,
    tree.MemoryConflict: 409,
    tree.MemoryAccessDenied: 403,
    tree.MemoryExtractionFailed: 502,
    tree.MemoryStoreClosed: 503,
    tree.MemoryTimeout: 504,
    tree.InvalidMemoryURI: 400,
    tree.ModelError: 502,
    tree.ModelUnavailableError: 503,
    tree.CheckpointError: 500,
    tree.CheckpointNotFoundError: 404,
    tree.CheckpointConflictError: 409,
    tree.BackendError: 500,
    tree.BackendUnavailableError: 503,
    tree.BackendWriteError: 507,
    tree.BackendClosedError: 503,
    tree.LocusMemoryError: 500,
    # The errors of the functions that commands and endpoints share.
    UsageError: 400,
    CommandError: 404,
}
"""The status code of each error; the nearest base class decides."""

_INTERNAL: Final = 500
_INVALID: Final = 422
_REASONS: Final = {
    400: "the body cannot be read",
    404: "there is no such path",
    405: "the path does not take this method",
}
_REFUSED: Final = "the request cannot be answered"
_PLACES: Final = frozenset(("query", "body", "header"))
"""What FastAPI puts before the names of fields."""


class RefusalError(HTTPException):
    """A request that is refused, whatever is stored.

    Args:
        status: The status code.
        message: The reason, without anything stored.
        headers: More headers of the answer.
    """

    def __init__(
        self, status: int, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)


class StaleError(Exception):
    """A conditional write that lost: the answer shows both sides.

    Args:
        conflict: The versions.
        current: What is stored now, as JSON; `None`: nothing.
        yours: What the request wanted to write, as JSON; `None`: a deletion.
    """

    def __init__(
        self,
        conflict: tree.VersionConflictError,
        current: dict[str, Any] | None,
        yours: dict[str, Any] | None,
    ) -> None:
        super().__init__(str(conflict))
        self.conflict = conflict
        self.current = current
        self.yours = yours


def status_of(kind: type[BaseException]) -> int:
    """Return the status code of a class of errors; that of an unforeseen one is 500."""
    return next((STATUS[base] for base in kind.__mro__ if base in STATUS), _INTERNAL)


def explain_error(error: Exception) -> tuple[int, ErrorDetail]:
    """Return the status code and the description of an error that the code behind a path raised.

    Of an unforeseen error, the description has the class alone, and an event reports it: its text
    may hold something stored.
    """
    if isinstance(error, StaleError):
        return _explain_stale(error.conflict)
    if isinstance(error, ValidationError | RequestValidationError):
        return _INVALID, ErrorDetail(type="InvalidRequest", message=_invalid(error))
    if isinstance(error, HTTPException):
        is_ours = isinstance(error, RefusalError)
        reason = error.detail if is_ours else _REASONS.get(error.status_code, _REFUSED)
        return error.status_code, ErrorDetail(type="Refused", message=reason)
    name = type(error).__name__
    if not any(base in STATUS for base in type(error).__mro__):
        emit("web.failed", error=error)
        return _INTERNAL, ErrorDetail(type="InternalError", message=f"internal error: {name}")
    status = status_of(type(error))
    if status >= _INTERNAL:
        emit("web.failed", error=error, status=status)
    return status, ErrorDetail(type=name, message=str(error) or name)


def error_response(error: Exception) -> Response:
    """Return the answer for an error, as `explain_error` describes it."""
    status, detail = explain_error(error)
    if isinstance(error, StaleError):
        document = ErrorAnswer(error=detail, current=error.current, yours=error.yours)
        return Response(document.model_dump_json(), status, media_type="application/json")
    body = ErrorAnswer(error=detail).model_dump_json(exclude_none=True)
    answer = Response(body, status, media_type="application/json")
    if isinstance(error, HTTPException):
        answer.headers.update(error.headers or {})
    return answer


def _explain_stale(conflict: tree.VersionConflictError) -> tuple[int, ErrorDetail]:
    return STATUS[tree.VersionConflictError], ErrorDetail(
        type=type(conflict).__name__,
        message=str(conflict),
        expected=conflict.expected,
        actual=conflict.actual,
    )


def _invalid(error: ValidationError | RequestValidationError) -> str:
    """Return the fields of a request that are wrong; the given values are left out."""
    told: list[str] = []
    for each in error.errors()[:5]:
        place = list(map(str, each["loc"]))
        if isinstance(error, RequestValidationError) and place[:1] and place[0] in _PLACES:
            # A field may have the same name.
            del place[0]
        told.append(f"{'.'.join(place) or 'body'}: {each['msg']}")
    return "; ".join(told)[:1_000]
