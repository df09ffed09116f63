"""From errors to failures and back: one table for both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
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
    (BaseException, "internal"),
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
    """Return the failure that reports an error; one that no other row has is `internal`."""
    kind: FailureKind = next(each for known, each in _KINDS if isinstance(error, known))
    says = isinstance(error, LocusMemoryError) and not isinstance(error, ModelError)
    message = str(error) if says else _MESSAGES[kind]
    return MemoryExecutionFailure(kind, message, type(error).__name__, error)


def as_error(failure: MemoryExecutionFailure, backend: str, op: Any, uri: str) -> BaseException:
    """Return the error that reports a failure: its own, or one made for its kind."""
    cause, message = failure.cause, failure.message
    if isinstance(cause, LocusMemoryError):
        return cause
    arguments: Mapping[str, tuple[str, ...]] = {
        "not_found": (uri, message),
        "conflict": (uri, message),
        "unsupported": (type(op).__name__, backend, message),
        "store_closed": (backend,),
    }
    made: BaseException = _ERRORS[failure.kind](*arguments.get(failure.kind, (message,)))
    made.__cause__ = cause
    return made


_ERRORS: Final[Mapping[FailureKind, Callable[..., BaseException]]] = MappingProxyType(
    {
        "not_found": MemoryNotFound,
        "conflict": MemoryConflict,
        "unsupported": UnsupportedMemoryOp,
        "store_closed": MemoryStoreClosed,
        "transport": BackendUnavailableError,
        "internal": MemoryBackendError,
        "unauthorized": MemoryAccessDenied,
        "timeout": MemoryTimeout,
        "invalid_uri": InvalidMemoryURI,
        "extraction_failed": MemoryExtractionFailed,
    }
)
