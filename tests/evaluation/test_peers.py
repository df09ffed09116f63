"""The memories of other makers, by their own packages where they are installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.errors import ConfigurationError, MissingDriverError
from locus_memory.evaluation.journal import Answered, Ingested, Judged, read_journal
from locus_memory.evaluation.questions.answering import Models, ask_all, sampled
from locus_memory.evaluation.questions.asking import Counted
from locus_memory.evaluation.questions.memories import MEMORIES, Block
from locus_memory.testing import FakeEmbedder
from tests.evaluation.scripted import (
    Scripted,
    answered,
    asked_by,
    dataset,
    run_of,
    without_times,
)

PEERS = ("langmem", "mem0")
# To see whether it is there imports it.
os.environ.setdefault("MEM0_TELEMETRY", "False")
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
def endpoint(status=200, answer_of=answer_of):
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


class Moody:
    """A memory that words what it was told differently each time it is filled."""

    fills = 0

    def __init__(self):
        Moody.fills += 1
        self.turns, self.mood = [], Moody.fills

    async def ingest(self, session, moment):
        self.turns += [f"{turn.spoken} {self.mood}" for turn in session.turns]

    async def block(self, question, moment, budget):
        if "Ben" in question and self.mood == 7:
            raise OSError("no search")
        return Block("\n".join(self.turns)[:budget])


@pytest.fixture
def moody(monkeypatch):
    monkeypatch.setattr(Moody, "fills", 0)
    monkeypatch.setitem(MEMORIES, "mem0", lambda *_: nullcontext(Moody()))


async def test_a_filled_memory_that_is_cut_anywhere_is_not_filled_again(tmp_path, moody):
    path = tmp_path / "whole.jsonl"
    await answered(path, ("mem0",), Scripted(), Scripted(), budgets=(300, 1000))
    whole = path.read_bytes()
    ends = [found.end() for found in re.finditer(b"\n", whole)]
    filled = [end for end in ends if whole[:end].count(b'"kind":"ingest"') == 2]
    assert len(filled) == 13
    for number, end in enumerate(filled):
        other = tmp_path / f"{number}.jsonl"
        other.write_bytes(whole[: end + number])
        shutil.copy(f"{path}.calls", f"{other}.calls")
        asked = Scripted()
        await answered(other, ("mem0",), asked, asked, budgets=(300, 1000))
        assert (other.read_bytes(), asked.calls) == (whole, [])


async def test_without_what_was_kept_a_memory_is_filled_again(tmp_path, moody):
    path = tmp_path / "run.jsonl"
    await answered(path, ("mem0",), Scripted(), None, data=dataset(1))
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:3]))
    os.remove(f"{path}.calls")  # noqa: PTH107 - it is the only one
    await answered(path, ("mem0",), Scripted(), None, data=dataset(1))
    assert path.read_bytes().count(b'"kind":"ingest"') == 1
    assert len([each for each in read_journal(path) if isinstance(each, Answered)]) == 3


async def test_a_search_that_fails_is_a_failure_of_its_question_alone(tmp_path, moody):
    path, Moody.fills = tmp_path / "run.jsonl", 5
    await answered(path, ("mem0",), Scripted(), None, data=dataset(1))
    failed = [each for each in read_journal(path) if each.kind == "failure"]
    assert [(each.step, each.question, each.error) for each in failed] == [
        ("answer", "q2", "OSError: no search")
    ]
    await answered(path, ("mem0",), Scripted(), None, data=dataset(1))
    assert len([each for each in read_journal(path) if isinstance(each, Answered)]) == 3


async def test_what_a_memory_shows_of_another_conversation_is_not_taken(tmp_path, moody):
    path = tmp_path / "run.jsonl"
    await answered(path, ("mem0",), Scripted(), None, data=dataset(1))
    path.unlink()
    await answered(path, ("mem0",), Scripted(), None, data=dataset(1, filler=1))
    assert Moody.fills == 4
    first, *_ = (each for each in read_journal(path) if isinstance(each, Answered))
    assert "weather" in first.block


KILLED = """
import asyncio, sys, warnings
from pathlib import Path
from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.evaluation.questions.answering import Models, ask_all, sampled
from locus_memory.testing import FakeEmbedder
from tests.evaluation.scripted import Scripted, asked_by, dataset, run_of

async def main(path, url, name):
    async with OpenAIChat("m", base_url=url) as model, asked_by(path) as made:
        slow = made(Scripted(delay=lambda text: 0.1), "answerer")
        models = Models(answer=slow, judge=made(Scripted(), "judge"), extract=made(model, "m"),
                        embedder=FakeEmbedder(), width=1)
        chosen = sampled(dataset(2), None, 0)
        run = run_of((name,), (300, 1000), extract="m")
        assert await ask_all(path, run, chosen, models, told=[].append) is None

warnings.simplefilter("ignore")
asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_a_killed_process_is_taken_up_to_the_same_bytes(tmp_path, name):
    pytest.importorskip(name)
    pytest.importorskip("langchain_openai")

    def start(path, url):
        paths = [os.fspath(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-c", KILLED, str(path), url, name]
        return subprocess.Popen(command, env=environment)

    def killed(process, due):
        while process.poll() is None and not due():
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL

    whole, path = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    with endpoint() as (url, got):
        assert start(whole, url).wait() == 0
        wanted, calls = without_times(whole), len(got)
        got.clear()
        # In the middle of the first conversation: it is told again, to an empty memory.
        killed(start(path, url), lambda: got)
        assert path.read_bytes().count(b"\n") == 1
        got.clear()
        # In the middle of its questions, and of those of the second: nothing is told again.
        for lines in (4, 16):
            killed(start(path, url), lambda most=lines: path.read_bytes().count(b"\n") >= most)
            assert wanted.startswith(without_times(path).rpartition(b"\n")[0])
        assert start(path, url).wait() == 0
    assert without_times(path) == wanted
    assert len(got) <= calls + 1
