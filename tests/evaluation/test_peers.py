"""The memories of other makers, by their own packages where they are installed."""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.errors import ConfigurationError, MissingDriverError
from locus_memory.evaluation.journal import Answered, Ingested, Judged, read_journal
from locus_memory.evaluation.questions.answering import Models, ask_all, sampled
from locus_memory.evaluation.questions.asking import Counted
from locus_memory.evaluation.questions.memories import MEMORIES
from locus_memory.testing import FakeEmbedder
from tests.evaluation.scripted import Scripted, asked_by, dataset, run_of

PEERS = ("langmem", "mem0")
PET = re.compile(r"\(2023-05-\d\d\) \w+: I have a \w+ \w+ at home")


def answer_of(request):
    """What a model answers: tool calls, or the JSON of mem0, with what is new of pets."""
    known = [str(each.get("content")) for each in request["messages"] if each["role"] != "user"]
    said = [str(each.get("content")) for each in request["messages"] if each["role"] == "user"]
    old = PET.findall("\n".join(known))
    found = list(dict.fromkeys(each for each in PET.findall("\n".join(said)) if each not in old))
    if not request.get("tools"):
        memories = [{"id": str(n), "text": each, "event": "ADD"} for n, each in enumerate(found)]
        return {"content": json.dumps({"facts": found, "memory": memories})}
    calls = [
        {
            "id": f"call{n}",
            "type": "function",
            "function": {"name": "Memory", "arguments": json.dumps({"content": each})},
        }
        for n, each in enumerate(found)
    ]
    return {"content": None, "tool_calls": calls} if calls else {"content": "none"}


@contextmanager
def endpoint(status=200):
    """Serve the chat API; yield its address and the requests."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            got.append(request)
            message = {"role": "assistant"} | answer_of(request)
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            head = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
            body = json.dumps(head | {"choices": [choice], "usage": usage}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", got
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PEERS)
async def test_a_peer_is_measured_through_its_own_package(tmp_path, name):
    pytest.importorskip(name)
    pytest.importorskip("langchain_openai")
    path = tmp_path / "run.jsonl"
    with endpoint() as (url, got):
        async with OpenAIChat("m", base_url=url) as model, asked_by(path) as made:
            scripted = made(Scripted(), "answerer")
            models = Models(
                answer=scripted,
                judge=made(Scripted(), "judge"),
                extract=made(model, "m"),
                embedder=FakeEmbedder(),
            )
            run, chosen = run_of((name,), (300,), extract="m"), sampled(dataset(1), None, 0)
            assert await ask_all(path, run, chosen, models, told=[].append) is None
    records = list(read_journal(path))
    (ingested,) = [each for each in records if isinstance(each, Ingested)]
    answers = [each for each in records if isinstance(each, Answered)]
    assert ingested.calls == len(got) >= 2
    assert (ingested.prompt_tokens, ingested.completion_tokens) == (100 * len(got), 10 * len(got))
    assert not ingested.counted
    assert ingested.cost == pytest.approx(len(got) * (100 * 2 + 10 * 8) / 1e6)
    assert [each.answer for each in answers][:2] == ["parrot Figaro", "tortoise Otello"]
    assert all("(2023-05-0" in each.block for each in answers)
    assert all(expected_tokens(each.block) <= 300 for each in answers)
    assert all(each.evidence is None for each in answers)
    assert sum(each.right for each in records if isinstance(each, Judged)) == 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PEERS)
async def test_a_peer_that_could_not_extract_is_not_measured(tmp_path, name):
    pytest.importorskip(name)
    pytest.importorskip("langchain_openai")
    path = tmp_path / "run.jsonl"
    with endpoint(400) as (url, got):
        async with OpenAIChat("m", base_url=url) as model, asked_by(path) as made:
            models = Models(
                answer=made(Scripted(), "answerer"),
                judge=None,
                extract=made(model, "m"),
                embedder=FakeEmbedder(),
            )
            run, chosen = run_of((name,), extract="m", judge=None), sampled(dataset(1), None, 0)
            assert await ask_all(path, run, chosen, models, told=[].append) is None
    _, failed = read_journal(path)
    assert (failed.kind, failed.step) == ("failure", "ingest")
    assert got


@pytest.mark.parametrize("name", PEERS)
async def test_without_its_package_there_is_a_clear_sentence(tmp_path, name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    async with asked_by(tmp_path / "r") as made:
        given = Counted(made(Scripted(), "m")), FakeEmbedder()
        with pytest.raises(MissingDriverError, match=rf"{name!r} needs: pip install '?{name}"):
            await MEMORIES[name](*given).__aenter__()


@pytest.mark.parametrize("name", PEERS)
async def test_a_peer_needs_an_embedder(tmp_path, name):
    async with asked_by(tmp_path / "r") as made:
        given = Counted(made(Scripted(), "m")), None
        with pytest.raises(ConfigurationError, match=f"{name!r} needs --embedder"):
            await MEMORIES[name](*given).__aenter__()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PEERS)
async def test_a_peer_extracts_with_an_endpoint(tmp_path, name):
    pytest.importorskip(name)
    async with asked_by(tmp_path / "r") as made:
        given = Counted(made(Scripted(), "m")), FakeEmbedder()
        with pytest.raises(ConfigurationError, match="OpenAI-compatible"):
            await MEMORIES[name](*given).__aenter__()
