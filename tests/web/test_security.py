"""The checks of each request: host, origin, token, method, size; and what an answer never holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from locus_memory.errors import ConfigurationError
from locus_memory.web import Settings
from locus_memory.web.security.hosts import is_allowed_host, is_same_origin
from locus_memory.web.settings import is_loopback
from tests.web.conftest import ENDING, below

TOKEN = "a-token-of-20-letters"
LOCAL = Settings()
OPEN = Settings(host="0.0.0.0", token=TOKEN, allowed_hosts=("memory.example",))


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8484", "127.0.0.1", "127.9.9.9:80", "[::1]:8484", "ui.localhost"],
)
def test_a_loopback_name_is_allowed(host):
    assert is_allowed_host(host, LOCAL)
    assert is_allowed_host(host, OPEN)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8484",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example/localhost",
        "localhost:port",
        "[::1",
        "10.0.0.7",
    ],
)
def test_a_name_that_a_foreign_page_can_have_is_not(host):
    assert not is_allowed_host(host, LOCAL)


def test_another_machine_uses_an_address_or_a_name_that_was_allowed():
    assert is_allowed_host("10.0.0.7:8484", OPEN)
    assert is_allowed_host("[fe80::1]", OPEN)
    assert is_allowed_host("Memory.Example:80", OPEN)
    assert not is_allowed_host("other.example", OPEN)


@given(st.text())
def test_any_host_is_judged_and_only_this_machine_is_allowed(host):
    if is_allowed_host(host, LOCAL):
        assert "localhost" in host.lower() or "127." in host or ":" in host or "१" in host


def test_an_origin_is_that_of_the_host():
    assert is_same_origin("http://localhost:8484", "localhost:8484")
    assert is_same_origin("https://Memory.Example", "memory.example")
    for origin in ("null", "", "http://localhost:1", "http://evil", "file://localhost:8484", "//["):
        assert not is_same_origin(origin, "localhost:8484")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "memory.example"])
def test_an_address_that_others_reach_needs_a_token(host):
    with pytest.raises(ConfigurationError, match="LOCUS_MEMORY_TOKEN"):
        Settings(host=host)
    assert Settings(host=host, token=TOKEN).host == host
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "token", ["", "short", "fifteen-letters", "with a space inside it", "ü" * 20]
)
def test_a_weak_token_is_refused_and_not_quoted(token):
    with pytest.raises(ConfigurationError) as caught:
        Settings(token=token)
    assert not token or token not in str(caught.value)
    assert TOKEN not in repr(Settings(token=TOKEN))


@pytest.mark.parametrize(
    "settings", [{"port": -1}, {"port": 70_000}, {"host": ""}, {"max_body_bytes": 0}]
)
def test_a_setting_that_cannot_work_is_refused(settings):
    with pytest.raises(ConfigurationError):
        Settings(**settings)


async def test_dns_rebinding_is_refused_before_anything_is_read(plain, serving):
    await plain.store.put(("secrets",), "k", "the value")
    async with serving(plain) as client:
        answer = await client.get(
            "/store/items", params={"namespace": "secrets"}, headers={"host": "evil.example"}
        )
        assert answer.status_code == 421
        assert "the value" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_a_page_of_another_origin_writes_nothing(plain, serving, headers):
    async with serving(plain) as client:
        body = {"namespace": ["a"], "key": "k", "value": 1}
        answer = await client.put("/store/item", json=body, headers=headers)
        assert answer.status_code == 403
    assert not await plain.store.exists(("a",), "k")


async def test_a_form_of_a_foreign_page_writes_nothing(plain, serving):
    body = json.dumps({"namespace": ["a"], "dry_run": False})
    await plain.store.put(("a",), "k", 1)
    async with serving(plain) as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", None):
            headers = {} if kind is None else {"content-type": kind}
            answer = await client.post("/store/clear", content=body, headers=headers)
            assert answer.status_code == 415
    assert await plain.store.exists(("a",), "k")


async def test_a_token_is_asked_for_on_every_path(plain, serving):
    async with serving(plain, Settings(token=TOKEN)) as client:
        for path in ("/health", "/openapi.json", "/events/stream", "/nothing"):
            for shown in (None, "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xfc"):
                headers = {} if shown is None else {"authorization": shown.encode("latin-1")}
                answer = await client.get(path, headers=headers)
                assert answer.status_code == 401, (path, shown)
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert TOKEN not in answer.text
        answer = await client.get("/health", headers={"authorization": f"bearer {TOKEN}"})
        assert answer.status_code == 200


async def everything_in(backend):
    store, checkpointer = backend.store, backend.checkpointer
    spaces = await store.list_namespaces(None, 1000)
    items = [item for space in spaces for item in await store.scan(space, 1000)]
    threads = await checkpointer.list_threads(1000)
    return items, [await checkpointer.list_with_metadata(name, 1000) for name in threads]


async def test_a_read_only_server_changes_nothing(plain, serving):
    async with serving(plain) as client:
        for content in ("Ada lives in Riga.", "Ada is a vegetarian."):
            await client.post("/memory/remember", json={"content": content, "user": "ada"})
    await plain.checkpointer.save({"messages": [{"role": "user", "content": "hi"}]}, "trip")
    before = await everything_in(plain)
    values = {
        "namespace": ["locus_memory", "users", "ada", "current"],
        "key": "k",
        "value": 1,
        "thread": "trip",
        "new_thread": "other",
        "user": "ada",
        "query": "Riga",
        "content": "x",
        "text": "x",
        "dry_run": False,
        "confirm": "ada",
        "keep_last": 1,
        "type": "user",
        "source": "s",
    }
    async with serving(plain, Settings(read_only=True)) as client:
        for each in ENDING:
            given = {name: values[name] for name in each.asked.model_fields if name in values}
            if each.method == "GET":
                given = {name: v for name, v in given.items() if name != "content"}
                answer = await client.get(below(each), params=given)
                assert answer.status_code in {200, 404}, (each.path, answer.text)
            else:
                how = {"params": given} if each.in_query else {"json": given}
                answer = await client.request(each.method, below(each), **how)
                assert (answer.status_code, each.path) == (403, each.path)
                assert "read-only" in answer.json()["error"]["message"]
    assert await everything_in(plain) == before


async def test_a_body_has_a_largest_size_whatever_it_announces(plain, serving):
    async def parts():
        for _ in range(100):
            yield b" " * 100

    settings = Settings(max_body_bytes=1_000)
    kind = {"content-type": "application/json"}
    async with serving(plain, settings) as client:
        body = {"namespace": ["a"], "key": "k", "value": "x" * 2_000}
        assert (await client.put("/store/item", json=body)).status_code == 413
        answer = await client.put("/store/item", content=parts(), headers=kind)
        assert answer.status_code == 413
        headers = {**kind, "content-length": "many"}
        answer = await client.put("/store/item", content=b"{}", headers=headers)
        assert answer.status_code == 400
        body["value"] = "x" * 500
        assert (await client.put("/store/item", json=body)).status_code == 200


async def test_the_framework_reports_no_request(plain, serving, monkeypatch):
    """A query may hold somebody's words, and newer versions of FastAPI trace each request."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    async with serving(plain) as client:
        assert (await client.get("/memory/search", params={"query": "hunter2"})).status_code == 200
    assert exporter.get_finished_spans() == ()


async def test_each_answer_keeps_a_browser_from_foreign_code(plain, serving):
    await plain.store.put(("a",), "k", "<script>alert(1)</script>")
    async with serving(plain) as client:
        found = await client.get("/store/item", params={"namespace": "a", "key": "k"})
        for answer in (found, await client.get("/nothing"), await client.get("/health?x=1")):
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "unsafe-inline" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["cache-control"] == "no-store"
            assert "access-control-allow-origin" not in answer.headers


async def test_no_answer_of_an_invalid_request_holds_its_values(plain, serving):
    secret = "hunter2-hunter2"
    async with serving(plain) as client:
        answers = [
            await client.get("/health", params={"x": secret}),
            await client.get("/store/items", params={"namespace": "a", "limit": secret}),
            await client.get("/store/items", params={"namespace": "a", "cursor": secret}),
            await client.get("/store/search", params={"namespace": "a", "filter": secret}),
            await client.put("/store/item", json={"namespace": ["a"], "key": 1, "value": secret}),
            await client.put("/store/item", content=secret, headers={"content-type": "text/plain"}),
            await client.post("/memory/remember", json={"content": f"My password is {secret}"}),
        ]
    for answer in answers:
        assert answer.status_code in {400, 415, 422}
        assert secret not in answer.text
