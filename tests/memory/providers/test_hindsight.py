"""The adapter of Hindsight, against a server that keeps each request."""

from __future__ import annotations

from uuid import UUID

import pytest

from locus_memory.errors import (
    ConfigurationError,
    StoreCapabilityError,
)
from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.providers import HindsightProvider

KEY = "key-that-no-message-shows"
BANK = "/v1/default/banks/support"
RECALL = ("POST", f"{BANK}/memories/recall")
RETAIN = ("POST", f"{BANK}/memories")
REFLECT = ("POST", f"{BANK}/reflect")
FACT = {
    "id": "f1",
    "text": "Ada likes tea.",
    "type": "world",
    "mentioned_at": "2026-03-01T10:00:00Z",
    "scores": {"final": 0.5},
}
RETAINED = {"success": True, "bank_id": "support", "items_count": 1, "async": True}


@pytest.fixture
async def shared(service):
    made = HindsightProvider("support", api_key=KEY, api_url=f"{service.url}/")
    yield made
    await made.shutdown()


@pytest.fixture
def provider(shared):
    return shared.for_user("ada")


def check_request(request, method, path, **body):
    assert (request.method, request.path) == (method, path)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert {name: request.body.get(name) for name in body} == body


@pytest.mark.slow
async def test_search(service, provider):
    service.answers[RECALL] = {"results": [FACT, {"id": "f2", "text": "Bare."}]}
    assert await provider.search("tea?") == [
        MemorySearchResult("f1", "Ada likes tea.", 0.5, "world", "2026-03-01T10:00:00Z"),
        MemorySearchResult("f2", "Bare.", None, "hindsight", None),
    ]
    [request] = service.requests
    body = {"query": "tea?", "budget": "mid", "tags": ["user:ada"], "tags_match": "all_strict"}
    check_request(request, *RECALL, **body)
    assert len(await provider.search("tea?", 1)) == 1
    assert await provider.search(" ") == []
    assert len(service.requests) == 2


@pytest.mark.slow
async def test_a_run_without_a_user_sees_only_what_has_no_tag(service, shared):
    service.answers[RECALL] = {"results": []}
    service.answers[RETAIN] = RETAINED
    assert await shared.prefetch("tea?") == ""
    check_request(service.requests[0], *RECALL, tags=None, tags_match="exact")
    await shared.on_turn_complete("I like tea.", "Noted.")
    assert service.requests[1].body["items"][0].get("tags") is None


async def test_an_answer_before_a_turn(service):
    service.answers[REFLECT] = {"text": "Ada likes tea."}
    made = HindsightProvider(
        "support", api_url=service.url, prefetch_method="reflect", budget="low"
    )
    assert await made.for_user("ada").prefetch("tea?") == "Ada likes tea."
    [request] = service.requests
    assert "authorization" not in request.headers
    assert (request.method, request.path) == REFLECT
    assert request.body["query"] == "tea?"
    assert request.body["budget"] == "low"
    assert (request.body["tags"], request.body["tags_match"]) == (["user:ada"], "all_strict")
    assert await made.reflect("") == ""
    await made.shutdown()


async def test_a_turn(service, provider):
    service.answers[RETAIN] = RETAINED
    await provider.on_turn_complete("I like tea.", "Noted.", session_id="t")
    [request] = service.requests
    check_request(request, *RETAIN, **{"async": True})
    assert UUID(request.body["operation_id"])
    [item] = request.body["items"]
    assert item["content"] == "User: I like tea.\nAssistant: Noted."
    assert item["context"] == "conversation"
    assert item["tags"] == ["user:ada"]
    assert item["metadata"] == {"source": "turn", "session_id": "t"}


async def test_a_fact_to_remember(service, provider):
    service.answers[RETAIN] = RETAINED
    document = await provider.remember("Ada likes tea.")
    [item] = service.requests[0].body["items"]
    assert item["content"] == "Ada likes tea."
    assert item["document_id"] == document
    assert item["tags"] == ["user:ada"]
    with pytest.raises(StoreCapabilityError, match="HindsightProvider does not support"):
        await provider.forget(document)


async def test_a_write_that_is_tried_again_is_the_same_operation(service, provider):
    service.answers[RETAIN] = RETAINED
    service.failures = [503, 429]
    await provider.remember("Ada likes tea.")
    assert len(service.requests) == 3
    assert len({each.body["operation_id"] for each in service.requests}) == 1


async def test_a_bank_with_any_name(service):
    path = "/v1/default/banks/a%20b%2Fc/memories/recall"
    service.answers["POST", path] = {"results": []}
    made = HindsightProvider("a b/c", api_url=service.url)
    assert await made.search("tea") == []
    await made.shutdown()


async def test_the_limit_of_tokens(service):
    service.answers[RECALL] = {"results": []}
    made = HindsightProvider("support", api_url=service.url, recall_max_tokens=300)
    await made.search("tea")
    assert service.requests[0].body["max_tokens"] == 300
    await made.shutdown()


async def test_the_environment(service, monkeypatch):
    monkeypatch.setenv("HINDSIGHT_API_URL", service.url)
    monkeypatch.setenv("HINDSIGHT_API_KEY", KEY)
    monkeypatch.setenv("HINDSIGHT_BANK_ID", "support")
    monkeypatch.setenv("HINDSIGHT_RECALL_BUDGET", "high")
    service.answers[RECALL] = {"results": []}
    made = HindsightProvider()
    await made.search("tea")
    check_request(service.requests[0], *RECALL, budget="high")
    assert HindsightProvider("other").bank_id == "other"
    await made.shutdown()


@pytest.mark.parametrize(
    "options",
    [
        {"budget": "all"},
        {"prefetch_method": "guess"},
        {"recall_max_tokens": 0},
    ],
)
def test_options_that_cannot_work(options):
    with pytest.raises(ConfigurationError):
        HindsightProvider("support", api_key=KEY, **options)
