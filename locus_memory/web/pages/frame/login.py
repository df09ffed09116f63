"""The login: the server's token once, then a cookie that scripts cannot read."""

from __future__ import annotations

from typing import Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from locus_memory.web.front import LOGIN, LOGOUT
from locus_memory.web.pages.frame.links import is_own_path
from locus_memory.web.pages.frame.visit import Visit, get, post
from locus_memory.web.security.sessions import Sessions, cookie_name, set_cookie

__all__ = ["ROUTES"]


async def _show(visit: Visit) -> Response:
    sessions: Sessions = visit.request.app.state.sessions
    session = sessions.read(visit.request)
    if not sessions.needs_token or (session is not None and session.is_signed_in):
        return visit.go(_next(visit))
    return visit.render("frame/login.html", next=_next(visit), is_wrong=False)


async def _sign_in(visit: Visit) -> Response:
    sessions: Sessions = visit.request.app.state.sessions
    if not sessions.knows((visit.text("token") or "").strip()):
        return visit.render("frame/login.html", status=403, next=_next(visit), is_wrong=True)
    root = str(visit.request.scope.get("root_path", ""))
    answer = RedirectResponse(root + _next(visit), status_code=303)
    # A new cookie: one from before the login may be known to somebody else.
    session = sessions.start(is_signed_in=True)
    set_cookie(answer, visit.request, cookie_name(visit.request), session.cookie)
    return answer


async def _sign_out(visit: Visit) -> Response:
    sessions: Sessions = visit.request.app.state.sessions
    await sessions.end(visit.request)
    answer = visit.go(LOGIN)
    set_cookie(answer, visit.request, cookie_name(visit.request), "")
    return answer


def _next(visit: Visit) -> str:
    wanted = visit.text("next") or "/"
    return wanted if is_own_path(wanted) else "/"


ROUTES: Final[tuple[BaseRoute, ...]] = (
    get(LOGIN, _show),
    post(LOGIN, _sign_in),
    post(LOGOUT, _sign_out),
)
