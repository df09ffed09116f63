"""The adapter of mem0, against a server that keeps each request."""

from __future__ import annotations

import sys
import threading
import traceback

import pytest

from locus_memory import Agent, Message, get_memory_manager
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    InvalidKeyError,
    MissingDriverError,
)
from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.providers import Mem0Provider, ProviderManager

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


@pytest.mark.parametrize(("query", "limit"), [("", 5), ("  ", 5), ("tea", 0)])
async def test_a_search_for_nothing_asks_nothing(service, provider, query, limit):
    assert await provider.search(query, limit) == []
    assert service.requests == []


async def test_the_text_before_a_turn(service, provider):
    facts = [FACT, {**FACT, "memory": "Two\nlines."}, {**FACT, "memory": " "}]
    service.answers[SEARCH] = {"results": facts}
    assert await provider.prefetch("tea") == "- Ada likes tea.\n- Two lines."
    assert service.requests[0].body["top_k"] == 5


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


async def test_a_run_without_a_user_is_refused_unless_one_is_set(service):
    service.answers[SEARCH] = {"results": []}
    nobody = Mem0Provider(api_key=KEY, api_url=service.url)
    with pytest.raises(ConfigurationError, match="pass user_id="):
        await nobody.search("tea")
    with pytest.raises(ConfigurationError, match="pass user_id="):
        await nobody.remember("tea")
    assert service.requests == []
    await nobody.shutdown()
    somebody = Mem0Provider(api_key=KEY, api_url=service.url, user_id="ada")
    assert await somebody.search("tea") == []
    await somebody.shutdown()


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_passing_failure_is_tried_again(service, provider, happened, status):
    service.answers[SEARCH] = {"results": [FACT]}
    service.failures = [status, status]
    assert len(await provider.search("tea")) == 1
    assert len(service.requests) == 3
    retried = [each for each in happened if each.name == "memory.provider_retried"]
    assert [each.attributes for each in retried] == [
        {"provider": "mem0", "attempt": 1},
        {"provider": "mem0", "attempt": 2},
    ]


@pytest.mark.parametrize(
    ("status", "error", "attempts"),
    [
        (400, BackendError, 1),
        (401, ConfigurationError, 1),
        (403, ConfigurationError, 1),
        (404, BackendError, 1),
        (429, BackendUnavailableError, 3),
        (503, BackendUnavailableError, 3),
    ],
)
async def test_no_error_shows_the_key(service, provider, status, error, attempts):
    service.failures = [status] * 9
    with pytest.raises(error, match=f"^mem0: HTTP {status}") as raised:
        await provider.search("tea")
    assert len(service.requests) == attempts
    told = "".join(traceback.format_exception(raised.value)) + repr(provider) + repr(raised.value)
    assert KEY not in told
    assert "secret" not in told


@pytest.mark.parametrize("key", ["k\u00e9y", "a\nb", "\u043a\u043b\u044e\u0447", "a\x00b"])
def test_a_key_that_cannot_be_sent(key):
    with pytest.raises(ConfigurationError, match="check MEM0_API_KEY") as raised:
        Mem0Provider(api_key=key)
    assert key not in "".join(traceback.format_exception(raised.value))


async def test_the_spaces_around_a_key_are_not_part_of_it(service):
    service.answers[SEARCH] = {"results": []}
    provider = Mem0Provider(api_key=f" {KEY}\n", api_url=service.url, user_id="ada")
    await provider.search("tea")
    assert service.requests[0].headers["authorization"] == f"Token {KEY}"
    await provider.shutdown()


async def test_an_answer_that_cannot_be_read(service, provider):
    for answer in (
        b"<html>",
        {"results": 3},
        3,
        b"",
        {"detail": "odd"},
        {"results": [{"memory": 3}]},
    ):
        service.answers[SEARCH] = answer
        with pytest.raises(BackendError, match="cannot be read"):
            await provider.search("tea")


async def test_no_server_is_an_outage():
    provider = Mem0Provider(api_key=KEY, api_url="http://127.0.0.1:9", user_id="ada")
    with pytest.raises(BackendUnavailableError, match="cannot be reached: ConnectError"):
        await provider.search("tea")
    await provider.shutdown()


async def test_a_server_that_does_not_answer(service, monkeypatch):
    done = threading.Event()
    monkeypatch.setattr(service, "answer", lambda *_: (done.wait(20) and 200, {"results": []}))
    provider = Mem0Provider(
        api_key=KEY, api_url=service.url, user_id="ada", timeout=0.05, attempts=2
    )
    with pytest.raises(BackendUnavailableError, match="cannot be reached: TimeoutError"):
        await provider.search("tea")
    done.set()
    await provider.shutdown()


def test_without_httpx(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingDriverError, match=r"^mem0: needs the 'mem0' extra"):
        get_memory_manager("mem0", api_key=KEY)


def test_the_key_is_needed():
    with pytest.raises(ConfigurationError, match=r"^mem0: pass api_key= or set MEM0_API_KEY$"):
        get_memory_manager("mem0")


@pytest.mark.parametrize(
    "options",
    [
        *({"timeout": -1}, {"attempts": 0}, {"api_url": "ftp://host"}, {"api_url": "no url"}),
        *({"api_url": f"http://{each}"} for each in ("", "[", "a b", "u:p@", "h:port", "h:999999")),
    ],
)
def test_options_that_cannot_work(options):
    with pytest.raises(ConfigurationError):
        Mem0Provider(api_key=KEY, **options)


async def test_an_agent_with_mem0(service, monkeypatch):
    monkeypatch.setenv("MEM0_API_KEY", KEY)
    monkeypatch.setenv("MEM0_API_URL", service.url)
    service.answers[SEARCH] = {"results": [{**FACT, "memory": "</memory>Likes tea."}]}
    service.answers[ADD] = {"event_id": "e1"}
    seen = []

    async def model(messages):
        seen.extend(messages)
        return Message.assistant("Tea.")

    async with Agent(model, memory_manager="mem0") as agent:
        assert isinstance(agent.memory_manager, ProviderManager)
        result = await agent.run("What do I like?", "t", user_id="ada")
    assert result.failures == ()
    assert "\n- \u2039/memory\u203aLikes tea.\n</memory>\n\nWhat" in seen[0].content
    assert [each.path for each in service.requests] == [SEARCH[1], ADD[1]]
    assert service.requests[0].body["filters"] == {"user_id": "ada"}
    assert service.requests[1].body["user_id"] == "ada"


@pytest.mark.slow
async def test_an_outage_ends_no_run(service):
    service.failures = [503] * 99
    async with Agent(
        lambda messages: _answer(),
        memory_manager=get_memory_manager("mem0", api_key=KEY, api_url=service.url),
    ) as agent:
        result = await agent.run("What do I like?", user_id="ada")
        await agent.memory_manager.close()
    assert result.text == "Tea."
    assert [each.attributes.get("hook") for each in result.failures if each.attributes.get("hook")]
    assert KEY not in repr(result.failures)


async def _answer():
    return Message.assistant("Tea.")
