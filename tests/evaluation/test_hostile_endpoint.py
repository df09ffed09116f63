"""Endpoints that answer anything: what fails is named, and a run goes on."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.evaluation.journal import Answered, Failed, read_journal
from locus_memory.evaluation.questions.answering import Models, ask_all, sampled
from tests.evaluation.scripted import Scripted, asked_by, dataset, run_of


@contextmanager
def endpoint(status, body, seconds=0.0):
    """Serve one response to all requests; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            time.sleep(seconds)
            try:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # nobody waits any more

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def completion(content, usage=None, **message):
    choice = {"index": 0, "finish_reason": "stop"}
    choice["message"] = {"role": "assistant", "content": content} | message
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return json.dumps(head | {"choices": [choice]}).encode()


async def asked(path, url, seconds):
    async with (
        OpenAIChat("m", base_url=url, max_retries=0, timeout=seconds) as model,
        asked_by(path) as made,
    ):
        models = Models(
            answer=made(model, "answerer"),
            judge=made(Scripted(), "judge"),
            extract=made(Scripted(), "answerer"),
        )
        chosen = sampled(dataset(1), None, 0)
        run = run_of(("full-context",))
        assert await ask_all(path, run, chosen, models, told=[].append) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "body", "seconds"),
    [
        (429, b"{}", 0.0),
        (500, b"oops", 0.0),
        (401, b"\xff\xfe", 0.0),
        (404, b"", 0.0),
        (200, b"", 0.0),
        (200, b"<html>Sign in</html>", 0.0),
        (200, b"[]", 0.0),
        (200, b"null", 0.0),
        (200, b'{"choices":[]}', 0.0),
        (200, b'{"choices":[null]}', 0.0),
        (200, b'{"choices":7}', 0.0),
        (200, b"[" * 100_000, 0.0),
        (200, b"\x00" * 100, 0.0),
        (200, completion(5), 0.0),
        (200, completion({"text": "x"}), 0.0),
        (200, completion("a" * 100_000_000), 0.0),
        (200, completion("late"), 1.0),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, bytes) else str(value),
)
async def test_what_is_no_answer_is_a_failure_and_asked_again(tmp_path, status, body, seconds):
    path = tmp_path / "run.jsonl"
    with endpoint(status, body, seconds) as url:
        await asked(path, url, 0.3 if seconds else 60)
    records = list(read_journal(path))
    assert [each.step for each in records if isinstance(each, Failed)] == ["answer"] * 3
    assert not [each for each in records if isinstance(each, Answered)]
    assert path.stat().st_size < 10_000
    with endpoint(200, completion("a parrot Figaro")) as url:
        await asked(path, url, 60)
    assert len([each for each in read_journal(path) if isinstance(each, Answered)]) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "usage",
    [
        [], "many", {"prompt_tokens": -5, "completion_tokens": -5, "total_tokens": -10},
        {"prompt_tokens": "x"}, {"prompt_tokens": 1e300, "completion_tokens": 1},
        {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 10**9}},
        {"prompt_tokens": None, "completion_tokens": True, "total_tokens": 3},
    ],
    ids=str,
)  # fmt: skip
async def test_counts_that_are_none_cost_no_less_than_nothing(tmp_path, usage):
    path = tmp_path / "run.jsonl"
    with endpoint(200, completion("a parrot", usage)) as url:
        await asked(path, url, 60)
    answers = [each for each in read_journal(path) if isinstance(each, Answered)]
    assert len(answers) == 3
    for each in answers:
        assert each.prompt_tokens >= 0
        assert each.completion_tokens >= 0
        assert 0 <= each.cached_tokens <= each.prompt_tokens
        assert 0 <= each.cost < 1


@pytest.mark.slow
async def test_an_answer_without_words_is_an_answer(tmp_path):
    path = tmp_path / "run.jsonl"
    with endpoint(200, completion(None)) as url:
        await asked(path, url, 60)
    assert [each.answer for each in read_journal(path) if isinstance(each, Answered)] == [""] * 3
