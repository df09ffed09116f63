"""Each error of the library has a status code, and an answer without anything stored."""

from __future__ import annotations

import inspect

import orjson
import pytest

from locus_memory import errors as tree
from locus_memory.events import collect
from locus_memory.web.errors import STATUS, RefusalError, error_response, status_of

KINDS = [
    each
    for _, each in inspect.getmembers(tree, inspect.isclass)
    if issubclass(each, tree.LocusMemoryError)
]
EXPECTED = {
    "InvalidFilterError": 400,
    "InvalidNamespaceError": 400,
    "ValueNotSerializableError": 400,
    "InvalidMemoryURI": 400,
    "MemoryAccessDenied": 403,
    "CheckpointNotFoundError": 404,
    "MemoryNotFound": 404,
    "MemoryBackendNotFound": 404,
    "CheckpointConflictError": 409,
    "MemoryConflict": 409,
    "VersionConflictError": 412,
    "CheckpointCorruptError": 500,
    "BackendCorruptError": 500,
    "StoreCapabilityError": 501,
    "MissingDriverError": 501,
    "ModelRequestError": 502,
    "BackendUnavailableError": 503,
    "BackendClosedError": 503,
    "MemoryStoreClosed": 503,
    "MemoryTimeout": 504,
    "BackendWriteError": 507,
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_error_has_a_row_that_is_its_own_or_of_its_nearest_base(kind):
    row = next(base for base in kind.__mro__ if base in STATUS)
    assert row is not tree.LocusMemoryError or kind is tree.LocusMemoryError
    assert status_of(kind) == EXPECTED.get(kind.__name__, STATUS[row])


def test_no_outage_looks_like_something_that_is_not_there():
    outages = [kind for kind in KINDS if issubclass(kind, tree.BackendError)]
    assert {status_of(kind) // 100 for kind in outages} == {5}


def test_an_unforeseen_error_says_its_class_alone_and_is_an_event():
    with collect() as events:
        answer = error_response(RuntimeError("hunter2"))
    assert answer.status_code == 500
    assert orjson.loads(answer.body)["error"]["message"] == "internal error: RuntimeError"
    assert [event.name for event in events] == ["web.failed"]


def test_a_refusal_keeps_its_headers():
    answer = error_response(RefusalError(401, "no", headers={"WWW-Authenticate": "Bearer"}))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


class Broken:
    """A checkpointer whose database is gone."""

    async def list_threads(self, *arguments, **options):
        raise tree.BackendUnavailableError("redis: no connection")


async def test_an_outage_is_503_and_a_missing_path_404(plain, serving, monkeypatch):
    monkeypatch.setattr(type(plain), "checkpointer", Broken())
    async with serving(plain) as client:
        answer = await client.get("/threads")
        assert (answer.status_code, answer.json()["error"]["message"]) == (
            503,
            "redis: no connection",
        )
        assert (await client.get("/health")).status_code == 503
        for path in ("/thread", "/", "/store"):
            assert (await client.get(path)).status_code == 404
        wrong = await client.post("/health", json={})
        assert wrong.status_code == 405
        assert sorted(wrong.headers["allow"].split(", ")) == ["GET", "HEAD"]
