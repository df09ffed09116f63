"""Streamable HTTP: who may connect, and the checks against DNS rebinding."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from locus_memory.errors import ConfigurationError
from locus_memory.integrations.mcp.callers import Callers
from locus_memory.integrations.mcp.sessions import SessionShares
from locus_memory.store.item import check_limit

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["HTTPOptions", "http_app", "serve_http"]

_MOST_BYTES: Final = 1024 * 1024
_MOST_SESSIONS: Final = 1_000
_BACKLOG: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class HTTPOptions:
    """Where a server listens, and for whom.

    Attributes:
        host: An address or `localhost`. One that others reach needs tokens.
        port: 0 takes a free one.
        allowed_hosts: More names that a request may have in its `Host`, such as `ai.example.org`
            behind a proxy.
        allowed_origins: More origins of pages that may call, such as `https://ai.example.org`.
        sessions_per_token: A token that opens more ends its own that is idle for longest. All
            tokens together have at most 1,000.
        on_listening: Called with the URL once connections are accepted.

    Raises:
        InvalidArgumentError: `sessions_per_token` is no integer of at least 0.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    sessions_per_token: int = 50
    on_listening: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        check_limit(self.sessions_per_token, "sessions_per_token")


def http_app(
    server: Server[Any], callers: Callers | None, options: HTTPOptions, port: int
) -> Starlette:
    """Return the app that answers at `/mcp`, for a server that listens on a port.

    Raises:
        ConfigurationError: Others reach the address, and there are no tokens, or no name of a host.
    """
    check_reach(callers, options)
    names = [f"{name}:{port}" for name in _names(options.host)]
    security = TransportSecuritySettings(
        allowed_hosts=[*names, *options.allowed_hosts],
        allowed_origins=[*(f"http://{name}" for name in names), *options.allowed_origins],
    )
    auth = None
    if callers is not None:
        # No authorization server issues the tokens: the URL only fills a field.
        auth = AuthSettings(issuer_url=AnyHttpUrl(f"http://{names[0]}"), resource_server_url=None)
    app = server.streamable_http_app(
        transport_security=security,
        max_request_body_size=_MOST_BYTES,
        auth=auth,
        token_verifier=callers,
        host=options.host,
    )
    manager = server.session_manager
    share = _MOST_SESSIONS if callers is None else options.sessions_per_token
    shares = SessionShares(manager.asgi_app, share, _MOST_SESSIONS)
    manager.asgi_app = shares  # type: ignore[assignment] # the SDK calls any app
    return app


def check_reach(callers: Callers | None, options: HTTPOptions) -> None:
    """Check that nobody else reaches an address without tokens.

    Raises:
        ConfigurationError: Others reach it, and there are no tokens, or no name of a host.
    """
    if _is_loopback(options.host):
        return
    if callers is None:
        raise ConfigurationError(
            f"{options.host} is not an address of this machine alone: it needs tokens"
        )
    if options.host in ("0.0.0.0", "::", "") and not options.allowed_hosts:  # noqa: S104 - compared
        raise ConfigurationError(
            f"{options.host!r} has no name: allowed_hosts has the names that clients use"
        )


async def serve_http(server: Server[Any], callers: Callers | None, options: HTTPOptions) -> None:
    """Serve until the task is cancelled or the process is told to end.

    Raises:
        ConfigurationError: As for `http_app`.
        OSError: The address is taken.
    """
    import uvicorn  # noqa: PLC0415 - only for this transport

    check_reach(callers, options)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.create_server(
        (options.host, options.port), family=family, backlog=_BACKLOG
    ) as listener:
        port: int = listener.getsockname()[1]
        app = http_app(server, callers, options, port)
        if options.on_listening is not None:
            options.on_listening(f"http://{_names(options.host)[0]}:{port}/mcp")
        config = uvicorn.Config(app, log_level="warning", lifespan="on", access_log=False)
        await uvicorn.Server(config).serve(sockets=[listener])


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _names(host: str) -> list[str]:
    """Return the names of a host in a URL; those of this machine are the same."""
    shown = f"[{host}]" if ":" in host else host
    others = ["localhost", "127.0.0.1", "[::1]"] if _is_loopback(host) else []
    return list(dict.fromkeys([shown, *others]))
