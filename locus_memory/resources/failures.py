"""From errors to failures and back: one table for both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from locus_memory.errors import (
    BackendClosedError,
    BackendUnavailableError,
    InvalidMemoryURI,
    LocusMemoryError,
    MemoryAccessDenied,
    MemoryBackendError,
    MemoryConflict,
    MemoryExtractionFailed,
    MemoryNotFound,
    MemoryStoreClosed,
    MemoryTimeout,
    ModelError,
    StoreCapabilityError,
    UnsupportedMemoryOp,
    VersionConflictError,
)
from locus_memory.resources.results import (
    FailureKind,
    MemoryExecutionFailure,
)

__all__ = ["as_error", "as_failure"]

_KINDS: Final[tuple[tuple[type[BaseException], FailureKind], ...]] = (
    (MemoryNotFound, "not_found"),
    (InvalidMemoryURI, "invalid_uri"),
    (UnsupportedMemoryOp, "unsupported"),
    (StoreCapabilityError, "unsupported"),
    (MemoryExtractionFailed, "extraction_failed"),
    (ModelError, "extraction_failed"),
    (MemoryAccessDenied, "unauthorized"),
    (MemoryTimeout, "timeout"),
    (BackendClosedError, "store_closed"),
    (BackendUnavailableError, "transport"),
    (VersionConflictError, "conflict"),
    (PermissionError, "unauthorized"),
    (asyncio.TimeoutError, "timeout"),
    (ConnectionError, "transport"),
)
"""The kind of each error; the first row that fits decides."""

_MESSAGES: Final[Mapping[FailureKind, str]] = MappingProxyType(
    {
        "unauthorized": "the system denies access to the source: check its permissions",
        "timeout": "it takes too long: try again, or allow more time",
        "transport": "the other side cannot be reached: try again later",
        "conflict": "another writer was there first: try again",
        "extraction_failed": "the model failed: commit the session again",
        "internal": "an unexpected error, whose class is in the detail",
    }
)
"""What is said of errors that are not of this library, whose texts may hold anything."""


def as_failure(error: BaseException) -> MemoryExecutionFailure:
    """Return the failure that reports an error; one that is in no row is `internal`."""
    kind: FailureKind = "internal"
    for known, named in _KINDS:
        if isinstance(error, known):
            kind = named
            break
    says = isinstance(error, LocusMemoryError) and not isinstance(error, ModelError)
    message = str(error) if says else _MESSAGES[kind]
    return MemoryExecutionFailure(kind, message, type(error).__name__, error)


def as_error(failure: MemoryExecutionFailure, backend: str, op: Any, uri: str) -> BaseException:
    """Return the error that reports a failure: its own, or one made for its kind."""
    cause, message = failure.cause, failure.message
    if isinstance(cause, LocusMemoryError):
        return cause
    made: BaseException
    match failure.kind:
        case "not_found":
            made = MemoryNotFound(uri, message)
        case "conflict":
            made = MemoryConflict(uri, message)
        case "unsupported":
            made = UnsupportedMemoryOp(type(op).__name__, backend, message)
        case "store_closed":
            made = MemoryStoreClosed(backend)
        case "transport":
            made = BackendUnavailableError(message)
        case _:
            made = _PLAIN.get(failure.kind, MemoryBackendError)(message)
    made.__cause__ = cause
    return made


_PLAIN: Final[Mapping[str, type[MemoryBackendError]]] = MappingProxyType(
    {
        "unauthorized": MemoryAccessDenied,
        "timeout": MemoryTimeout,
        "invalid_uri": InvalidMemoryURI,
        "extraction_failed": MemoryExtractionFailed,
    }
)
