"""Servers of OpenSearch that a test may kill, and ways to them."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress

import pytest

from locus_memory.errors import MissingDriverError
from locus_memory.events import subscribe
from locus_memory.testing.servers import OpenSearchServer


@pytest.fixture(scope="module", params=["3.6.0", "2.19.6"])
def own_server(request):
    """A node that the tests of a module may kill."""
    try:
        with OpenSearchServer(version=request.param) as server:
            yield server
    except MissingDriverError as error:
        pytest.skip(str(error))


@pytest.fixture
def prefix(tmp_path):
    """An index prefix of the test's own."""
    return "t" + hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16] + "-"


@pytest.fixture
def events():
    """What is emitted."""
    found = []
    unsubscribe = subscribe(found.append)
    yield found
    unsubscribe()


class Proxy:
    """Passes on what a client and a server say, until it is told otherwise.

    Attributes:
        requests: How many requests came.
        cuts_answers: How many of the next answers to a write are lost with their connection.
        refusals: The HTTP answers to the next requests, which the server does not see.
    """

    def __init__(self, server):
        self.server = server
        self.requests = 0
        self.cuts_answers = 0
        self.refusals = []
        self.writers = []
        self.serving = set()

    async def __aenter__(self):
        self.listener = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = f"opensearch:127.0.0.1:{self.listener.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.listener.close()
        self.cut()
        await asyncio.gather(*self.serving)
        await self.listener.wait_closed()

    def cut(self):
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    async def serve(self, reader, writer):
        self.serving.add(asyncio.current_task())
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.writers += [writer, far_writer]
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while message := await read_message(reader):
                self.requests += 1
                if self.refusals:
                    writer.write(self.refusals.pop(0))
                    continue
                far_writer.write(message)
                answer = await read_message(far_reader)
                if self.cuts_answers and b"/_bulk" in message.split(b"\r\n")[0]:
                    self.cuts_answers -= 1
                    break
                writer.write(answer)
        for each in (writer, far_writer):
            each.transport.abort()


async def read_message(reader):
    """Return a request or an answer, whole; nothing at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    lengths = [
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    return head + await reader.readexactly(lengths[0] if lengths else 0)


@pytest.fixture
async def proxy(own_server):
    """A way to the server that can be cut."""
    async with Proxy(own_server) as proxy:
        yield proxy
