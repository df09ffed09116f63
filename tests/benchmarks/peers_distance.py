"""A server a network away: a relay in a process of its own that holds everything back a moment."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from urllib.parse import urlsplit, urlunsplit

import asyncpg


@asynccontextmanager
async def at_a_distance(url: str, seconds: float) -> AsyncIterator[str]:
    """Yield the URL by which a server is so many seconds away, there and back."""
    parts = urlsplit(url)
    arguments = (__file__, parts.hostname, str(parts.port), str(seconds / 2))
    relay = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        port = int(await relay.stdout.readline())
        yield urlunsplit(parts._replace(netloc=f"{parts.username}@{parts.hostname}:{port}"))
    finally:
        relay.kill()
        await relay.wait()


async def round_trip(url: str, times: int = 50) -> float:
    """Return the median seconds of the least statement."""
    connection = await asyncpg.connect(url)
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        await connection.fetchval("SELECT 1")
        taken.append(time.perf_counter() - start)
    await connection.close()
    return median(taken)


def carry(source: socket.socket, target: socket.socket, seconds: float) -> None:
    """Pass on what comes, each piece so many seconds later, until one side has gone."""
    try:
        while piece := source.recv(1 << 16):
            time.sleep(seconds)
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def relay(host: str, port: int, seconds: float) -> None:
    """Listen on a free port, which is printed, until the process is ended."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            near, _ = listening.accept()
            far = socket.create_connection((host, port))
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=carry, args=(*pair, seconds), daemon=True).start()


if __name__ == "__main__":
    relay(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
