"""Sessions over HTTP: each token has a share of them, so that none takes the room of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SessionShares"]

_SESSION: Final = b"mcp-session-id"
_VERSION: Final = b"mcp-protocol-version"
_VERSIONS: Final = frozenset([None, *HANDSHAKE_PROTOCOL_VERSIONS])
"""Later versions of the protocol have no sessions."""

_UNAVAILABLE: Final = 503
_AN_ERROR: Final = 400


@dataclass(slots=True)
class _Session:
    """An open session, or one that is being opened.

    Attributes:
        user: Who opened it, as the SDK knows them; `None`: nobody needs a token.
        requests: Its requests in flight, open streams included; 0: it is idle.
    """

    user: Any
    requests: int = 0


class SessionShares:
    """An ASGI app that opens a session for whom there is room, or can be made.

    A token that has its share ends its own session that is idle for longest. If all have too many
    together, the one who has most does. A client of an ended session gets 404, and opens another.

    Args:
        app: The app of the SDK, behind its check of tokens.
        share: How many sessions a token has at most.
        most: How many there are at most.
    """

    def __init__(self, app: ASGIApp, share: int, most: int) -> None:
        self._app, self._share, self._most = app, share, most
        # The one that was used least recently is the first.
        self._sessions: dict[str, _Session] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; one that opens a session where no room can be made gets 503."""
        # Of two with one name, the SDK reads the first.
        pairs = reversed([*scope["headers"]])
        headers = {name: value.decode("latin-1") for name, value in pairs}
        given, user = headers.get(_SESSION), scope.get("user")
        name = given or uuid4().hex
        if given is None and headers.get(_VERSION) in _VERSIONS:
            if not await self._has_room(_owner(user), scope):
                answer = PlainTextResponse("Too many open sessions", _UNAVAILABLE)
                return await answer(scope, receive, send)
            self._sessions[name] = _Session(user)
        session = self._sessions.get(name)
        if session is None or _owner(session.user) != _owner(user):
            return await self._app(scope, receive, send)
        begun: list[Message] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.append(message)
            await send(message)

        session.requests += 1
        try:
            return await self._app(scope, receive, watched)
        finally:
            session.requests -= 1
            self._sessions.pop(name, None)
            known = _opened(begun) if given is None else given
            if known and scope["method"] != "DELETE":
                self._sessions[known] = session

    async def _has_room(self, owner: object, scope: Scope) -> bool:
        """Return whether a session can be opened; idle ones are ended for it."""
        while True:
            counts = Counter(_owner(each.user) for each in self._sessions.values())
            is_full = counts[owner] >= self._share
            if not is_full and counts.total() < self._most:
                return True
            largest = owner if is_full else counts.most_common(1)[0][0]
            crowd = (pair for pair in self._sessions.items() if _owner(pair[1].user) == largest)
            name = next((name for name, each in crowd if not each.requests), None)
            if name is None:
                return False
            ended = self._sessions.pop(name)
            # The SDK ends a session at the request of the one who opened it.
            others = [pair for pair in scope["headers"] if pair[0] not in (_SESSION, _VERSION)]
            ending = {"method": "DELETE", "headers": [*others, (_SESSION, name.encode("latin-1"))]}
            await self._app({**scope, **ending, "user": ended.user}, _nothing, _unheard)


def _owner(user: Any) -> object:
    """Return the token of a user; `None`: nobody needs one."""
    return user.access_token.token if isinstance(user, AuthenticatedUser) else None


def _opened(begun: Sequence[Message]) -> str:
    """Return the name of the session that an answer opens; empty: it opens none."""
    is_open = bool(begun) and begun[0]["status"] < _AN_ERROR
    found: dict[bytes, bytes] = dict(begun[0]["headers"]) if is_open else {}
    return found.get(_SESSION, b"").decode("latin-1")


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_: Message) -> None:
    pass
