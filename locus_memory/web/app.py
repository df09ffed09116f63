"""The ASGI application: the guard, the API, and the life of what both need."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from locus_memory.backends.base import Backend
from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.base import BaseStore
from locus_memory.web.api.events import stream_events
from locus_memory.web.api.openapi import openapi_document
from locus_memory.web.api.operation import Operation
from locus_memory.web.api.table import OPERATIONS, PREFIX
from locus_memory.web.errors import RefusalError, error_response
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
) -> Starlette:
    """Return the application over a backend.

    Args:
        backend: The backend, opened with `state_type=None`; the application never closes it.
        settings: Its settings; by default, of a server on this machine alone.
        embedder: Searches by meaning as well; `None`: by words alone.
        pages: The pages beside the API, of `locus_memory.web.pages.make_pages`; `None`: none.
    """
    data = Data(backend, settings or Settings(), embedder)
    sessions = Sessions(data.settings.token, store=_kept_in(data))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        del app
        data.journal.open()
        try:
            yield
        finally:
            data.journal.close()
            await data.close()

    app = Starlette(
        routes=[*_api_routes(), *(() if pages is None else pages.routes)],
        middleware=[Middleware(_guard, settings=data.settings, sessions=sessions, pages=pages)],
        exception_handlers={HTTPException: _unrouted(pages), Exception: _failed},
        lifespan=lifespan,
    )
    app.state.data, app.state.sessions, app.state.pages = data, sessions, pages
    return app


def _kept_in(data: Data) -> BaseStore | None:
    """Return the store that the application may write to."""
    with suppress(ConfigurationError):
        return None if data.settings.read_only else data.store
    return None


def _guard(app: ASGIApp, settings: Settings, sessions: Sessions, pages: Pages | None) -> ASGIApp:
    return Guard(app, settings, sessions, pages)


def _api_routes() -> list[BaseRoute]:
    by_path: dict[str, dict[str, Operation]] = {}
    for each in OPERATIONS:
        by_path.setdefault(each.path, {})[each.method] = each
    routes: list[BaseRoute] = [
        Route(PREFIX + path, _endpoint(operations), methods=list(operations))
        for path, operations in by_path.items()
    ]
    routes.append(Route(f"{PREFIX}/openapi.json", _describe))
    routes.append(Route(f"{PREFIX}/events/stream", stream_events))
    return routes


@cache
def _description() -> bytes:
    """Return the OpenAPI document; it takes longer to make than anything else here."""
    return orjson.dumps(openapi_document(OPERATIONS, PREFIX))


async def _describe(request: Request) -> Response:
    del request
    return Response(_description(), media_type="application/json")


def _endpoint(operations: dict[str, Operation]) -> Any:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await operations[method].answered(request)

    return answer


def _unrouted(pages: Pages | None) -> Callable[[Request, Exception], Any]:
    """Return the handler for a path or a method that does not exist."""

    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            reason = {404: "there is no such path", 405: "the path does not take this method"}
            message = reason.get(error.status_code, "the request cannot be answered")
            error = RefusalError(error.status_code, message, headers=error.headers)
        if pages is not None and pages.has(path_of(request.scope)):
            return pages.fail(request, error)
        return error_response(error)

    return answer


async def _failed(request: Request, error: Exception) -> Response:
    del request
    return error_response(error)
