"""What all pages share: sessions, form tokens, the login, static files, errors and the layout."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from starlette.requests import HTTPConnection

from locus_memory.events import emit
from locus_memory.inspection.text import counted
from locus_memory.registry import open_backend
from locus_memory.web import Settings, make_app
from locus_memory.web.pages import make_pages
from locus_memory.web.pages.frame.filters import as_json, as_moment, as_size
from locus_memory.web.pages.frame.links import is_own_path
from locus_memory.web.pages.groups import GROUPS
from locus_memory.web.security.sessions import Sessions

TOKEN = "a-token-of-20-letters"
ROUTES = make_pages().routes
FORMS = sorted(route.path for route in ROUTES if "POST" in (getattr(route, "methods", None) or ()))
PAGES = sorted(
    route.path for group in GROUPS for route in group.routes if "GET" in (route.methods or ())
)


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_without_its_token_is_refused(plain, browsing, path):
    async with browsing(plain) as browser, browsing(plain) as other:
        await browser.get("/")
        await other.get("/")
        good = browser.form_token
        for shown in (None, "", "x", good[:-1], good + "0", "\N{SNOWMAN}", other.form_token):
            fields = {"other": "x"} if shown is None else {"form_token": shown}
            answer = await browser.client.post(path, data=fields)
            assert answer.status_code == 403, (path, shown)
            assert "load the page once more" in answer.text
        browser.client.cookies.clear()
        answer = await browser.client.post(path, data={"form_token": good})
        assert answer.status_code == 403


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_of_another_kind_or_origin_is_refused(plain, browsing, path):
    async with browsing(plain) as browser:
        await browser.get("/")
        fields = {"form_token": browser.form_token}
        assert (await browser.client.post(path, json=fields)).status_code == 415
        for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "same-site"}):
            answer = await browser.client.post(path, data=fields, headers=headers)
            assert answer.status_code == 403
            assert "another" in answer.text
        answer = await browser.client.post(path, data=fields, headers={"host": "evil.example"})
        assert answer.status_code == 421


@pytest.mark.parametrize("path", FORMS)
async def test_a_read_only_server_refuses_each_form(plain, browsing, path):
    async with browsing(plain, Settings(read_only=True)) as browser:
        text = await browser.page("/")
        assert "read-only" in text
        answer = await browser.post(path)
        if path not in ("/login", "/logout"):
            assert answer.status_code == 403
            assert "read-only" in answer.text


async def test_each_page_needs_the_token_when_there_is_one(plain, browsing):
    async with browsing(plain, Settings(token=TOKEN, database="the-database")) as browser:
        for path in (*PAGES, "/nothing", "/api/v1/health"):
            answer = await browser.get(path)
            if path.startswith("/api"):
                assert answer.status_code == 401
            else:
                assert (answer.status_code, answer.text) == (303, "")
        for path in FORMS:
            answer = await browser.post(path)
            assert answer.status_code in (303, 403)
            assert answer.headers.get("location", "/login").startswith("/login")
        answer = await browser.client.get("/", headers={"hx-request": "true"})
        assert (answer.status_code, answer.headers["hx-redirect"]) == (401, "/login")
        for path in ("/login", "/static/x/nothing"):
            assert "the-database" not in (await browser.get(path)).text


async def test_the_login_takes_the_token_and_leads_back(plain, browsing):
    async with browsing(plain, Settings(token=TOKEN)) as browser:
        answer = await browser.get("/", x="1 & 2")
        where = answer.headers["location"]
        assert parse_qs(urlsplit(where).query) == {"next": ["/?x=1+%26+2"]}
        text = await browser.page(where)
        assert 'value="/?x=1+%26+2"' in text
        before = dict(browser.client.cookies)
        for wrong in ("", "wrong", TOKEN[:-1], TOKEN + "x", "\N{SNOWMAN}" * 20):
            answer = await browser.post("/login", token=wrong, next="/")
            assert answer.status_code == 403
            assert "not the token" in answer.text
            assert (await browser.get("/")).status_code == 303
        answer = await browser.post("/login", token=TOKEN, next="/?x=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/?x=1")
        cookie = answer.headers["set-cookie"]
        assert all(each in cookie for each in ("HttpOnly", "SameSite=strict", "Path=/"))
        assert TOKEN not in cookie
        assert dict(browser.client.cookies) != before
        assert "Sign out" in await browser.page("/")
        assert (await browser.get("/api/v1/health")).status_code == 200
        answer = await browser.post("/logout")
        assert answer.headers["location"] == "/login"
        assert (await browser.get("/")).status_code == 303


async def test_the_login_leads_to_no_other_server(plain, browsing):
    async with browsing(plain, Settings(token=TOKEN)) as browser:
        for wanted in ("//evil.example", "/\\evil.example", "http://evil.example", "/\n/evil"):
            assert not is_own_path(wanted)
            answer = await browser.post("/login", token=TOKEN, next=wanted)
            assert answer.headers["location"] == "/"


def connection(cookie):
    headers = [(b"cookie", f"locus_memory_80={cookie}".encode()), (b"host", b"localhost:80")]
    return HTTPConnection({"type": "http", "headers": headers})


def test_a_session_belongs_to_the_token_and_ends():
    now = 1_000.0
    sessions = Sessions(TOKEN, clock=lambda: now)
    session = sessions.start(is_signed_in=True)
    read = sessions.read(connection(session.cookie))
    assert read == session
    assert Sessions(TOKEN, clock=lambda: now).read(connection(session.cookie)) == session
    for others in (Sessions(TOKEN + "x"), Sessions(None)):
        assert others.read(connection(session.cookie)) is None
    visitor = sessions.start(is_signed_in=False)
    assert not sessions.read(connection(visitor.cookie)).is_signed_in
    assert sessions.read(connection("o" + visitor.cookie[1:])) is None
    assert sessions.form_token(session) != sessions.form_token(visitor)
    assert not sessions.accepts(session, sessions.form_token(visitor))
    assert sessions.accepts(session, sessions.form_token(session))
    assert not sessions.accepts(None, sessions.form_token(session))
    now += 12 * 3600
    assert sessions.read(connection(session.cookie)) is None


def test_two_servers_on_one_host_keep_their_cookies_apart():
    sessions = Sessions(None)
    cookie = sessions.start(is_signed_in=False).cookie
    headers = [(b"cookie", f"locus_memory_80={cookie}".encode()), (b"host", b"localhost:81")]
    assert sessions.read(HTTPConnection({"type": "http", "headers": headers})) is None
    assert sessions.read(connection(cookie)) is not None


@pytest.mark.parametrize("path", PAGES)
async def test_each_page_has_the_headers_and_no_inline_code(plain, browsing, path):
    async with browsing(plain) as browser:
        answer = await browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        check_markup(answer.text)


def check_markup(text):
    assert not re.search(r"<script(?![^>]* src=)", text)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|https?://(?!www\.w3\.org)", text)
    assert text.count("<h1") == 1
    assert len(set(re.findall(r'\sid="([^"]+)"', text))) == len(re.findall(r'\sid="', text))


async def test_what_is_not_there_is_a_page_or_json(plain, browsing):
    async with browsing(plain) as browser:
        answer = await browser.get("/nothing/<script>")
        assert (answer.status_code, "text/html" in answer.headers["content-type"]) == (404, True)
        assert "<script>" not in answer.text
        assert (await browser.client.delete("/")).status_code == 405
        answer = await browser.get("/api/v1/nothing")
        assert answer.json()["error"]["type"] == "Refused"


async def test_static_files_have_tags_and_no_other_file_is_served(plain, browsing):
    async with browsing(plain) as browser:
        text = await browser.page("/")
        found = re.findall(r'(?:href|src)="(/static/[^"]+)"', text)
        assert len(set(found)) == 5
        for path in found:
            answer = await browser.client.get(path)
            assert answer.status_code == 200
            assert "immutable" in answer.headers["cache-control"]
            tag = answer.headers["etag"]
            again = await browser.client.get(path, headers={"if-none-match": f'"x", {tag}'})
            assert (again.status_code, again.content) == (304, b"")
            old = await browser.client.get(path.replace(path.split("/")[2], "old"))
            assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")
        for name in ("vendor/htmx.LICENSE.txt", "../app.py", "%2e%2e/app.py", "/etc/passwd"):
            answer = await browser.client.get(f"/static/x/{name}", follow_redirects=True)
            assert answer.status_code == 404


def test_the_vendored_script_has_its_licence():
    vendor = files("locus_memory.web").joinpath("static", "vendor")
    assert "Zero-Clause BSD" in vendor.joinpath("htmx.LICENSE.txt").read_text("utf-8")
    assert 'version:"2' in vendor.joinpath("htmx.min.js").read_text("utf-8")


async def test_the_application_can_be_mounted_below_a_path(plain):
    app = make_app(plain, pages=make_pages())
    transport = httpx2.ASGITransport(app=app, root_path="/memory")
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        text = (await client.get("/memory/")).text
        assert 'href="/memory/"' in text
        assert 'src="/memory/static/' in text
        assert 'href="/static' not in text


def test_sizes_moments_and_json_are_told_as_they_are():
    assert [as_size(each) for each in (None, 0, 999, 1_000, 999_949, 1_234_567, 10**16)] == [
        "—", "0 B", "999 B", "1.0 kB", "999.9 kB", "1.2 MB", "10000.0 TB"
    ]  # fmt: skip
    assert as_moment("2026-03-01T10:00:00+02:00") == "2026-03-01 08:00:00"
    assert as_moment(0) == "1970-01-01 00:00:00"
    assert (as_moment("soon"), as_moment(None)) == ("soon", "—")
    assert [counted(each, "item") for each in (0, 1, 1_200)] == ["0 items", "1 item", "1,200 items"]
    assert [counted(each, "memory", "memories") for each in (1, 2)] == ["1 memory", "2 memories"]
    assert as_json({"n": 10**30, "t": "é"}, indent=None) == '{"n": 1' + "0" * 30 + ', "t": "é"}'


async def replayed(browser, path, cookies):
    """Ask for a page with these cookies in place of the browser's own."""
    browser.client.cookies.clear()
    header = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return (await browser.client.get(path, headers={"cookie": header})).status_code


async def test_signing_out_ends_the_session_for_whoever_has_its_cookie(browsing, tmp_path):
    async with open_backend(f"sqlite:{tmp_path / 'a.db'}", state_type=None) as backend:
        settings = Settings(token=TOKEN)
        async with browsing(backend, settings) as browser, browsing(backend, settings) as other:
            await browser.page("/login")
            await browser.post("/login", token=TOKEN, next="/")
            kept = dict(browser.client.cookies)
            assert await replayed(other, "/", kept) == 200
            await browser.post("/logout")
            for each in (other, browser):
                assert await replayed(each, "/", kept) == 303
                assert await replayed(each, "/login", kept) == 200
                assert await replayed(each, "/api/v1/health", kept) == 401
        async with browsing(backend, settings) as restarted:
            assert await replayed(restarted, "/", kept) == 303
            assert await replayed(restarted, "/api/v1/health", kept) == 401


@pytest.mark.parametrize("where", ["memory", "file:./kept"])
async def test_a_server_that_may_not_write_ends_a_session_by_itself(
    browsing, tmp_path, monkeypatch, where
):
    monkeypatch.chdir(tmp_path)
    settings = Settings(token=TOKEN, read_only=where == "memory")
    async with open_backend(where, state_type=None) as backend:
        async with browsing(backend, settings) as browser:
            await browser.page("/login")
            await browser.post("/login", token=TOKEN, next="/login")
            kept = dict(browser.client.cookies)
            assert (await browser.get("/login")).status_code == 303
            await browser.post("/logout")
            assert await replayed(browser, "/login", kept) == 200
            assert await replayed(browser, "/api/v1/health", kept) == 401
        if where == "memory":
            assert await backend.store.list_namespaces() == []


async def test_a_visitor_who_signs_out_writes_nothing(plain, browsing):
    async with browsing(plain, Settings(token=TOKEN)) as browser:
        await browser.page("/login")
        await browser.post("/logout")
        assert await plain.store.list_namespaces() == []


def test_ended_sessions_are_forgotten_with_their_time():
    now = 1_000.0
    sessions = Sessions(TOKEN, clock=lambda: now)

    async def work():
        for _ in range(5):
            await sessions.end(connection(sessions.start(is_signed_in=True).cookie))

    asyncio.run(work())
    assert len(sessions._ended) == 5
    now += 12 * 3600
    asyncio.run(sessions.end(connection(sessions.start(is_signed_in=True).cookie)))
    assert len(sessions._ended) == 1


async def test_a_form_has_a_largest_size(plain, browsing):
    async with browsing(plain, Settings(max_body_bytes=1_000)) as browser:
        await browser.page("/memories/list")
        answer = await browser.post("/memories/remember", content="Ada " * 1_000)
        assert answer.status_code == 413
    assert not await plain.store.list_namespaces()


async def test_a_stream_of_events_ends_with_its_session(plain, browsing):
    async with browsing(plain, Settings(token=TOKEN)) as browser:
        await browser.page("/login")
        await browser.post("/login", token=TOKEN, next="/")
        stream = asyncio.create_task(browser.get("/api/v1/events/stream"))
        for _ in range(100):
            await asyncio.sleep(0)
        assert browser.app.state.data.journal.readers == 1
        await browser.post("/logout")
        emit("memory.duplicate_dropped", type="user")
        async with asyncio.timeout(10):
            answer = await stream
        assert "duplicate_dropped" not in answer.text
