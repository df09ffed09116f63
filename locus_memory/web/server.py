"""The server: one process of uvicorn over one backend."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, socket
from types import FrameType
from typing import Any, Final

from starlette.applications import Starlette

from locus_memory._internal.providers.drivers import require
from locus_memory.errors import ConfigurationError
from locus_memory.web.settings import Settings

__all__ = ["serve"]

_PATIENCE: Final = 2
"""Seconds that open connections get when the server stops."""


async def serve(
    app: Starlette, settings: Settings, on_start: Callable[[str], None] | None = None
) -> None:
    """Serve an application until the process is asked to stop.

    Args:
        app: The application that `make_app` returned.
        settings: Its settings.
        on_start: Called with the address, once the port is open.

    Raises:
        MissingDriverError: uvicorn is not installed.
        ConfigurationError: The host is unknown, or the port is taken.
    """
    uvicorn = require("uvicorn", "ui", needed_by="locus-memory serve")
    with _listening(settings) as listener:
        host, port = listener.getsockname()[:2]
        if on_start is not None:
            on_start(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        config = uvicorn.Config(
            app,
            # A request's line may hold a query with somebody's words.
            access_log=False,
            log_level="warning",
            server_header=False,
            # The address of a client is never taken from a header.
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=_PATIENCE,
        )
        server = uvicorn.Server(config)
        _end_streams_at_exit(server, app)
        with _stopped_by_signals(server):
            await server.serve(sockets=[listener])


def _end_streams_at_exit(server: Any, app: Starlette) -> None:
    """End the streams of events when a signal stops the server, which waits for all answers."""
    loop, leave = asyncio.get_running_loop(), server.handle_exit

    def handle_exit(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(app.state.data.journal.stop)
        leave(number, frame)

    server.handle_exit = handle_exit


@contextmanager
def _stopped_by_signals(server: Any) -> Generator[None]:
    """Let SIGINT and SIGTERM stop the server, and not the process: the backend closes first.

    When uvicorn has stopped, it raises the signal again for the handlers before its own.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listening(settings: Settings) -> socket:
    """Return a socket that listens: a taken port is told before anything else happens.

    Raises:
        ConfigurationError: The host is unknown, or the port is taken.
    """
    try:
        family, _, _, _, address = getaddrinfo(
            settings.host.strip("[]"), settings.port, type=SOCK_STREAM
        )[0]
        listener = socket(AF_INET6 if family == AF_INET6 else AF_INET, SOCK_STREAM)
    except OSError as error:
        raise ConfigurationError(f"{settings.host}: {error.strerror}") from error
    try:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"{settings.host}:{settings.port}: {error.strerror}: name another port with --port"
        ) from error
    return listener
