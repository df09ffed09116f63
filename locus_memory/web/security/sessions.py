"""Sessions of browsers: a signed cookie, and the tokens of the forms that belong to it.

A cookie is `LEVEL.SECONDS.NONCE.SIGNATURE`. The signature's key comes from the token of the server,
so that every process that serves a database knows the cookies of the others, and a new token ends
all sessions. Without a token, the key is random. Which sessions were ended is kept in the store as
long as they would have lasted. The double-submit pattern with a signature:
https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from locus_memory.store.base import BaseStore

__all__ = ["BrowserSession", "Sessions", "cookie_name", "set_cookie"]

_LIFETIME: Final = 12 * 3600
"""Seconds until a session ends."""

_ENDED: Final = ("locus_memory_web", "ended_sessions")
"""The namespace of the sessions that ended before their time; a key is the nonce of one."""

_FORM: Final = re.compile(r"([ov])\.([0-9]{1,12})\.([A-Za-z0-9_-]{22})\.([0-9a-f]{64})")
_PORT: Final = re.compile(r":(\d{1,5})\Z")


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A session of a browser.

    Attributes:
        cookie: The value of its cookie.
        is_signed_in: Whether the browser has shown the token of the server.
    """

    cookie: str
    is_signed_in: bool


class Sessions:
    """Makes and checks the cookies of sessions.

    Args:
        token: The token of the server; `None`: it has none.
        clock: Returns the time in seconds since 1970.
        store: Keeps which sessions were ended; `None`: they are known to this object alone.
    """

    def __init__(
        self,
        token: str | None,
        clock: Callable[[], float] = time.time,
        store: BaseStore | None = None,
    ) -> None:
        self._token = None if token is None else token.encode()
        secret = secrets.token_bytes(32) if self._token is None else self._token
        self._key = hmac.digest(secret, b"locus-memory session", "sha256")
        self._clock = clock
        self._store = store
        self._ended: dict[str, float] = {}

    @property
    def needs_token(self) -> bool:
        """Whether the server has a token."""
        return self._token is not None

    def knows(self, shown: str) -> bool:
        """Return whether a text is the token, in constant time."""
        given = shown.encode("utf-8", "replace")
        return self._token is not None and hmac.compare_digest(given, self._token)

    def start(self, *, is_signed_in: bool) -> BrowserSession:
        """Return a new session."""
        level = "o" if is_signed_in else "v"
        body = f"{level}.{int(self._clock())}.{secrets.token_urlsafe(16)}"
        return BrowserSession(f"{body}.{self._sign('cookie', body)}", is_signed_in)

    def read(self, connection: HTTPConnection) -> BrowserSession | None:
        """Return the session of a request; `None`: it has no valid one."""
        cookie = connection.cookies.get(cookie_name(connection), "")
        found = _FORM.fullmatch(cookie)
        if found is None:
            return None
        body, signature = cookie.rsplit(".", 1)
        if not hmac.compare_digest(signature, self._sign("cookie", body)):
            return None
        if not 0 <= self._clock() - int(found[2]) < _LIFETIME or found[3] in self._ended:
            return None
        return BrowserSession(cookie, found[1] == "o")

    async def learn(self, connection: HTTPConnection) -> None:
        """Learn whether the session of a request was ended elsewhere, or before a restart.

        Raises:
            BackendError: The store failed.
        """
        session = self.read(connection)
        if session is None or not session.is_signed_in or self._store is None:
            return
        if await self._store.exists(_ENDED, nonce := session.cookie.split(".")[2]):
            self._forget(nonce)

    async def end(self, connection: HTTPConnection) -> None:
        """End the session of a request, if it is signed in; its cookie is good for nothing more.

        Raises:
            BackendError: The store failed; the session is ended for this object alone.
        """
        session = self.read(connection)
        if session is None or not session.is_signed_in:
            return
        nonce = session.cookie.split(".")[2]
        self._forget(nonce)
        if self._store is not None:
            await self._store.put(_ENDED, nonce, True, ttl=_LIFETIME)

    def _forget(self, nonce: str) -> None:
        since = self._clock() - _LIFETIME
        self._ended = {each: at for each, at in self._ended.items() if at > since}
        self._ended[nonce] = self._clock()

    def form_token(self, session: BrowserSession) -> str:
        """Return the token that each form of a session holds."""
        return self._sign("form", session.cookie)

    def accepts(self, session: BrowserSession | None, shown: str) -> bool:
        """Return whether a form's token belongs to a session, in constant time."""
        if session is None:
            return False
        given = shown.encode("utf-8", "replace")
        return hmac.compare_digest(given, self.form_token(session).encode())

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.digest(self._key, f"{purpose}:{text}".encode(), "sha256").hex()


def cookie_name(connection: HTTPConnection) -> str:
    """Return the name of the cookie: browsers share cookies between the ports of a host."""
    port = _PORT.search(connection.headers.get("host", ""))
    return "locus_memory" if port is None else f"locus_memory_{port[1]}"


def set_cookie(response: Response, connection: HTTPConnection, name: str, value: str) -> None:
    """Set a cookie that scripts cannot read and other sites cannot send; empty: remove it."""
    is_behind_tls = connection.headers.get("x-forwarded-proto") == "https"
    response.set_cookie(
        name,
        value,
        max_age=None if value else 0,
        path=str(connection.scope.get("root_path", "")) or "/",
        # Whoever sends this header for nothing only locks himself out.
        secure=is_behind_tls or connection.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
