"""Errors as pages; one that a lost compare-and-swap raised shows both sides."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from locus_memory.errors import CheckpointCorruptError
from locus_memory.web.errors import StaleError, explain_error
from locus_memory.web.front import LOGIN, path_of
from locus_memory.web.pages.frame.links import link_of
from locus_memory.web.pages.frame.rendering import render

__all__ = ["fail"]


def fail(request: Request, error: Exception) -> Response:
    """Return the page for an error; without a session, the way to the login."""
    status, detail = explain_error(error)
    if status == HTTPStatus.UNAUTHORIZED:
        return _to_login(request)
    values: dict[str, Any] = {"code": status, "title": HTTPStatus(status).phrase, "detail": detail}
    if isinstance(error, StaleError):
        values |= {"current": error.current, "yours": error.yours}
        return render(request, "frame/conflict.html", status=status, **values)
    # The other checkpoints of the thread may be whole.
    thread = error.thread_id if isinstance(error, CheckpointCorruptError) else None
    answer = render(request, "frame/error.html", status=status, thread=thread, **values)
    if isinstance(error, HTTPException):
        answer.headers.update(error.headers or {})
    return answer


def _to_login(request: Request) -> Response:
    path, query = path_of(request.scope), request.url.query
    wanted = f"{path}?{query}" if query else path
    leads_back = request.method == "GET" and wanted != "/"
    where = link_of(request, LOGIN, next=wanted if leads_back else None)
    if "hx-request" in request.headers:
        # A script that asked for a part of a page lets the whole page go to the login.
        return Response(status_code=401, headers={"HX-Redirect": where})
    return RedirectResponse(where, status_code=303)
