"""The adapter of mem0, against a server that keeps each request."""

from __future__ import annotations

import pytest

from locus_memory.errors import (
    InvalidKeyError,
)
from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.providers import Mem0Provider

KEY = "key-that-no-message-shows"
SEARCH = ("POST", "/v3/memories/search/")
ADD = ("POST", "/v3/memories/add/")
FACT = {
    "id": "f1",
    "memory": "Ada likes tea.",
    "user_id": "ada",
    "score": 0.5,
    "metadata": {"source": "manual"},
    "created_at": "2026-03-01T10:00:00Z",
}


@pytest.fixture
async def provider(service):
    made = Mem0Provider(api_key=KEY, api_url=service.url)
    yield made.for_user("ada")
    await made.shutdown()


def check_request(request, method, path, body):
    assert (request.method, request.path, request.body) == (method, path, body)
    assert request.headers["authorization"] == f"Token {KEY}"
    assert request.headers["accept"] == "application/json"


@pytest.mark.slow
async def test_search(service, provider):
    stranger = {**FACT, "id": "f2", "user_id": "bob"}
    service.answers[SEARCH] = {"results": [FACT, stranger, {"memory": "Bare."}]}
    assert await provider.search(" tea? ", 3) == [
        MemorySearchResult("f1", "Ada likes tea.", 0.5, "manual", "2026-03-01T10:00:00Z"),
        MemorySearchResult("", "Bare.", None, "mem0", None),
    ]
    [request] = service.requests
    body = {"query": "tea?", "filters": {"user_id": "ada"}, "top_k": 3}
    check_request(request, *SEARCH, body)


async def test_a_turn(service, provider):
    service.answers[ADD] = {"event_id": "e1", "status": "PENDING"}
    await provider.on_turn_complete("I like tea.", "Noted.", session_id="t")
    body = {
        "messages": [
            {"role": "user", "content": "I like tea."},
            {"role": "assistant", "content": "Noted."},
        ],
        "user_id": "ada",
        "metadata": {"source": "turn", "session_id": "t"},
    }
    check_request(service.requests[0], *ADD, body)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"event_id": "e1", "status": "PENDING"}, "e1"),
        ({"message": "Queued."}, ""),
    ],
)
async def test_a_fact_to_remember(service, provider, answer, expected):
    service.answers[ADD] = answer
    assert await provider.remember("Ada likes tea.") == expected
    body = {
        "messages": [{"role": "user", "content": "Ada likes tea."}],
        "user_id": "ada",
        "infer": False,
        "metadata": {"source": "manual"},
    }
    check_request(service.requests[0], *ADD, body)


async def test_a_fact_to_forget(service, provider):
    path = "/v1/memories/f%2F1/"
    service.answers["GET", path] = FACT
    service.answers["DELETE", path] = {"message": "deleted"}
    assert await provider.forget("f/1")
    check_request(service.requests[0], "GET", path, None)
    check_request(service.requests[1], "DELETE", path, None)


@pytest.mark.parametrize("memory_id", [".", ".."])
async def test_no_id_of_a_memory_is_a_step_of_a_path(service, provider, memory_id):
    with pytest.raises(InvalidKeyError, match="a memory id"):
        await provider.forget(memory_id)
    assert service.requests == []


async def test_a_fact_of_another_user_is_not_there(service, provider):
    service.answers["GET", "/v1/memories/f1/"] = {**FACT, "user_id": "bob"}
    assert not await provider.forget("f1")
    assert not await provider.forget("f2")
    assert {each.method for each in service.requests} == {"GET"}
