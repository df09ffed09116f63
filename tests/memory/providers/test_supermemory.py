"""The adapter of Supermemory, against a server that keeps each request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import (
    InvalidKeyError,
)
from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.providers import SupermemoryProvider

KEY = "key-that-no-message-shows"
SEARCH = ("POST", "/ns/ada/search")
DOCUMENT = ("POST", "/ns/ada/document")
FORGET = ("DELETE", "/ns/ada/memories")
FACT = {
    "id": "f1",
    "memory": "Ada likes tea.",
    "similarity": 0.5,
    "metadata": {"source": "manual"},
    "isLatest": True,
    "isInference": False,
    "system": {"updatedAt": "2026-03-02T10:00:00Z", "createdAt": "2026-03-01T10:00:00Z"},
}
CHUNK = {"id": "c1", "chunk": "Tea, said Ada.", "similarity": 0.25, "system": {"updatedAt": "t"}}


@pytest.fixture
async def provider(service):
    made = SupermemoryProvider(api_key=KEY, api_url=service.url)
    yield made.for_user("ada")
    await made.shutdown()


def check_request(request, method, path, body):
    assert (request.method, request.path, request.body) == (method, path, body)
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_search(service, provider):
    service.answers[SEARCH] = {"results": [FACT, CHUNK], "searchTime": 3}
    assert await provider.search(" tea? ", 3) == [
        MemorySearchResult("f1", "Ada likes tea.", 0.5, "manual", "2026-03-01T10:00:00Z"),
        MemorySearchResult("c1", "Tea, said Ada.", 0.25, "supermemory", "t"),
    ]
    check_request(service.requests[0], *SEARCH, {"query": "tea?", "limit": 3})
    assert await provider.search("  ") == await provider.search("tea", 0) == []
    assert len(service.requests) == 1


async def test_a_turn_and_a_fact_to_remember(service, provider):
    service.answers[DOCUMENT] = {"id": "d1", "status": "queued"}
    await provider.on_turn_complete("I like tea.", "Noted.", session_id="t")
    assert await provider.remember("Ada likes tea.") == "d1"
    turn, fact = service.requests
    told = {
        "content": "User: I like tea.\nAssistant: Noted.",
        "metadata": {"source": "turn", "session_id": "t"},
    }
    check_request(turn, *DOCUMENT, told)
    body = {"content": "Ada likes tea.", "metadata": {"source": "manual"}}
    check_request(fact, *DOCUMENT, body)


async def test_a_fact_to_forget(service, provider):
    service.answers[FORGET] = {"count": 1, "errors": [], "matches": []}
    assert await provider.forget("f1")
    check_request(service.requests[0], *FORGET, {"ids": ["f1"]})
    service.answers[FORGET] = {"count": 0, "errors": [{"id": "f2"}], "matches": []}
    assert not await provider.forget("f2")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_no_user_leads_to_the_memories_of_another(user):
    """A name is one segment of the path, whatever it is."""
    provider = SupermemoryProvider(api_key=KEY)
    provider._user = user
    if user in (".", ".."):
        return
    path = provider._where("search")
    assert path.startswith("/ns/")
    assert path.endswith("/search")
    assert path.count("/") == 3
    assert not set(path) & set("?#\\ \n")


@pytest.mark.parametrize("user", [".", ".."])
async def test_no_user_is_a_step_of_a_path(service, user):
    """A client makes `/ns/../search` another endpoint, and `/ns/./search` another namespace."""
    provider = SupermemoryProvider(api_key=KEY, api_url=service.url, user_id=user)
    for call in (provider.search("tea"), provider.remember("tea"), provider.forget("f1")):
        with pytest.raises(InvalidKeyError, match="a user id"):
            await call
    await provider.shutdown()
    assert service.requests == []
