from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from locus_memory.errors import (
    InvalidArgumentError,
    ModelAnswerError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
)
from locus_memory.evaluation.journal import (
    Answered,
    Failed,
    Ingested,
    Journal,
    Judged,
    Run,
    read_journal,
)
from locus_memory.evaluation.questions.answering import (
    Models,
    ask_all,
    digest_of,
    judge_all,
    sampled,
)
from tests.evaluation.scripted import (
    Scripted,
    answered,
    asked_by,
    dataset,
    run_of,
    without_times,
)

PLAIN = ("full-context", "last-n", "bm25")


def only(path, kind):
    return [each for each in read_journal(path) if isinstance(each, kind)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


async def test_every_figure_is_that_of_the_script(path):
    model = Scripted(wrong=["Which pet has Ben?"])
    judge = Scripted()
    assert await answered(path, ("full-context",), model, judge) is None
    answers, verdicts = only(path, Answered), only(path, Judged)
    # Two conversations, each with two pets and one question without an answer.
    assert [each.question for each in answers] == ["q1", "q2", "none"] * 2
    assert [each.right for each in verdicts] == [True, False, True, False, True, True]
    for each in answers:
        found = (text for text in model.calls if text.endswith(each.asked))
        prompt = next(text for text in found if each.block in text)
        assert each.prompt_tokens == len(prompt)
        assert each.completion_tokens == len(each.answer)
        assert each.cached_tokens == 10
        cost = (len(prompt) - 10) * 2.0 + 10 * 0.5 + len(each.answer) * 8.0
        assert each.cost == pytest.approx(cost / 1e6)
        assert (each.calls, each.counted, each.budget) == (1, False, 0)
        assert each.evidence == (None if each.abstain else 1.0)
    assert [each.calls for each in only(path, Ingested)] == [0, 0]


async def test_what_extraction_takes_is_the_ingestions(path):
    model = Scripted()
    await answered(path, ("ours", "ours-words"), model, None)
    prompts = [text for text in model.calls if "<messages>" in text]
    ours = [each for each in only(path, Ingested) if each.memory == "ours"]
    words = [each for each in only(path, Ingested) if each.memory == "ours-words"]
    assert sum(each.calls for each in ours) == len(prompts) == 4
    assert sum(each.prompt_tokens for each in ours) == sum(map(len, prompts))
    assert sum(each.calls for each in words) == 0
    assert all(each.evidence == 1 for each in only(path, Answered) if not each.abstain)


async def test_tokens_that_a_model_does_not_report_are_counted_and_marked(path):
    await answered(path, ("full-context",), Scripted(told=False), None)
    for each in only(path, Answered):
        assert each.counted
        assert each.prompt_tokens > each.block_tokens > 0
        assert each.completion_tokens > 0


async def test_a_cost_without_a_price_is_unknown(path):
    await answered(path, ("full-context",), Scripted(), None, price=None)
    assert {each.cost for each in only(path, Answered)} == {None}


async def test_a_price_that_is_known_later_counts_for_the_answers_that_were_kept(path, tmp_path):
    await answered(path, ("ours",), Scripted(), None, price=None)
    other, asked = tmp_path / "other.jsonl", Scripted()
    shutil.copy(f"{path}.calls", f"{other}.calls")
    await answered(other, ("ours",), asked, None, most=0.0)
    assert asked.calls == []
    for unknown, known in zip(read_journal(path), read_journal(other), strict=True):
        if not isinstance(known, Run):
            assert unknown.cost is None
            assert known.cost > 0
            assert known.model_copy(update={"cost": None}) == unknown


@pytest.mark.slow
async def test_a_run_that_is_cut_anywhere_ends_with_the_same_bytes(path, tmp_path):
    memories = ("ours", "bm25", "full-context")
    await answered(path, memories, Scripted(), Scripted(), budgets=(200, 1000))
    whole = path.read_bytes()
    ends = [0, *(found.end() for found in re.finditer(b"\n", whole))]
    cuts = [*ends, *(end + random.Random(end).randrange(1, 60) for end in ends[:-1])]
    for number, cut in enumerate(cuts):
        other = tmp_path / f"{number}.jsonl"
        other.write_bytes(whole[:cut])
        # The answers that were kept are there, as after a kill: nothing at all is asked again.
        shutil.copy(f"{path}.calls", f"{other}.calls")
        asked = Scripted()
        await answered(other, memories, asked, asked, budgets=(200, 1000))
        assert (other.read_bytes(), asked.calls) == (whole, [])


@pytest.mark.slow
async def test_without_the_kept_answers_only_times_differ(path, tmp_path):
    await answered(path, PLAIN, Scripted(), Scripted())
    lines = path.read_bytes().splitlines(keepends=True)
    for cut in range(0, len(lines), 5):
        other = tmp_path / f"{cut}.jsonl"
        other.write_bytes(b"".join(lines[:cut]))
        await answered(other, PLAIN, Scripted(), Scripted())
        assert without_times(other) == without_times(path)


async def test_what_is_asked_at_once_changes_nothing(path, tmp_path):
    def delay(text):
        return random.Random(text).random() / 200

    await answered(path, PLAIN, Scripted(), Scripted(), width=1)
    other = tmp_path / "other.jsonl"
    await answered(other, PLAIN, Scripted(delay=delay), Scripted(delay=delay), width=16)
    assert without_times(other) == without_times(path)


@pytest.mark.slow
async def test_the_same_again_is_the_same_and_asks_nothing(path, tmp_path):
    await answered(path, ("ours", *PLAIN), Scripted(), Scripted())
    other, asked = tmp_path / "other.jsonl", Scripted()
    shutil.copy(f"{path}.calls", f"{other}.calls")
    await answered(other, ("ours", *PLAIN), asked, asked)
    assert other.read_bytes() == path.read_bytes()
    assert asked.calls == []


async def test_a_run_that_is_whole_asks_nothing(path):
    await answered(path, PLAIN, Scripted(), Scripted())
    before, asked = path.read_bytes(), Scripted()
    await answered(path, PLAIN, asked, asked)
    assert path.read_bytes() == before
    assert asked.calls == []


@pytest.mark.parametrize("step", ["answer", "judge"])
async def test_a_call_that_somebody_else_cancels_ends_the_run_and_it_goes_on(path, step):
    class Cancelled(Scripted):
        def said(self, task, text):
            if len(self.calls) > 3:
                raise asyncio.CancelledError
            return super().said(task, text)

    models = {"answer": Scripted(), "judge": Scripted()} | {step: Cancelled()}
    async with asyncio.timeout(20):
        with pytest.raises(ModelError, match="was cancelled"):
            await answered(path, ("full-context",), models["answer"], models["judge"])
        assert await answered(path, ("full-context",), Scripted(), Scripted()) is None
    assert len(only(path, Judged)) == 6


async def test_a_judge_without_a_verdict_is_asked_again_by_the_next_run(path):
    class Unsure(Scripted):
        def said(self, task, text):
            return "It depends." if "<right>" in text else super().said(task, text)

    # Those that ask the same at once get the answer, whoever forgets it first.
    data = dataset(24)
    await answered(path, ("full-context",), Scripted(), Unsure(), data=data, width=24)
    assert len(only(path, Failed)) == 72
    await answered(path, ("full-context",), Scripted(), Scripted(), data=data)
    assert [each.right for each in only(path, Judged)] == [True] * 72


@pytest.mark.parametrize(
    "settings",
    [{"answer": "other"}, {"judge": None}, {"seed": 1}, {"digest": "e"}, {"sample": 3}],
    ids=lambda settings: next(iter(settings)),
)
async def test_a_run_of_other_settings_is_not_taken_up(path, settings):
    await answered(path, PLAIN, Scripted(), Scripted())
    before = path.read_bytes()
    run, (name,) = run_of(PLAIN, **settings), settings
    unasked = Models(answer=None, judge=None, extract=None)
    with pytest.raises(InvalidArgumentError, match=f"the {name} of this run is"):
        await ask_all(path, run, [], unasked, told=[].append)
    assert path.read_bytes() == before


async def test_the_name_of_the_data_set_may_change(path):
    await answered(path, PLAIN, Scripted(), None)
    before = path.read_bytes()
    async with asked_by(path) as made:
        models = Models(answer=made(None, "a"), judge=None, extract=made(None, "a"))
        run = run_of(PLAIN, judge=None, file="moved.json")
        assert await ask_all(path, run, [], models, told=[].append) is None
    assert path.read_bytes() == before


async def test_a_run_is_not_taken_up_with_another_embedder_unless_none_was_noted(path):
    await answered(path, PLAIN, Scripted(), None)
    unasked = Models(answer=None, judge=None, extract=None)
    run = run_of(PLAIN, judge=None, embedder="local")
    with pytest.raises(InvalidArgumentError, match="the embedder of this run is None, not 'local'"):
        await ask_all(path, run, [], unasked, told=[].append)
    path.write_bytes(path.read_bytes().replace(b',"embedder":null', b"", 1))
    assert await ask_all(path, run, [], unasked, told=[].append) is None


async def test_two_runs_do_not_write_one_journal_at_once(path):
    model = Scripted(delay=lambda text: 0.01)
    runs = [answered(path, PLAIN, model, model) for _ in range(2)]
    ended = await asyncio.gather(*runs, return_exceptions=True)
    [refused] = [each for each in ended if each is not None]
    assert isinstance(refused, InvalidArgumentError)
    assert "another run writes it" in str(refused)
    keys = [each.key for each in only(path, Answered)]
    assert len(keys) == len(set(keys)) == 18
    assert await answered(path, PLAIN, Scripted(), Scripted()) is None


async def test_it_stops_when_the_budget_is_spent_and_goes_on_with_more(path, tmp_path):
    whole = tmp_path / "whole.jsonl"
    await answered(whole, PLAIN, Scripted(), Scripted())
    ended = await answered(path, PLAIN, Scripted(), Scripted(), most=0.002, width=1)
    assert "$0.002 are spent" in ended
    assert without_times(whole).startswith(without_times(path))
    spent = {
        (each.conversation, each.question): each.cost
        for each in read_journal(path)
        if isinstance(each, Answered)
    }
    assert 0 < sum(spent.values()) < 0.003
    assert await answered(path, PLAIN, Scripted(), Scripted()) is None
    assert without_times(path) == without_times(whole)


async def test_a_budget_of_nothing_asks_nothing(path):
    model = Scripted()
    assert await answered(path, ("ours",), model, None, most=0.0) is not None
    assert model.calls == []
    assert len(list(read_journal(path))) == 1


async def test_an_unavailable_model_is_asked_again(path):
    model = Scripted(fails=[ModelUnavailableError("busy")] * 5)
    await answered(path, ("full-context",), model, None, width=1)
    assert only(path, Failed) == []
    assert len(only(path, Answered)) == 6


async def test_what_fails_is_named_and_asked_again_by_the_next_run(path, tmp_path):
    whole = tmp_path / "whole.jsonl"
    await answered(whole, ("full-context",), Scripted(), Scripted())
    model = Scripted(fails=[ModelUnavailableError("busy")] * 6)
    judge = Scripted(fails=[ModelRequestError("no such model")])
    await answered(path, ("full-context",), model, judge, width=1)
    failed = only(path, Failed)
    assert [(each.step, each.question) for each in failed] == [
        ("answer", "q1"),
        ("judgement", "q2"),
    ]
    assert failed[0].error == "ModelUnavailableError: busy"
    assert len(only(path, Answered)) == 5
    await answered(path, ("full-context",), Scripted(), Scripted())
    kept = [each.model_copy(update={"seconds": 0.0}) for each in read_journal(path)]
    assert {each for each in kept if not isinstance(each, Failed)} == {
        each.model_copy(update={"seconds": 0.0}) if not isinstance(each, Run) else each
        for each in read_journal(whole)
    }


async def test_a_memory_that_cannot_extract_is_not_measured(path):
    model = Scripted(fails=[ModelUnavailableError("busy")] * 6)
    await answered(path, ("ours",), model, None, width=1, data=dataset(1))
    (failed,) = only(path, Failed)
    assert (failed.step, failed.conversation) == ("ingest", "c0")
    assert only(path, Answered) == []
    await answered(path, ("ours",), Scripted(), None, width=1, data=dataset(1))
    assert len(only(path, Answered)) == 3


async def test_a_model_that_extracts_nonsense_is_measured_without_it(path):
    class Nonsense(Scripted):
        def said(self, task, text):
            return "Sure!" if "long-term memory" in task else super().said(task, text)

    await answered(path, ("ours",), Nonsense(), Scripted(), data=dataset(1))
    assert len(only(path, Answered)) == 3
    assert all(each.right for each in only(path, Judged))


async def test_a_judge_without_a_verdict_is_a_failure(path):
    class Vague(Scripted):
        def said(self, task, text):
            return "It depends."

    await answered(path, ("full-context",), Scripted(), Vague(), data=dataset(1))
    assert {each.error.partition(":")[0] for each in only(path, Failed)} == {"ModelAnswerError"}
    assert ModelAnswerError.__name__ in only(path, Failed)[0].error


async def test_half_characters_of_models_end_no_run(path):
    class Half(Scripted):
        def said(self, task, text):
            if "<right>" in text:
                return '{"reason": "\\ud800", "right": false}'
            return "\ud83d" if "long-term memory" not in task else super().said(task, text)

    assert await answered(path, ("ours", "full-context"), Half(), Half(), data=dataset(1)) is None
    assert [each.answer for each in only(path, Answered)] == ["\ufffd"] * 6
    assert len(only(path, Judged)) == 6


async def test_another_judge_asks_no_question_again(path):
    await answered(path, PLAIN, Scripted(), Scripted())
    before = path.read_bytes()
    strict = Scripted()
    strict.said = lambda task, text: '{"reason": "never", "right": false}'
    async with asked_by(path) as made:
        for _ in range(2):
            assert await judge_all(path, made(strict, "strict"), width=4, told=[].append) is None
    assert path.read_bytes().startswith(before)
    assert Counter(each.judge for each in only(path, Judged)) == {"judge": 18, "strict": 18}
    assert {each.right for each in only(path, Judged) if each.judge == "strict"} == {False}
    # Of the answers that are the same, one is judged.
    assert all("<right>" in text for text in strict.calls)
    assert len(set(strict.calls)) <= len(strict.calls) <= 18


async def test_a_damaged_journal_is_refused(path):
    await answered(path, ("full-context",), Scripted(), None)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"{}\n", *lines[2:]]))
    with pytest.raises(InvalidArgumentError, match="line 3"):
        await answered(path, ("full-context",), Scripted(), None)


def test_a_sample_is_the_same_for_the_same_seed():
    data = dataset(20)
    draws = [sampled(data, 10, seed) for seed in (1, 1, 2)]
    ids = [[(c.id, q.id) for c, questions in each for q in questions] for each in draws]
    assert ids[0] == ids[1] != ids[2]
    assert [len(each) for each in ids] == [10] * 3
    assert ids[0] == sorted(ids[0], key=lambda each: int(each[0][1:]))
    everything = [q for _, questions in sampled(data, 1000, 1) for q in questions]
    assert len(everything) == 60


def test_questions_without_an_answer_are_not_asked():
    (conversation,) = dataset(1)
    bare = [replace(each, expected=()) for each in conversation.questions]
    conversation = replace(conversation, questions=tuple(bare), others=())
    with pytest.raises(InvalidArgumentError, match="none of the questions has an answer"):
        sampled([conversation], None, 0)


def test_the_digest_of_a_folder_is_that_of_its_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.json").write_text("[]")
    first = digest_of(tmp_path)
    assert first == digest_of(tmp_path) != digest_of(tmp_path / "a" / "b.json")
    # A run in the folder of its set is taken up.
    for name in ("eval.jsonl", "eval.jsonl.calls", "report.html"):
        (tmp_path / name).write_text("new")
    assert digest_of(tmp_path) == first
    (tmp_path / "a" / "b.json").rename(tmp_path / "a" / "c.json")
    assert digest_of(tmp_path) != first


@pytest.mark.slow
def test_ten_thousand_lines_are_read_one_at_a_time(path):
    line = {
        "conversation": "c", "memory": "ours", "budget": 1, "category": "x", "asked": "?",
        "expected": ("a",), "abstain": False, "answer": "a", "block": "b" * 5000,
        "block_tokens": 1, "prompt_tokens": 1, "completion_tokens": 1, "evidence": None,
    }  # fmt: skip
    journal = Journal(path)
    journal.write(run_of(("ours",)))
    for number in range(10_000):
        journal.write(Answered(question=str(number), **line))
    journal.close()
    tracemalloc.start()
    assert sum(1 for _ in read_journal(path)) == 10_001
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 20


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.evaluation.scripted import Scripted, answered
model = Scripted(delay=lambda text: 0.02)
asyncio.run(answered(Path(sys.argv[1]), ("ours", "bm25", "full-context"), model, model))
"""


@pytest.mark.slow
def test_a_killed_process_is_taken_up_to_the_same_bytes(tmp_path):
    def start(path):
        root = os.fspath(Path(__file__).parents[2])
        environment = os.environ | {"PYTHONPATH": root}
        return subprocess.Popen([sys.executable, "-c", KILLED, str(path)], env=environment)

    whole, path = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert start(whole).wait() == 0
    wanted, kills = without_times(whole), 0
    for at_least in (1, 4, 9, 15, 25):
        process = start(path)
        while process.poll() is None:
            if path.exists() and path.read_bytes().count(b"\n") > at_least:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += process.returncode == -signal.SIGKILL
                break
            time.sleep(0.005)
        assert wanted.startswith(without_times(path).rpartition(b"\n")[0])
    assert kills >= 3
    assert start(path).wait() == 0
    assert without_times(path) == wanted
