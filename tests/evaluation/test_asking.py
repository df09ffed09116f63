from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.errors import ModelAnswerError, ModelRequestError, ModelUnavailableError
from locus_memory.evaluation.questions.asking import Counted
from locus_memory.evaluation.questions.costs import PurseEmptyError
from locus_memory.messages import Message
from tests.evaluation.scripted import Scripted, asked_by

ASKED = [Message.system("Answer."), Message.user("Question: Which pet has Ada?")]


@contextmanager
def endpoint(*answers):
    """Serve responses in turn, each a status and headers; yield the address and the requests."""
    left, got = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            status, headers = left.pop(0) if left else (200, {})
            usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
            usage["prompt_tokens_details"] = {"cached_tokens": 64}
            message = {"role": "assistant", "content": "a parrot"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            head = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
            body = json.dumps(head | {"choices": [choice], "usage": usage}).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
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


@pytest.mark.parametrize("status", [429, 503])
async def test_an_endpoint_that_is_busy_is_asked_again_after_a_pause(tmp_path, status):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    with endpoint((status, {}), (status, {})) as (url, got):
        async with (
            OpenAIChat("m", base_url=url, max_retries=0) as model,
            asked_by(tmp_path / "r") as made,
        ):
            answer, used = await made(model, "m", sleep=sleep).answer(ASKED)
    assert answer.content == "a parrot"
    assert len(got) == 3
    assert len(slept) == 2
    assert all(0 <= each <= 60 for each in slept)
    assert (used.prompt_tokens, used.completion_tokens, used.cached_tokens) == (100, 5, 64)
    assert (used.calls, used.counted) == (1, False)


async def test_a_refused_request_is_not_repeated(tmp_path):
    with endpoint((400, {}), (400, {})) as (url, got):
        async with (
            OpenAIChat("m", base_url=url, max_retries=0) as model,
            asked_by(tmp_path / "r") as made,
        ):
            with pytest.raises(ModelRequestError):
                await made(model, "m").answer(ASKED)
    assert len(got) == 1


async def test_after_six_attempts_it_is_an_error(tmp_path):
    model = Scripted(fails=[ModelUnavailableError("busy")] * 9)
    async with asked_by(tmp_path / "r") as made:
        with pytest.raises(ModelUnavailableError):
            await made(model, "m").answer(ASKED)
    assert len(model.calls) == 6


async def test_the_same_is_asked_once(tmp_path):
    model = Scripted()
    async with asked_by(tmp_path / "r") as made:
        one, other = made(model, "m"), made(model, "other")
        first = await one.answer(ASKED)
        assert await one.answer([each.model_copy(update={"id": "x"}) for each in ASKED]) == first
        assert len(model.calls) == 1
        await other.answer(ASKED)
        await one.answer(ASKED[1:])
        assert len(model.calls) == 3
        spent = made.purse.spent
    async with asked_by(tmp_path / "r") as made:
        assert await made(model, "m").answer(ASKED) == first
        assert (len(model.calls), made.purse.spent) == (3, 0)
    assert spent > first[1].cost


async def test_an_answer_without_end_is_no_answer(tmp_path):
    model = Scripted()
    model.said = lambda task, text: "a" * 100_000_000
    async with asked_by(tmp_path / "r") as made:
        with pytest.raises(ModelAnswerError, match="100,000,000 characters"):
            await made(model, "m").answer(ASKED)
        assert made.purse.spent > 0
    assert (tmp_path / "r.calls").stat().st_size < 1_000_000


async def test_two_at_once_get_one_answer(tmp_path):
    model = Scripted(delay=lambda text: 0.01)
    model.said = lambda task, text: f"answer {len(model.calls)}"
    async with asked_by(tmp_path / "r") as made:
        asked = made(model, "m")
        answers = await asyncio.gather(*(asked.answer(ASKED) for _ in range(4)))
    assert len({answer.content for answer, _ in answers}) == 1
    assert len({used for _, used in answers}) == 1


async def test_no_more_calls_at_once_than_there_are_slots(tmp_path):
    now, most = 0, 0

    async def model(messages):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1
        return Message.assistant("yes")

    async with asked_by(tmp_path / "r", width=3) as made:
        one, other = made(model, "a"), made(model, "b")
        prompts = [[Message.user(str(number))] for number in range(10)]
        await asyncio.gather(*(each.answer(prompt) for each in (one, other) for prompt in prompts))
    assert most == 3


async def test_what_a_caller_swallows_is_not_forgotten(tmp_path):
    for error in (ModelUnavailableError("busy"), ModelRequestError("too long")):
        async with asked_by(tmp_path / "r") as made:
            counted = Counted(made(Scripted(fails=[error] * 6), "m"))
            with pytest.raises(type(error)):
                await counted(ASKED)
            if isinstance(error, ModelUnavailableError):
                with pytest.raises(ModelUnavailableError):
                    counted.check()
            else:
                counted.check()
    async with asked_by(tmp_path / "r", most=0) as made:
        counted = Counted(made(Scripted(), "m"))
        with pytest.raises(PurseEmptyError):
            await counted(ASKED)
        with pytest.raises(PurseEmptyError):
            counted.check()
