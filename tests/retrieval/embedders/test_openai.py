from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from locus_memory.errors import (
    ConfigurationError,
    ModelAnswerError,
    ModelRequestError,
    ModelUnavailableError,
)
from locus_memory.retrieval.embedders import Embedder, OpenAIEmbedder, get_embedder

openai = pytest.importorskip("openai")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Say nothing."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((self.path, self.headers["authorization"], request))
        status, body = self.server.answer(request)
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def lengths(request):
    rows = [
        {"object": "embedding", "index": place, "embedding": [float(len(text)), 1.0]}
        for place, text in enumerate(request["input"])
    ]
    return 200, {"object": "list", "model": request["model"], "data": rows[::-1]}


@pytest.fixture
def endpoint():
    """An endpoint on this machine that embeds a text as its length."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.answer = [], lengths
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
async def embedder(endpoint):
    async with OpenAIEmbedder(
        "tiny", dimension=2, base_url=endpoint.url, batch_size=2, max_retries=0
    ) as made:
        yield made


async def test_batches_go_out_and_come_back_in_order(endpoint, embedder):
    assert isinstance(embedder, Embedder)
    vectors = await embedder.embed(["abc", "", "de"])
    assert vectors == [[3.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    assert await embedder.embed([]) == []
    assert [request for _, _, request in endpoint.seen] == [
        {"model": "tiny", "input": ["abc", " "], "encoding_format": "float"},
        {"model": "tiny", "input": ["de"], "encoding_format": "float"},
    ]
    assert endpoint.seen[0][0] == "/v1/embeddings"


async def test_prefixes_and_shorter_vectors(endpoint):
    async with OpenAIEmbedder(
        "text-embedding-3-small",
        dimension=2,
        base_url=endpoint.url,
        query_prefix="q: ",
        document_prefix="d: ",
    ) as embedder:
        await embedder.embed(["x"])
        await embedder.embed(["x"], kind="query")
    requests = [request for _, _, request in endpoint.seen]
    assert [request["input"] for request in requests] == [["d: x"], ["q: x"]]
    assert [request["dimensions"] for request in requests] == [2, 2]


async def test_a_key_goes_nowhere_it_was_not_meant_for(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    async with OpenAIEmbedder("tiny", dimension=2, base_url=endpoint.url) as embedder:
        await embedder.embed(["x"])
        assert "sk-secret" not in repr(embedder)
    assert "sk-secret" not in endpoint.seen[0][1]
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    async with OpenAIEmbedder("tiny", dimension=2) as embedder:
        await embedder.embed(["x"])
    assert endpoint.seen[1][1] == "Bearer sk-secret"


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, ModelUnavailableError), (503, ModelUnavailableError), (400, ModelRequestError)],
)
async def test_a_refusal_is_told_without_the_key(endpoint, status, error):
    endpoint.answer = lambda _: (status, {"error": {"message": "no, key-1234 is bad"}})
    async with OpenAIEmbedder(
        "tiny", dimension=2, base_url=endpoint.url, api_key="key-1234", max_retries=0
    ) as embedder:
        with pytest.raises(error, match=r"model 'tiny': .*no, \*\*\* is bad"):
            await embedder.embed(["x"])


def row(place, vector):
    return {"object": "embedding", "index": place, "embedding": vector}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([row(0, [1.0, 2.0])], "1 vectors for 2 texts"),
        ([row(0, [1.0, 2.0]), row(0, [1.0, 2.0])], "2 vectors for 2 texts"),
        ([row(0, [1.0]), row(1, [1.0])], r"vectors of \[1\] dimensions, not 2: pass dimension="),
        ([row(0, None), row(1, [1.0])], "no embeddings"),
        (None, "no embeddings|No embedding"),
    ],
)
async def test_an_answer_is_checked(endpoint, embedder, data, reason):
    endpoint.answer = lambda _: (200, {"object": "list", "data": data})
    with pytest.raises(ModelAnswerError, match=reason):
        await embedder.embed(["a", "b"])


async def test_nobody_listens():
    async with OpenAIEmbedder(
        "tiny", dimension=2, base_url="http://127.0.0.1:9", max_retries=0
    ) as embedder:
        with pytest.raises(ModelUnavailableError):
            await embedder.embed(["x"])


async def test_a_client_of_ones_own_is_not_closed(endpoint):
    async with openai.AsyncOpenAI(base_url=endpoint.url, api_key="mine") as client:
        async with OpenAIEmbedder("tiny", dimension=2, client=client) as embedder:
            await embedder.embed(["x"])
        assert not client.is_closed()
    assert endpoint.seen[0][1] == "Bearer mine"


def test_what_cannot_be_is_refused(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigurationError, match="pass api_key= or set OPENAI_API_KEY"):
        get_embedder("openai:text-embedding-3-large")
    with pytest.raises(ConfigurationError, match="pass dimension=, the length of the vectors of"):
        get_embedder("openai:nomic-embed-text", base_url="http://localhost:11434/v1")
    for url in ("ftp://x", "localhost:80", "http://[", "http://"):
        with pytest.raises(ConfigurationError, match="base_url is an address"):
            OpenAIEmbedder(base_url=url)
    made = get_embedder("openai:text-embedding-3-large", api_key="k")
    assert (made.name, made.dimension) == ("text-embedding-3-large", 3072)
