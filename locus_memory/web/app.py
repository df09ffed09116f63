"""The ASGI application: the guard, the API, and the life of what both need."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from locus_memory.backends.base import Backend
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.web.api.operation import PREFIX
from locus_memory.web.api.table import OPERATIONS, openapi_document
from locus_memory.web.errors import error_response
from locus_memory.web.front import Pages, path_of
from locus_memory.web.questions.data import Data
from locus_memory.web.security.guard import Guard
from locus_memory.web.security.sessions import Sessions
from locus_memory.web.settings import Settings

__all__ = ["make_app"]


def make_app(
    backend: Backend,
    settings: Settings | None = None,
    *,
    embedder: Embedder | None = None,
    pages: Pages | None = None,
) -> FastAPI:
    """Return the application over a backend.

    Args:
        backend: The backend, opened with `state_type=None`; the application never closes it.
        settings: Its settings; by default, of a server on this machine alone.
        embedder: Searches by meaning as well; `None`: by words alone.
        pages: The pages beside the API, of `locus_memory.web.pages.make_pages`; `None`: none.
    """
    data = Data(backend, settings or Settings(), embedder)
    sessions = Sessions(
        data.settings.token, store=None if data.settings.read_only else data.parts[0]
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        del app
        data.journal.open()
        try:
            yield
        finally:
            data.journal.close()
            await data.close()

    app = FastAPI(
        routes=[*OPERATIONS, *(() if pages is None else pages.routes)],
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        root_path_in_servers=False,
        # Newer versions report each request to whatever traces the process.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        middleware=[Middleware(Guard, settings=data.settings, sessions=sessions, pages=pages)],
        exception_handlers={HTTPException: _unrouted(pages), Exception: _failed},
        lifespan=lifespan,
    )
    app.openapi = openapi_document  # type: ignore[method-assign]
    app.state.data, app.state.sessions, app.state.pages = data, sessions, pages
    return app


def _unrouted(pages: Pages | None) -> Callable[[Request, Exception], Any]:
    """Return the handler for a path or a method that does not exist."""

    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            error.headers = {"Allow": ", ".join(_methods_of(request))}
        if pages is not None and pages.has(path_of(request.scope)):
            return pages.fail(request, error)
        return error_response(error)

    return answer


def _methods_of(request: Request) -> list[str]:
    """Return the methods that the routes of a path take."""
    found = {
        method
        for route in request.app.routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in getattr(route, "methods", ())
    }
    return sorted(found | ({"HEAD"} if "GET" in found else set()))


async def _failed(request: Request, error: Exception) -> Response:
    del request
    return error_response(error)
