"""The guard: an ASGI middleware that refuses a request before the application sees it."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from locus_memory.web.errors import RefusalError, error_response
from locus_memory.web.front import Pages, path_of
from locus_memory.web.security.hosts import is_allowed_host, is_same_origin
from locus_memory.web.security.sessions import Sessions
from locus_memory.web.settings import Settings

__all__ = ["Guard"]

_SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_MISDIRECTED: Final = 421
_FOREIGN: Final = frozenset(("cross-site", "same-site"))
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, a browser would send "Origin: null" with each form.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """The checks of each request, and the security headers of each answer.

    Args:
        app: The application behind it.
        settings: The settings of the application.
        sessions: The sessions of browsers.
        pages: The pages of the application; `None`: it has none.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, sessions: Sessions, pages: Pages | None = None
    ) -> None:
        self._app = app
        self._settings = settings
        self._sessions = sessions
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on if nothing is wrong with it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["method"] == "HEAD":
            # The server leaves out the body.
            scope = {**scope, "method": "GET"}
        try:
            await self._check(Request(scope))
            limited = _Limited(receive, self._settings.max_body_bytes)
            await self._app(scope, limited, send_guarded)
        except RefusalError as refusal:
            await self._refuse(Request(scope), refusal)(scope, receive, send_guarded)

    def _refuse(self, request: Request, refusal: RefusalError) -> Response:
        """Return the answer for a refused request; one for a foreign host has no layout."""
        is_page = self._pages is not None and self._pages.has(path_of(request.scope))
        if self._pages is None or not is_page or refusal.status_code == _MISDIRECTED:
            return error_response(refusal)
        return self._pages.fail(request, refusal)

    async def _check(self, request: Request) -> None:
        """Check the headers of a request.

        Raises:
            RefusalError: One of them is not allowed.
        """
        headers, host = request.headers, request.headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not is_allowed_host(host, self._settings):
            raise RefusalError(
                _MISDIRECTED,
                "the Host header does not name this server: start it with --allow-host NAME",
            )
        for origin in headers.getlist("origin"):
            if not is_same_origin(origin, host):
                raise RefusalError(403, "the request comes from a page of another origin")
        await self._sessions.learn(request)
        self._check_token(request)
        if request.method not in _SAFE:
            self._check_write(request)

    def _check_token(self, request: Request) -> None:
        if not self._sessions.needs_token:
            return
        if self._pages is not None and self._pages.is_open(path_of(request.scope)):
            return
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        is_shown = self._sessions.knows(shown.strip()) and scheme.lower() == "bearer"
        session = self._sessions.read(request)
        if not is_shown and (session is None or not session.is_signed_in):
            raise RefusalError(
                401,
                "the request needs the header 'Authorization: Bearer TOKEN'",
                headers={"WWW-Authenticate": 'Bearer realm="locus-memory"'},
            )

    def _check_write(self, request: Request) -> None:
        """Check a request that may write; this is the one place of the read-only mode."""
        headers, path = request.headers, path_of(request.scope)
        is_harmless = self._pages is not None and self._pages.is_harmless(path)
        if self._settings.read_only and not is_harmless:
            raise RefusalError(403, "the server is read-only: start it without --read-only")
        if headers.get("sec-fetch-site", "none") in _FOREIGN:
            raise RefusalError(403, "the request comes from a page of another site")
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise RefusalError(400, "the Content-Length header is not a number")
        if int(length[:20]) > self._settings.max_body_bytes:
            raise _too_large(self._settings.max_body_bytes)


class _Limited:
    """The body of a request, up to a size: a client may send more than it announced, or no size.

    Args:
        receive: Receives the next part.
        most: The largest size in bytes.
    """

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._size = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._most:
            raise _too_large(self._most)
        return message


def _too_large(most: int) -> RefusalError:
    return RefusalError(413, f"the body of a request has at most {most:,} bytes")
