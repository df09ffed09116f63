"""Templates: their environment, in which everything is escaped, and the answer that they become."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, Response

from locus_memory.web.front import Pages, path_of
from locus_memory.web.pages.frame.filters import FILTERS
from locus_memory.web.pages.frame.links import link_of
from locus_memory.web.pages.frame.static import address_of
from locus_memory.web.questions.data import Data
from locus_memory.web.security.sessions import Sessions, cookie_name, set_cookie

__all__ = ["render", "say"]

_LONGEST_SENTENCE: Final = 600


@cache
def environment() -> Environment:
    """Return the environment of the templates."""
    found = Environment(
        loader=PackageLoader("locus_memory.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(FILTERS)
    return found


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Return a page, and begin a session if the browser has none.

    Args:
        request: The request.
        template: The name of a template.
        status: The status code.
        values: The values of the template.
    """
    sessions: Sessions = request.app.state.sessions
    known = sessions.read(request)
    session = known or sessions.start(is_signed_in=False)
    said = _said(request)
    text = (
        environment()
        .get_template(template)
        .render(
            **_frame(request),
            form_token=sessions.form_token(session),
            is_known=session.is_signed_in or not sessions.needs_token,
            can_sign_out=sessions.needs_token and session.is_signed_in,
            said=said,
            **values,
        )
    )
    # A lone surrogate cannot be sent; a browser would show it as a question mark as well.
    answer = HTMLResponse(text.encode("utf-8", "replace"), status)
    if known is None:
        set_cookie(answer, request, cookie_name(request), session.cookie)
    if said is not None:
        set_cookie(answer, request, _said_name(request), "")
    return answer


def say(request: HTTPConnection, answer: Response, sentence: str) -> None:
    """Let the next page show a sentence, once."""
    text = sentence[:_LONGEST_SENTENCE].encode("utf-8", "replace")
    set_cookie(answer, request, _said_name(request), urlsafe_b64encode(text).decode())


def _frame(request: Request) -> dict[str, Any]:
    """Return what the layout needs."""
    pages: Pages = request.app.state.pages
    data: Data = request.app.state.data

    def link(path: str, **parameters: Any) -> str:
        return link_of(request, path, **parameters)

    def asset(name: str) -> str:
        return link_of(request, address_of(name))

    path = path_of(request.scope)
    return {
        "link": link,
        "asset": asset,
        "menu": pages.menu,
        "here": _here(path, pages),
        "database": data.settings.database or data.backend.provider,
        "read_only": data.settings.read_only,
    }


def _here(path: str, pages: Pages) -> str | None:
    """Return the entry of the navigation that a path belongs to."""
    fitting = [each for each, _ in pages.menu if path == each or path.startswith(f"{each}/")]
    return max(fitting, key=len, default=None)


def _said_name(connection: HTTPConnection) -> str:
    return f"{cookie_name(connection)}_said"


def _said(request: Request) -> str | None:
    text = request.cookies.get(_said_name(request), "")
    try:
        return urlsafe_b64decode(text.encode("ascii")).decode()[:_LONGEST_SENTENCE] or None
    except ValueError:
        return None
