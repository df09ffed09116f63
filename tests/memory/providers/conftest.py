from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

KEY = "key-that-no-message-shows"


@dataclass
class Request:
    """A request as the service got it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class FakeService:
    """An HTTP server that keeps each request, and answers with what it was given."""

    def __init__(self):
        self.requests = []
        self.answers = {}
        self.failures = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                headers = {name.lower(): value for name, value in self.headers.items()}
                service.requests.append(Request(self.command, self.path, headers, body))
                status, answer = service.answer(self.command, self.path)
                sent = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - the names of the server

            def log_message(self, *arguments):
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                """Say nothing of clients that no longer wait."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, method, path):
        if self.failures:
            status = self.failures.pop(0)
            return status, {"detail": f"{KEY} said something secret"}
        known = self.answers.get((method, path))
        return (404, {"detail": "no such path"}) if known is None else (200, known)

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def service():
    made = FakeService()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch):
    """Let no test wait between two attempts."""
    monkeypatch.setattr("locus_memory.memory.providers.service._LONGEST_WAIT", 0.0)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    names = ("API_KEY", "API_URL", "BANK_ID", "RECALL_BUDGET")
    for maker in ("HINDSIGHT", "MEM0", "SUPERMEMORY"):
        for name in names:
            monkeypatch.delenv(f"{maker}_{name}", raising=False)
