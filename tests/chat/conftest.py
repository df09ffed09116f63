from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from locus_memory.chat.openai.model import OpenAIChat


@dataclass
class Reply:
    """What the endpoint answers: a status and a body, or a stream of events.

    A stream is sent in pieces of `size` bytes. `cut` ends the connection without a word.
    """

    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    stream: list[object] | None = None
    size: int = 10_000
    cut: bool = False
    waits: bool = False


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Say nothing."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        # The names of headers differ between versions of the client in their case.
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.path, headers, json.loads(body)))
        self.server.asked.set()
        reply = self.server.replies.pop(0)
        self.close_connection = reply.cut or reply.waits
        if reply.waits:
            self.server.over.wait()
        elif reply.stream is None:
            self.answer(reply)
        else:
            self.play(reply)

    def answer(self, reply):
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def play(self, reply):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        lines = [
            each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
            for each in reply.stream
        ]
        events = "".join(f"data: {line}\n\n" for line in lines).encode()
        for start in range(0, len(events), reply.size):
            piece = events[start : start + reply.size]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        if not reply.cut:
            self.wfile.write(b"0\r\n\r\n")


class Endpoint(ThreadingHTTPServer):
    """A server on a free port of this machine that plays its replies in order."""

    daemon_threads = False
    block_on_close = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.requests = []
        self.replies = []
        self.asked = threading.Event()
        self.over = threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.over.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, request, client_address):
        """Say nothing of a client that left early."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def add(self, *replies):
        self.replies += replies

    @property
    def bodies(self):
        return [body for _, _, body in self.requests]


def answer(content="Hello!", finish_reason="stop", **message):
    """Return the body of a whole answer."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def chunk(finish_reason=None, **delta):
    """Return one chunk of a streamed answer."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "tiny-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def call(name, arguments, call_id="call_1", **more):
    """Return a tool call, or a fragment of one."""
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **more,
    }


@pytest.fixture(autouse=True)
def no_key_of_the_developer(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def wire():
    """Return what the protocol says, for tests to send."""
    return type("Wire", (), {"Reply": Reply, **{f.__name__: staticmethod(f) for f in PARTS}})


PARTS = (answer, chunk, call)


@pytest.fixture
def endpoint():
    with Endpoint() as server:
        yield server


@pytest.fixture
async def chat(endpoint):
    async with OpenAIChat("tiny", base_url=endpoint.url, max_retries=0, timeout=10) as model:
        yield model
