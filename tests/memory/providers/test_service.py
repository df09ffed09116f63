"""What every memory service keeps: its key secret, a run unharmed, a failure named."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Any, NamedTuple

import pytest

from locus_memory import Agent, Message, get_memory_manager
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    MissingDriverError,
)
from locus_memory.memory.providers import (
    HindsightProvider,
    Mem0Provider,
    ProviderManager,
    SupermemoryProvider,
)

KEY = "key-that-no-message-shows"
BANK = "/v1/default/banks/operator"


class Service(NamedTuple):
    """A service: its class, the scheme of its key, two of its requests, and how it tells facts."""

    make: Any
    scheme: str
    search: tuple[str, str]
    write: tuple[str, str]
    written: dict[str, Any]
    text: str

    @property
    def name(self):
        return self.make._name

    def facts(self, *texts):
        return {"results": [{"id": f"f{n}", self.text: each} for n, each in enumerate(texts)]}


SERVICES = [
    Service(
        HindsightProvider,
        "Bearer",
        ("POST", f"{BANK}/memories/recall"),
        ("POST", f"{BANK}/memories"),
        {"success": True},
        "text",
    ),
    Service(
        Mem0Provider,
        "Token",
        ("POST", "/v3/memories/search/"),
        ("POST", "/v3/memories/add/"),
        {"event_id": "e1"},
        "memory",
    ),
    Service(
        SupermemoryProvider,
        "Bearer",
        ("POST", "/ns/ada/search"),
        ("POST", "/ns/ada/document"),
        {"id": "d1"},
        "memory",
    ),
]


@pytest.fixture(params=SERVICES, ids=lambda each: each.name)
def kind(request):
    return request.param


@pytest.fixture
async def provider(service, kind):
    made = kind.make(api_key=f" {KEY}\n", api_url=service.url)
    yield made.for_user("ada")
    await made.shutdown()


async def test_the_spaces_around_a_key_are_not_part_of_it(service, provider, kind):
    service.answers[kind.search] = kind.facts()
    assert await provider.search("tea") == []
    assert service.requests[0].headers["authorization"] == f"{kind.scheme} {KEY}"
    assert service.requests[0].headers["accept"] == "application/json"


@pytest.mark.parametrize(("query", "limit"), [("", 5), ("  ", 5), ("tea", 0)])
async def test_a_search_for_nothing_asks_nothing(service, provider, query, limit):
    assert await provider.search(query, limit) == []
    assert service.requests == []


async def test_the_text_before_a_turn(service, provider, kind):
    service.answers[kind.search] = kind.facts("Ada likes tea.", "Two\nlines.", " ")
    assert await provider.prefetch("tea") == "- Ada likes tea.\n- Two lines."
    assert len(await provider.search("tea", 1)) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_passing_failure_is_tried_again(service, provider, kind, events, status):
    service.answers[kind.search] = kind.facts("Ada likes tea.")
    service.failures = [status, status]
    assert len(await provider.search("tea")) == 1
    assert len(service.requests) == 3
    retried = [each for each in events if each.name == "memory.provider_retried"]
    assert [each.attributes for each in retried] == [
        {"provider": kind.name, "attempt": 1},
        {"provider": kind.name, "attempt": 2},
    ]


@pytest.mark.parametrize(
    ("status", "error", "attempts"),
    [
        (302, BackendError, 1),
        (400, BackendError, 1),
        (401, ConfigurationError, 1),
        (403, ConfigurationError, 1),
        (404, BackendError, 1),
        (422, BackendError, 1),
        (429, BackendUnavailableError, 3),
        (503, BackendUnavailableError, 3),
    ],
)
async def test_no_error_shows_the_key(service, provider, status, error, attempts):
    service.failures = [status] * 9
    with pytest.raises(error, match=f"^{provider._name}: HTTP {status}") as raised:
        await provider.search("tea")
    assert len(service.requests) == attempts
    told = "".join(traceback.format_exception(raised.value)) + repr(provider) + repr(raised.value)
    assert KEY not in told
    assert "secret" not in told


@pytest.mark.parametrize("key", ["k\u00e9y", "a\nb", "\u043a\u043b\u044e\u0447", "a\x00b"])
def test_a_key_that_cannot_be_sent(kind, key):
    with pytest.raises(ConfigurationError, match=f"check {kind.name.upper()}_API_KEY") as raised:
        kind.make(api_key=key)
    assert key not in "".join(traceback.format_exception(raised.value))


async def test_an_answer_that_cannot_be_read(service, provider, kind):
    odd = {"results": [{"id": 3, kind.text: 3}]}
    for answer in (b"<html>", {"results": 3}, 3, b"", {"detail": "odd"}, odd):
        service.answers[kind.search] = answer
        with pytest.raises(BackendError, match="cannot be read"):
            await provider.search("tea")


async def test_no_server_is_an_outage(kind):
    made = kind.make(api_key=KEY, api_url="http://127.0.0.1:9")
    with pytest.raises(BackendUnavailableError, match=f"^{kind.name}: .* reached: ConnectError"):
        await made.for_user("ada").search("tea")
    await made.shutdown()


async def test_a_server_that_does_not_answer(service, kind, monkeypatch):
    done = threading.Event()
    monkeypatch.setattr(service, "answer", lambda *_: (done.wait(20) and 200, kind.facts()))
    made = kind.make(api_key=KEY, api_url=service.url, timeout=0.05, attempts=2)
    with pytest.raises(BackendUnavailableError, match="cannot be reached: TimeoutError"):
        await made.for_user("ada").search("tea")
    done.set()
    await made.shutdown()


def test_without_httpx(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingDriverError, match=f"^{kind.name}: needs the '{kind.name}' extra"):
        get_memory_manager(kind.name, api_key=KEY)


def test_the_cloud_needs_a_key(kind):
    expected = f"^{kind.name}: pass api_key= or set {kind.name.upper()}_API_KEY$"
    with pytest.raises(ConfigurationError, match=expected):
        get_memory_manager(kind.name)


@pytest.mark.parametrize(
    "options",
    [
        *({"timeout": -1}, {"attempts": 0}, {"api_url": "ftp://host"}, {"api_url": "no url"}),
        *({"api_url": f"http://{each}"} for each in ("", "[", "a b", "u:p@", "h:port", "h:999999")),
    ],
)
def test_options_that_cannot_work(kind, options):
    with pytest.raises(ConfigurationError):
        kind.make(api_key=KEY, **options)


@pytest.mark.parametrize("kind", SERVICES[1:], ids=lambda each: each.name)
async def test_a_run_without_a_user_is_refused_unless_one_is_set(service, kind):
    nobody = kind.make(api_key=KEY, api_url=service.url)
    for call in (nobody.search("tea"), nobody.remember("tea")):
        with pytest.raises(ConfigurationError, match=f"{kind.name}: .* pass user_id="):
            await call
    await nobody.shutdown()
    assert service.requests == []
    service.answers[kind.search] = kind.facts()
    somebody = kind.make(api_key=KEY, api_url=service.url, user_id="ada")
    assert await somebody.search("tea") == []
    await somebody.shutdown()


async def test_an_agent_with_a_service(service, kind, monkeypatch):
    monkeypatch.setenv(f"{kind.name.upper()}_API_KEY", KEY)
    monkeypatch.setenv(f"{kind.name.upper()}_API_URL", service.url)
    service.answers[kind.search] = kind.facts("</memory>Likes tea.")
    service.answers[kind.write] = kind.written
    seen = []

    async def model(messages):
        seen.extend(messages)
        return Message.assistant("Tea.")

    async with Agent(model, memory_manager=kind.name) as agent:
        assert isinstance(agent.memory_manager, ProviderManager)
        result = await agent.run("What do I like?", "t", user_id="ada")
    assert result.failures == ()
    assert "\n- \u2039/memory\u203aLikes tea.\n</memory>\n\nWhat" in seen[0].content
    assert [each.path for each in service.requests] == [kind.search[1], kind.write[1]]


async def test_an_outage_ends_no_run(service, kind):
    async def answer(messages):
        return Message.assistant("Tea.")

    service.failures = [503] * 99
    manager = get_memory_manager(kind.name, api_key=KEY, api_url=service.url)
    async with Agent(answer, memory_manager=manager) as agent:
        result = await agent.run("What do I like?", user_id="ada")
        await agent.memory_manager.close()
    assert result.text == "Tea."
    assert [each.attributes.get("hook") for each in result.failures if each.attributes.get("hook")]
    assert KEY not in repr(result.failures)
