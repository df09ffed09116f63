from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from locus_memory.chat import register_model
from locus_memory.errors import ModelRequestError
from locus_memory.evaluation.journal import Answered, Judged, Run, read_journal
from locus_memory.evaluation.questions.memories import MEMORIES
from locus_memory.testing import FakeEmbedder
from tests.evaluation.scripted import PETS, Scripted, conversation

PRICES = "[known]\nprompt = 2.0\ncompletion = 8.0\n[other]\nprompt = 1.0\ncompletion = 1.0\n"
ASK = ("eval", "pets.json", "--answer", "known", "--judge", "known")


@pytest.fixture
def models():
    """Two scripted models by name, and what they were asked."""
    made = {"known": Scripted(), "other": Scripted()}
    undo = [register_model(name, lambda _hint, model=model: model) for name, model in made.items()]
    yield made
    for each in undo:
        each()


@pytest.fixture
def pets(write, models):
    write("pets.json", orjson.dumps([conversation("c0", dict(list(PETS.items())[:2]))]).decode())
    write("prices.toml", PRICES)
    return models


def kinds(path="eval.jsonl"):
    return Counter(each.kind for each in read_journal(path))


@pytest.mark.parametrize("more", [(), ("--answer", "known", "--out", "pets.json", "--resume")])
@pytest.mark.usefixtures("pets")
def test_a_data_set_in_place_of_a_run_stays_as_it_is(fails, more):
    before = Path("pets.json").read_bytes()
    assert "no record of a run" in fails(2, "eval", "pets.json", "--judge", "known", *more)
    assert Path("pets.json").read_bytes() == before


@pytest.mark.parametrize(
    "options",
    [
        ("--memory", "mem0"), ("--extract", "known"), ("--prices", "prices.toml"),
        ("--sample", "3"), ("--max-cost", "1"), ("--resume",),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("pets")
def test_retrieval_is_not_taken_for_the_figures_of_a_memory(fails, options):
    assert "need --answer" in fails(2, "eval", "pets.json", *options)


@pytest.mark.usefixtures("pets")
def test_what_was_spent_is_not_known_without_the_price_of_each_model(ok, write):
    write("half.toml", "[known]\nprompt = 2.0\ncompletion = 8.0\n")
    told = ok(*ASK, "--prices", "half.toml", "--out", "one.jsonl", "--json").json
    assert told["spent"] > 0
    other = ("eval", "pets.json", "--answer", "known", "--judge", "other", "--out", "two.jsonl")
    assert ok(*other, "--prices", "half.toml", "--json").json["spent"] is None


def test_what_a_memory_lacks_is_told_before_anything_is_asked(ok, fails, pets):
    assert "'dense' needs" in fails(1, *ASK, "--memory", "ours", "--memory", "dense")
    assert not pets["known"].calls
    # The file of the run is not there yet, so that the mended command needs no other one.
    assert ok(*ASK, "--json").json["answers"] == 3


@pytest.mark.usefixtures("pets")
def test_it_asks_and_judges(ok, on_a_pipe):
    told = ok(*ASK, "--json").json
    assert told == {
        "run": "eval.jsonl", "answers": 3, "judgements": 3, "failures": 0,
        "spent": None, "ended": None,
    }  # fmt: skip
    run, *_ = read_journal("eval.jsonl")
    assert (run.file, run.memories, run.budgets, run.seed) == ("pets.json", ("ours",), (4000,), 0)
    assert len(run.digest) == 64
    assert ok(*ASK, "--resume").out == "eval.jsonl\t0\t0\t0\n"
    assert kinds() == {"run": 1, "ingest": 1, "answer": 3, "judgement": 3}


def test_several_memories_and_budgets(ok, pets):
    memories = ("ours", "ours-words", "ours-notes", "full-context", "last-n", "bm25")
    given = [part for each in memories for part in ("--memory", each)]
    told = ok(*ASK, *given, "--budget", "300, 1000", "--out", "run.jsonl", "--json").json
    answers = Counter(each.memory for each in read_journal("run.jsonl") if each.kind == "answer")
    assert answers == dict.fromkeys(memories, 6) | {"full-context": 3}
    assert told["answers"] == answers.total()
    assert len(pets["known"].calls) < 2 * answers.total()


def test_vectors_are_a_memory_too(ok, pets, monkeypatch):
    monkeypatch.setattr(
        "locus_memory.cli.quality.questions.open_embedder", lambda _: FakeEmbedder()
    )
    assert ok(*ASK, "--memory", "dense", "--embedder", "fake", "--json").json["answers"] == 3


@pytest.mark.usefixtures("pets")
def test_a_sample_has_so_many_questions(ok):
    assert ok(*ASK, "--sample", "2", "--seed", "7", "--json").json["answers"] == 2


@pytest.mark.usefixtures("pets")
def test_a_run_that_is_there_is_not_touched(ok, fails):
    ok(*ASK)
    assert "eval.jsonl is there: take it up with --resume" in fails(1, *ASK)
    assert "the sample of this run is None, not 1" in fails(2, *ASK, "--sample", "1", "--resume")


@pytest.mark.usefixtures("pets")
def test_it_stops_at_the_budget_and_says_so(run, ok):
    paid = (*ASK, "--prices", "prices.toml", "--concurrency", "1")
    first = run(*paid, "--max-cost", "0.002", "--json")
    assert first.code == 1
    assert first.json["ended"].endswith("of $0.002 are spent")
    assert 0.002 <= first.json["spent"] < 0.004
    assert "--resume for the rest" in first.err
    rest = ok(*paid, "--max-cost", "1", "--resume", "--json").json
    assert rest["ended"] is None
    assert kinds() == {"run": 1, "ingest": 1, "answer": 3, "judgement": 3}
    costs = [each.cost for each in read_journal("eval.jsonl") if not isinstance(each, Run)]
    assert sum(costs) == pytest.approx(first.json["spent"] + rest["spent"], abs=1e-6)


def test_failures_are_told_and_done_again(run, ok, pets):
    pets["known"].fails = [ModelRequestError("no")] * 3
    first = run(*ASK, "--memory", "full-context", "--concurrency", "1", "--json")
    assert (first.code, first.json["failures"]) == (1, 3)
    assert "failures, which eval.jsonl names: 3" in first.err
    again = ok(*ASK, "--memory", "full-context", "--resume", "--json").json
    assert (again["answers"], again["failures"]) == (3, 0)


def test_another_judge_judges_the_answers_that_are_there(ok, pets):
    ok(*ASK)
    asked = len(pets["known"].calls)
    told = ok("eval", "eval.jsonl", "--judge", "other", "--json").json
    assert (told["answers"], told["judgements"]) == (0, 3)
    assert ok("eval", "eval.jsonl", "--judge", "other", "--json").json["judgements"] == 0
    assert len(pets["known"].calls) == asked
    judges = [each.judge for each in read_journal("eval.jsonl") if isinstance(each, Judged)]
    assert judges == ["known"] * 3 + ["other"] * 3


@pytest.mark.slow
@pytest.mark.usefixtures("pets")
def test_the_set_that_ships_is_asked(ok):
    told = ok("eval", "--answer", "known", "--memory", "bm25", "--sample", "5", "--json").json
    assert told["answers"] == 5
    assert all(isinstance(each, Answered) for each in list(read_journal("eval.jsonl"))[2:3])


@pytest.mark.usefixtures("pets")
def test_a_file_that_is_no_run_is_left_alone(fails, empty_directory):
    before = sorted(empty_directory.iterdir())
    fails(2, "eval", "prices.toml", "--judge", "known")
    fails(1, "eval", "nowhere.jsonl", "--judge", "known")
    assert sorted(empty_directory.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("eval", "--judge", "known"), 2, "--judge needs --answer"),
        ((*ASK, "--memory", "mine"), 2, ", ".join(MEMORIES)),
        ((*ASK, "--budget", "many"), 2, "--budget is numbers of at least 100"),
        ((*ASK, "--budget", "1000,5"), 2, "--budget is numbers of at least 100"),
        ((*ASK, "--budget", "²00"), 2, "--budget is numbers of at least 100"),
        ((*ASK, "--max-cost", "1"), 2, "--max-cost needs the price of 'known'"),
        ((*ASK, "--max-cost", "nan"), 2, "Invalid value for '--max-cost'"),
        ((*ASK, "--memory", "dense"), 1, "'dense' needs --embedder"),
        ((*ASK, "--prices", "nowhere.toml"), 1, "nowhere.toml"),
        ((*ASK, "--plot", "a.svg"), 2, "--reranker, --plot and --url are of retrieval"),
        (("eval", "nowhere.json", "--answer", "known"), 1, "nowhere.json"),
        (("eval", "prices.toml", "--judge", "known"), 2, "prices.toml, line 1: no record"),
        (("eval", "pets.json", "--answer", "m"), 2, "--answer needs OPENAI_API_KEY"),
        (
            ("eval", "pets.json", "--answer", "known", "--judge", "m"),
            2,
            "--judge needs OPENAI_API_KEY, or an endpoint named with --judge-url",
        ),
    ],
)
@pytest.mark.usefixtures("pets")
def test_bad_options(fails, monkeypatch, arguments, code, told):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert told in fails(code, *arguments)
