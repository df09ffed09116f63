from __future__ import annotations

from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.requests import HTTPConnection

from locus_memory.web import make_app
from locus_memory.web.pages import make_pages

BASE = "http://127.0.0.1:8484"


class Browser:
    """A client that keeps cookies, and sends forms with the token of its session."""

    def __init__(self, client, app):
        self.client = client
        self.app = app

    async def get(self, path, /, **params):
        return await self.client.get(path, params=params or None)

    async def page(self, path, /, **params):
        """The text of a page that must be there."""
        answer = await self.get(path, **params)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        return answer.text

    async def post(self, path, /, **fields):
        return await self.client.post(path, data={"form_token": self.form_token, **fields})

    async def follow(self, answer):
        """The page that a form leads to."""
        assert answer.status_code == 303, answer.text
        return await self.page(answer.headers["location"])

    @property
    def form_token(self):
        """The token that the forms of this browser have, whether a page showed one or not."""
        jar = self.client.cookies.jar
        found = "; ".join(f"{each.name}={each.value}" for each in jar).encode()
        headers = [(b"cookie", found), (b"host", urlsplit(BASE).netloc.encode())]
        sessions = self.app.state.sessions
        session = sessions.read(HTTPConnection({"type": "http", "headers": headers}))
        return sessions.form_token(session)


@asynccontextmanager
async def browser_of(backend, settings=None, **options):
    """A browser of the pages over an open backend, in this event loop."""
    app = make_app(backend, settings, pages=make_pages(), **options)
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url=BASE) as client,
    ):
        browser = Browser(client, app)
        # The first page begins a session.
        await browser.get("/nothing" if settings is None or settings.token is None else "/login")
        yield browser


@pytest.fixture
async def browser(backend):
    """A browser over each kind of backend."""
    async with browser_of(backend) as browser:
        yield browser


@pytest.fixture
def browsing():
    """Returns `browser_of`, for settings of a test's own."""
    return browser_of
