"""The table of errors covers all that the driver raises, and quotes no document."""

from __future__ import annotations

import inspect
import ssl

import aiohttp
import opensearchpy
import pytest
from opensearchpy import exceptions

from locus_memory.backends.opensearch.connection.driver_errors import (
    FAILURES,
    IndexLostError,
    described_item,
    is_index_lost,
    is_lost,
    is_refused,
    translate,
    was_never_sent,
)
from locus_memory.errors import (
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)

CLASSES = [
    each
    for _, each in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(each, Exception) and not issubclass(each, Warning)
]


def answer(status, kind, reason="because", *, root=None):
    """Return the driver's error of an answer of the server."""
    cause = {"type": root or kind, "reason": reason}
    body = {"error": {"type": kind, "reason": reason, "root_cause": [cause]}, "status": status}
    made = exceptions.HTTP_EXCEPTIONS.get(status, exceptions.TransportError)
    return made(status, kind, body)


def no_answer(cause, kind=exceptions.ConnectionError):
    return kind("N/A", str(cause), cause)


def refused():
    key = aiohttp.client_reqrep.ConnectionKey("host", 9200, False, True, None, None, None)
    return aiohttp.ClientConnectorError(key, ConnectionRefusedError(111, "refused"))


def certificate():
    key = aiohttp.client_reqrep.ConnectionKey("host", 9200, True, True, None, None, None)
    error = ssl.SSLCertVerificationError(1, "unknown authority")
    error.verify_message = "unknown authority"
    return aiohttp.ClientConnectorCertificateError(key, error)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_class_of_the_driver_has_its_place(kind):
    is_of_answer = issubclass(kind, exceptions.TransportError)
    made = kind("N/A", "words", RuntimeError("secret")) if is_of_answer else kind("words")
    found = translate(made, "host:9200")
    assert isinstance(found, LocusMemoryError)
    assert str(found).startswith("opensearch host:9200: ")
    assert issubclass(kind, FAILURES)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (answer(401, "security_exception"), ConfigurationError),
        (answer(403, "security_exception"), ConfigurationError),
        (answer(403, "cluster_block_exception"), BackendWriteError),
        (answer(429, "cluster_block_exception"), BackendWriteError),
        (answer(503, "cluster_block_exception"), BackendUnavailableError),
        (answer(404, "index_not_found_exception"), IndexLostError),
        (answer(429, "circuit_breaking_exception"), BackendUnavailableError),
        (answer(429, "opensearch_rejected_execution_exception"), BackendUnavailableError),
        (answer(503, "unavailable_shards_exception"), BackendUnavailableError),
        (answer(503, "search_phase_execution_exception"), BackendUnavailableError),
        (answer(400, "mapper_parsing_exception"), BackendCorruptError),
        (answer(400, "illegal_argument_exception"), BackendError),
        (answer(413, ""), BackendWriteError),
        (answer(500, "null_pointer_exception"), BackendError),
        *((answer(status, ""), BackendUnavailableError) for status in (408, 502, 503, 504)),
        (no_answer(refused()), BackendUnavailableError),
        (no_answer(certificate()), ConfigurationError),
        (no_answer(aiohttp.ServerDisconnectedError()), BackendUnavailableError),
        (no_answer(aiohttp.ClientPayloadError("cut")), BackendUnavailableError),
        (no_answer(TimeoutError(), exceptions.ConnectionTimeout), BackendUnavailableError),
        (exceptions.ConnectionTimeout("TIMEOUT", "", None), BackendUnavailableError),
        (opensearchpy.ImproperlyConfigured("no hosts"), ConfigurationError),
        (TimeoutError(), BackendUnavailableError),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:60],
)
def test_an_error_is_the_librarys_own(error, expected):
    assert type(translate(error, "host")) is expected


def test_a_reason_that_may_quote_a_document_is_not_repeated():
    for kind in ("mapper_parsing_exception", "unavailable_shards_exception", "anything_else"):
        found = translate(answer(400, kind, "source[secret]"), "host")
        assert "secret" not in f"{found!r} {found.__cause__!r}"
    found = translate(exceptions.SerializationError("secret", ValueError("secret")), "host")
    assert "secret" not in f"{found!r} {found.__cause__!r}"
    told = translate(answer(403, "security_exception", "no permissions for [x]"), "host")
    assert "no permissions for [x]" in str(told)


def test_the_answer_of_a_connection_for_signers_is_read_too():
    text = '{"error":{"type":"index_not_found_exception","reason":"no such index [i]"}}'
    error = exceptions.NotFoundError(404, text, None)
    assert is_index_lost(error)
    assert "no such index [i]" in str(translate(error, "host"))
    assert not is_index_lost(exceptions.NotFoundError(404, '{"found":false}', None))
    assert not is_index_lost(exceptions.NotFoundError(404, "<html>", None))


def test_what_may_be_sent_again():
    busy = answer(429, "circuit_breaking_exception")
    full = answer(429, "cluster_block_exception")
    late = no_answer(TimeoutError(), exceptions.ConnectionTimeout)
    slow = no_answer(aiohttp.ConnectionTimeoutError(), exceptions.ConnectionTimeout)
    cut = no_answer(aiohttp.ServerDisconnectedError())
    assert [is_refused(each) for each in (busy, full, late, cut)] == [True, False, False, False]
    never = [was_never_sent(each) for each in (no_answer(refused()), slow, cut, late)]
    assert never == [True, True, False, False]
    assert [is_lost(each) for each in (cut, late, answer(503, ""), busy)] == [
        *(True, False, True, False)
    ]
    assert not was_never_sent(no_answer(certificate()))
    assert not is_lost(no_answer(certificate()))


def test_an_item_of_a_bulk_request_has_its_error():
    item = {"status": 429, "error": {"type": "cluster_block_exception", "reason": "full"}}
    assert type(described_item(item, "host")) is BackendWriteError
    item = {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "secret"}}
    found = described_item(item, "host")
    assert type(found) is BackendCorruptError
    assert "secret" not in str(found)
