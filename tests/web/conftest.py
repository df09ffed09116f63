from __future__ import annotations

from contextlib import asynccontextmanager

import httpx2
import pytest

from locus_memory.registry import open_backend
from locus_memory.web import make_app
from locus_memory.web.api.operation import PREFIX
from locus_memory.web.api.table import OPERATIONS

BASE = "http://127.0.0.1:8484"
API = f"{BASE}{PREFIX}"
ENDING = [each for each in OPERATIONS if each.name != "stream_events"]
"""The endpoints whose answers end."""


def below(operation):
    """The path of an endpoint, as the client of these tests takes it."""
    return operation.path.removeprefix(PREFIX)


@asynccontextmanager
async def client_of(backend, settings=None, **options):
    """A client of the application over an open backend, in this event loop."""
    app = make_app(backend, settings, **options)
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url=API) as client,
    ):
        yield client


@pytest.fixture
async def backend(provider):
    where, options = provider
    async with open_backend(where, state_type=None, **options) as backend:
        yield backend


@pytest.fixture
async def plain():
    async with open_backend("memory", state_type=None) as backend:
        yield backend


@pytest.fixture
async def client(backend):
    """A client over each kind of backend."""
    async with client_of(backend) as client:
        yield client


@pytest.fixture
def serving():
    """Returns `client_of`, for settings of a test's own."""
    return client_of
