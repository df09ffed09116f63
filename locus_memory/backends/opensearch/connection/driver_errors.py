"""The table that translates the errors of opensearch-py and of the server."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import opensearchpy
import orjson

from locus_memory.backends.driver_errors import DriverErrors, ErrorTable
from locus_memory.errors import (
    NO_ROOM,
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)

__all__ = [
    "FAILURES",
    "IndexLostError",
    "described_item",
    "error_of",
    "is_index_lost",
    "is_lost",
    "is_refused",
    "is_refused_item",
    "status_of",
    "translate",
    "translated",
    "was_never_sent",
]

FAILURES: Final = (
    opensearchpy.OpenSearchException,
    opensearchpy.OpenSearchDslException,
    opensearchpy.ImproperlyConfigured,
    aiohttp.ClientError,
    OSError,
)
"""The errors of the driver; a timeout of asyncio's own is an `OSError` too."""

_INDEX_LOST: Final = "index_not_found_exception"


class IndexLostError(BackendCorruptError):
    """The index of a request does not exist."""


_TABLE: Final = ErrorTable(
    # By the type of the server's error and its status, then either alone. The types are the names
    # of the server's exception classes:
    # https://docs.opensearch.org/latest/api-reference/common-parameters/
    codes={
        # An index that is read-only, or a disk that is full; the other blocks last until the
        # cluster has its state.
        "cluster_block_exception/403": BackendWriteError,
        "cluster_block_exception/429": BackendWriteError,
        "cluster_block_exception": BackendUnavailableError,
        "illegal_index_shard_state_exception": BackendUnavailableError,
        "index_closed_exception": BackendUnavailableError,
        "no_shard_available_action_exception": BackendUnavailableError,
        "node_disconnected_exception": BackendUnavailableError,
        "node_not_connected_exception": BackendUnavailableError,
        "shard_not_found_exception": BackendUnavailableError,
        "unavailable_shards_exception": BackendUnavailableError,
        _INDEX_LOST: IndexLostError,
        # The fields of an index are not those that the library made.
        "mapper_parsing_exception": BackendCorruptError,
        "strict_dynamic_mapping_exception": BackendCorruptError,
        "security_exception": ConfigurationError,
        "401": ConfigurationError,
        "403": ConfigurationError,
        "408": BackendUnavailableError,
        "413": BackendWriteError,
        "429": BackendUnavailableError,
        "502": BackendUnavailableError,
        "503": BackendUnavailableError,
        "504": BackendUnavailableError,
    },
    classes={
        opensearchpy.AuthenticationException: ConfigurationError,
        opensearchpy.AuthorizationException: ConfigurationError,
        opensearchpy.ImproperlyConfigured: ConfigurationError,
        opensearchpy.ConnectionError: BackendUnavailableError,
        opensearchpy.SSLError: ConfigurationError,
        aiohttp.ClientConnectorCertificateError: ConfigurationError,
        aiohttp.ServerFingerprintMismatch: ConfigurationError,
        ssl.SSLCertVerificationError: ConfigurationError,
        aiohttp.ClientConnectionError: BackendUnavailableError,
        aiohttp.ClientPayloadError: BackendUnavailableError,
        OSError: BackendUnavailableError,
    },
    remedies={
        "cluster_block_exception/403": "remove the block from the index",
        "cluster_block_exception/429": NO_ROOM,
        "413": "the cluster takes no requests of this size; raise http.max_content_length",
    },
)

_QUOTABLE: Final = frozenset(
    {
        "circuit_breaking_exception",
        "cluster_block_exception",
        _INDEX_LOST,
        "opensearch_rejected_execution_exception",
        "rejected_execution_exception",
        "resource_already_exists_exception",
        "security_exception",
    }
)
"""The types of errors whose reasons quote no document."""

_SHORTEST: Final = 400
"""The longest text of the server in a message, in characters."""


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error; `None`: there was no answer."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def error_of(error: BaseException) -> Mapping[str, Any]:
    """Return the JSON of the server's answer, or an empty one."""
    if status_of(error) is None or not isinstance(error, opensearchpy.TransportError):
        return {}
    # A connection for signers passes the text of the answer on instead.
    found: Any = error.info
    if not isinstance(found, dict):
        try:
            found = orjson.loads(error.error)
        except (TypeError, ValueError):
            return {}
    return found if isinstance(found, dict) else {}


def _parts(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the types and reasons of an error: its own, then those of its first cause."""
    told = body.get("error")
    if isinstance(told, str):
        return [("", told)]
    if not isinstance(told, Mapping):
        return []
    causes = told.get("root_cause")
    first = causes[0] if isinstance(causes, list) and causes else {}
    listed = [each for each in (told, first) if isinstance(each, Mapping)]
    return [(str(each.get("type") or ""), str(each.get("reason") or "")) for each in listed]


def _codes(parts: list[tuple[str, str]], status: int | None) -> list[str]:
    named = [kind for kind, _ in reversed(parts) if kind]
    exact = [f"{kind}/{status}" for kind in named]
    return [*exact, *named, str(status)]


def is_index_lost(error: BaseException) -> bool:
    """Whether the index of a request does not exist."""
    return any(kind == _INDEX_LOST for kind, _ in _parts(error_of(error)))


def is_refused(error: BaseException) -> bool:
    """Whether a busy cluster refused a request before it did any of it."""
    return is_refused_item({**error_of(error), "status": status_of(error)})


def is_refused_item(item: Mapping[str, Any]) -> bool:
    """Whether a busy cluster refused an operation of a bulk request."""
    kinds = [kind for kind, _ in _parts(item)]
    return item.get("status") == 429 and "cluster_block_exception" not in kinds  # noqa: PLR2004 - HTTP


def was_never_sent(error: BaseException) -> bool:
    """Whether there was no connection to send the request over."""
    cause = _decisive(error)
    return isinstance(
        cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError
    ) and not _is_tls(cause)


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke, or a node between was gone: the request may have run."""
    if isinstance(error, opensearchpy.ConnectionTimeout) and not was_never_sent(error):
        return False
    if isinstance(error, opensearchpy.ConnectionError):
        return not _is_tls(_decisive(error))
    return status_of(error) in {502, 503, 504}


def _is_tls(error: BaseException) -> bool:
    tls = aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch, ssl.SSLError
    return isinstance(error, tls)


def _decisive(error: BaseException) -> BaseException:
    """Return the error of aiohttp in an error of the driver."""
    if isinstance(error, opensearchpy.ConnectionError):
        cause = error.args[2] if len(error.args) > 2 else None  # noqa: PLR2004 - as the driver fills it
        if isinstance(cause, BaseException):
            return cause
    return error


def _described(error: BaseException, place: str) -> LocusMemoryError:
    status = status_of(error)
    if status is not None:
        parts = _parts(error_of(error))
        message = f"opensearch {place}: {_server_words(parts, status)}"
        return _TABLE.describe(error, message, *_codes(parts, status))
    cause = _decisive(error)
    kind = _TABLE.kind(cause)
    if kind is BackendError:
        # For example a bug in aiohttp; the driver's own class tells more.
        kind = _TABLE.kind(error)
    return kind(f"opensearch {place}: {_client_words(cause)}")


def _server_words(parts: list[tuple[str, str]], status: int | None) -> str:
    words = [
        f"{kind}: {reason}" if kind in _QUOTABLE and reason else kind
        for kind, reason in dict(reversed(parts)).items()
        if kind
    ]
    return f"{'; '.join(words) or 'refused'} ({status})"[:_SHORTEST]


def _client_words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, opensearchpy.SerializationError):
        return "the answer is not JSON"
    certificate = getattr(error, "certificate_error", error)
    if isinstance(certificate, ssl.SSLCertVerificationError):
        return f"the certificate is refused: {certificate.verify_message}"
    return (str(error) or type(error).__name__)[:_SHORTEST]


def described_item(item: Mapping[str, Any], place: str) -> LocusMemoryError:
    """Return the error of one item of a bulk request."""
    status = item.get("status")
    parts = _parts(item)
    message = f"opensearch {place}: {_server_words(parts, status)}"
    return _TABLE.describe(BackendError(), message, *_codes(parts, status))


def _quotes(error: BaseException) -> bool:
    # The reason of a refusal may quote a document, and the text of an answer may be one.
    kinds = {kind for kind, _ in _parts(error_of(error)) if kind}
    is_quotable = bool(kinds) and kinds <= _QUOTABLE
    return isinstance(error, opensearchpy.SerializationError) or (
        status_of(error) is not None and not is_quotable
    )


_ERRORS: Final = DriverErrors(raised=FAILURES, describe=_described, quotes=_quotes)

translate: Final = _ERRORS.translate
translated: Final = _ERRORS.translated
