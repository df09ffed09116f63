"""What the settings of a host call: a hook, the MCP server, or the reading by a model.

A host waits for a hook at each message, and most of a hook's time is the import of the library. So
the MCP server, which has imported it and lives as long as the session, answers those that show
something, of other sessions as well. Without such a server, a hook does the work itself, as it
always does what keeps something. This module imports almost nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread, Timer
from typing import Final, NoReturn

from locus_memory import __version__
from locus_memory.plug.data_folder import data_folder, log

__all__ = ["NAMES", "SECONDS", "STATUS", "listen", "run"]

NAMES: Final = ("claude-code", "codex", "gemini", "opencode")
"""The names of the hosts."""

STATUS: Final = "status"
"""What a status line calls in the place of a hook of its host."""

SECONDS: Final = 2.0
"""The most seconds that a hook runs."""

_LARGEST_EVENT: Final = 2**24


def run(arguments: Sequence[str]) -> list[str]:
    """Do what the settings of a host call; returns the command to run instead, if it is another.

    Args:
        arguments: The name of a host, `status`, `distil` or `mcp`, and what `Settings.read` takes.
    """
    name, *options = arguments or ["--help"]
    if name in {*NAMES, STATUS}:
        _hook(name, options)
    if name not in {"mcp", "distil"}:
        return ["plug", "--help"]
    from locus_memory.plug.hook import Settings, distil, show  # noqa: PLC0415 - a hook must be quick

    settings = Settings.read(options)
    if name == "distil":
        distil(settings)
        sys.exit(0)

    def listen_later() -> None:
        with suppress(Exception):
            # One that has yet to import what it answers with would hold up a hook.
            import_module("locus_memory.integrations.mcp.server")
            settings.opened()
            listen(show)

    Thread(target=listen_later, daemon=True).start()
    return ["--url", settings.url, "mcp", "--user", settings.project(".")]


def _hook(name: str, options: list[str]) -> NoReturn:
    """Answer one event of a host, and exit with 0."""
    guard = Timer(SECONDS, os._exit, (0,))
    guard.daemon = True
    guard.start()
    try:
        event = sys.stdin.buffer.read(_LARGEST_EVENT)
        told = _asked([name, *options], event)
        if not told:
            from locus_memory.plug.hook import work  # noqa: PLC0415 - a hook must be quick

            told = work(name, options, event)
        if told != b"{}":
            os.write(sys.stdout.fileno(), told)
    except BaseException as error:  # noqa: BLE001 - it is logged; the host must not see it
        log(error)
    os._exit(0)


def _asked(arguments: list[str], event: bytes) -> bytes:
    """Return what a server of this version answers to an event in time; empty: none does.

    One that is suspended with its session takes a call and answers none, so half of the time is
    left for the work.
    """
    import socket  # noqa: PLC0415 - a hook must be quick
    import time  # noqa: PLC0415 - the same

    end = time.monotonic() + SECONDS / 2
    with suppress(OSError, RuntimeError, AttributeError):
        for path in _own(data_folder() / "run").glob(f"{__version__}-*"):
            with suppress(OSError), socket.socket(socket.AF_UNIX) as line:
                # A time of 0 does not wait at all.
                line.settimeout(max(0, min(SECONDS / 4, end - time.monotonic())))
                try:
                    line.connect(f"{path}")
                except ConnectionRefusedError:
                    # Its server was killed.
                    path.unlink(missing_ok=True)
                    continue
                line.sendall(b"\0".join((*map(os.fsencode, arguments), event)))
                line.shutdown(socket.SHUT_WR)
                if told := line.makefile("rb").read():
                    return told
    return b""


def _own(folder: Path) -> Path:
    """Return a folder that the user alone can write to.

    Raises:
        PermissionError: Others can: they would see what is asked, and tell what is known.
    """
    state = folder.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o022:
        raise PermissionError(f"others can write to {folder}")
    return folder


def listen(answer: Callable[[list[str], bytes], bytes]) -> None:
    """Answer hooks in threads, as long as this process lives; where it cannot, nobody is answered.

    Args:
        answer: Returns the answer to the arguments of a hook and its event; empty, or an error: the
            hook shall do the work itself.
    """
    with suppress(ImportError, OSError, RuntimeError):
        import atexit  # noqa: PLC0415 - a hook must be quick
        from socketserver import (  # noqa: PLC0415 - and there are none on Windows
            StreamRequestHandler,
            ThreadingMixIn,
            UnixStreamServer,
        )

        class Line(StreamRequestHandler):
            def handle(self) -> None:
                with suppress(Exception):
                    *arguments, event = self.rfile.read().split(b"\0")
                    self.wfile.write(answer([*map(os.fsdecode, arguments)], event))

        class Server(ThreadingMixIn, UnixStreamServer):
            daemon_threads = True

        path = data_folder() / "run" / f"{__version__}-{os.getpid()}"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _own(path.parent)
        begun = path.with_name(f".{path.name}")
        begun.unlink(missing_ok=True)
        server = Server(f"{begun}", Line)
        # Only now it listens: a hook takes one that refuses it for one that was killed.
        begun.replace(path)
        Thread(target=server.serve_forever, daemon=True).start()
        atexit.register(path.unlink, missing_ok=True)
