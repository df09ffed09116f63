from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from locus_memory.cli.commands.search import facts_first
from locus_memory.retrieval.embedders import register_embedder
from locus_memory.retrieval.rerankers import register_reranker

NOTES = {"doctor": "The doctor comes at noon.", "boat": "A boat lies in the harbour."}


class Model:
    """A model of rerankers and embedders that fails, or scores texts by their length."""

    name = "made-up"
    dimension = 3

    def __init__(self, error=None):
        self.error = error

    async def embed(self, texts, *, kind="document"):
        raise self.error

    async def rerank(self, query, texts):
        if self.error:
            raise self.error
        return [float(len(text)) for text in texts]


@pytest.fixture
def register():
    """Let a name mean a model, during the test."""
    undo = []

    def registrar(register_model, name, made):
        undo.append(register_model(name, lambda _hint: made))

    yield registrar
    for each in undo:
        each()


@pytest.fixture
def notes(store_with, model):
    """Two notes with vectors of the model."""
    store_with(model, ("notes", "today"), NOTES)
    return model


def keys(result):
    return [item["key"] for item in result.json["items"]]


def test_search(ok):
    ok("put", "notes/a", "1", "The heron waits by the river.")
    ok("put", "notes/b", "2", "Rivers and lakes.", "--metadata", '{"kind": "map"}')
    ok("put", "other", "3", "A river, far away.")

    def keys(*arguments):
        found = ok("search", *arguments, "--json").json
        assert found["query"] == arguments[0]
        return {item["key"] for item in found["items"]}

    assert keys("what about the rivers?") == {"1", "2", "3"}
    assert keys("river", "--namespace", "notes") == {"1", "2"}
    assert keys("river", "-n", "notes/a") == {"1"}
    assert keys("river", "-n", "notes", "--exact") == set()
    assert keys("river", "--filter", '{"kind": "map"}') == {"2"}
    assert len(keys("river", "--limit", "1")) == 1
    assert "notes/a 1\n      The heron waits" in ok("search", "heron").out
    assert ok("search", "zebra").out == "nothing found\n"
    assert ok("search", "c++ \"what's up?").out == "nothing found\n"


def test_a_fact_that_answers_comes_before_a_greeting(ok, fails):
    ok("put", "locus_memory/users/noor/transcript/t", "1", "Nice to meet you, Noor.")
    for user, sentence in (("noor", "walnuts"), ("tess", "hazelnuts")):
        ok("remember", f"The user is allergic to {sentence}.", "--key", "allergy", "--user", user)
    ok("put", "notes", "1", "Nobody is allergic here, and nobody lives there.")
    found = ok("search", "what is noor allergic to?", "--json").json["items"]
    assert found[0]["value"]["content"] == "The user is allergic to walnuts."
    found = ok("search", "what is noor allergic to?").out.splitlines()
    assert found[0].endswith("locus_memory/users/noor/current user:allergy  noor")
    # All pages are those of one list.
    question = ("search", "noor allergic", "--json", "--limit", "1")
    paged = [ok(*question, "--offset", n).json["items"][0] for n in range(4)]
    assert paged == ok("search", "noor allergic", "--json").json["items"]


@pytest.mark.parametrize(
    "user", ["ada", "../x", "a/b\\", "[1]", "*", "--all", "عادا\u202e", "u\x1b[2J"]
)
def test_a_search_of_one_user_finds_nothing_of_others(ok, fails, user):
    for each, key, more in ((user, "mine", ()), ("bo", "his", ()), (user, "other", ("-n", "app"))):
        ok("remember", f"Rivers: {key}.", "--key", key, "--user=" + each, *more)
    ok("remember", "Rivers: nobody's.", "--key", "nobody")
    ok("put", "notes", "1", "Rivers: notes.")
    found = ok("search", "rivers", "--user=" + user, "--json").json["items"]
    assert [item["key"] for item in found] == ["user:mine"]
    found = ok("search", "rivers", "--user=" + user, "-n", "app", "--json").json["items"]
    assert [item["key"] for item in found] == ["user:other"]
    assert ok("search", "zebra", "--user=" + user).out == "nothing found\n"


def test_a_mistyped_user_of_a_search_is_answered_with_the_nearest(ok, fails):
    ok("remember", "Rivers.", "--key", "k", "--user", "noor")
    told = fails(1, "search", "rivers", "--user", "nor")
    assert "no memories for user 'nor': did you mean 'noor'?" in told
    assert "not both" in fails(2, "search", "x", "--user", "noor", "--exact", "-n", "app")


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.3, 0.995, 1.0])), max_size=120))
def test_facts_first(drawn):
    """All hits stay, in order but for the facts that are as relevant as the best of the first."""
    spaces = {True: ("users", "ada", "current"), False: ("notes",)}
    hits = [
        SimpleNamespace(item=SimpleNamespace(namespace=spaces[is_fact]), relevance=relevance)
        for is_fact, relevance in drawn
    ]
    found = facts_first(hits)
    assert sorted(map(id, found)) == sorted(map(id, hits))
    most = max([hit.relevance for hit in hits[:100]], default=0)
    moved = [h for h in hits[:100] if len(h.item.namespace) == 3 and h.relevance >= most - 0.01]
    assert found[: len(moved)] == moved
    assert found[len(moved) :] == [hit for hit in hits if not any(hit is each for each in moved)]


@pytest.mark.parametrize("columns", [40, 80, 100, 120])
def test_a_hit_has_two_lines_of_a_terminal_and_one_of_a_pipe(ok, monkeypatch, columns):
    key, text = "k" * 90, "The heron waits. " * 60
    ok("put", "a" * 50, key, text)
    ok("put", "b", "1", "短いサギの heron\nand a line")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = re.sub("\x1b\\[[0-9;]*m", "", ok("search", "heron").out).splitlines()
    assert len(lines) == 4
    assert max(map(cell_len, lines)) <= columns
    assert any("…" in line and line.split("…")[1].startswith("k") for line in lines)
    monkeypatch.delenv("FORCE_COLOR")
    (record,) = [line for line in ok("search", "waits").out.splitlines() if key in line]
    assert record.split("\t")[2] == key


def test_search_refuses(ok, fails):
    ok("put", "n", "k", "1")
    assert "unknown operator" in fails(2, "search", "x", "--filter", '{"a": {"$near": 1}}')
    assert "--exact needs" in fails(2, "search", "x", "--exact")


def test_a_long_hit_shows_the_words_around_the_match(ok):
    ok("put", "n", "k", "filler " * 100 + "the needle is here" + " filler" * 100)
    out = " ".join(ok("search", "needles").out.split())
    assert "the needle is here" in out
    assert len(out) < 300


def test_the_words_found_are_highlighted(ok, monkeypatch):
    ok("put", "n", "k", "Two rivers, [one] river.")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    out = ok("search", "river").out
    assert out.count("\x1b[1;33m") == 2
    assert "\x1b[1;33mrivers\x1b[0m" in out


def test_everything_is_one_ranking(ok):
    ok("put", "a", "1", "The heron stood by the river and the mill and the road.")
    ok("put", "b", "2", "A heron.")
    ok("put", "c/d", "3", "The heron stood by the river.")
    found = ok("search", "heron by the river", "--json")
    assert keys(found) == ["3", "1", "2"]
    scores = [item["score"] for item in found.json["items"]]
    assert scores == sorted(scores, reverse=True)
    assert keys(ok("search", "heron by the river", "--limit", "1", "--json")) == ["3"]


def test_a_search_goes_by_words_without_a_model_and_both_ways_with_one(ok, notes):
    assert keys(ok("search", "physician", "--json")) == []
    found = ok("search", "physician", "--embedder", notes, "--json")
    assert keys(found)[0] == "doctor"
    how = {name: found.json[name] for name in ("mode", "embedder", "reranker")}
    assert how == {"mode": "hybrid", "embedder": "model-a", "reranker": None}
    found = ok("search", "harbour", "--embedder", notes, "--mode", "vector", "--json")
    assert found.json["mode"] == "vector"
    found = ok("search", "harbour", "--embedder", "static:./missing", "--mode", "text", "--json")
    assert keys(found) == ["boat"]
    assert (found.json["mode"], found.json["embedder"]) == ("text", None)


def test_the_environment_names_the_model(ok, notes, monkeypatch):
    monkeypatch.setenv("LOCUS_MEMORY_EMBEDDER", notes)
    assert keys(ok("search", "ship", "--json"))[0] == "boat"
    assert ok("search", "ship", "--mode", "text").out == "nothing found\n"
    monkeypatch.setenv("LOCUS_MEMORY_EMBEDDER", "")
    assert ok("search", "ship").out == "nothing found\n"


def test_no_mark_of_a_vector_is_shown(ok, notes):
    found = ok("search", "boat", "--embedder", notes, "--json")
    assert {str(item["metadata"]) for item in found.json["items"]} == {"{}"}


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_mode_that_needs_a_model_says_how_to_name_one(ok, fails, mode):
    ok("put", "n", "k", "A boat.")
    line = fails(2, "search", "boat", "--mode", mode)
    assert f"--mode {mode} needs a model" in line
    assert "--embedder" in line
    assert "LOCUS_MEMORY_EMBEDDER" in line
    assert "vectors" not in line


def test_it_says_whose_vectors_there_are(fails, notes, ok):
    ok("put", "aaa", "k", "no vector")
    line = fails(2, "search", "boat", "--mode", "vector")
    assert line.endswith("; the stored vectors are of model-a (3 dimensions)\n")


def test_vectors_of_another_model(fails, notes, other_model):
    line = fails(1, "search", "boat", "--embedder", other_model)
    assert "model-a (3 dimensions)" in line
    assert "model-b (2)" in line
    assert "locus-memory reembed" in line


def test_unknown_models(ok, fails):
    ok("put", "n", "k", "A boat.")
    line = fails(2, "search", "boat", "--embedder", "locl")
    assert "did you mean 'local'?" in line
    assert "Known: fastembed, local, model2vec, multilingual, openai, static, universal" in line
    line = fails(2, "search", "boat", "--reranker", "nonsense")
    assert "Known: cross-encoder, late-interaction" in line
    fails(2, "search", "boat", "--mode", "nonsense")
    fails(1, "search", "boat", "--embedder", "static:./missing")


def test_a_model_that_fails_is_a_note(run, fails, notes, register):
    register(register_embedder, "away", Model(ConnectionError("nobody answers")))
    found = run("search", "boat", "--embedder", "away", "--json")
    assert (found.code, keys(found), found.json["mode"]) == (0, ["boat"], "text")
    assert found.json["embedder"] is None
    assert found.err == (
        "(text search only: the embedder failed: ConnectionError: nobody answers)\n"
    )
    for mode in ("hybrid", "vector"):
        assert "nobody answers" in fails(1, "search", "boat", "--embedder", "away", "--mode", mode)


def test_a_model_without_vectors_is_a_note(run, ok, model):
    ok("put", "n", "k", "A boat.")
    found = run("search", "boat", "--embedder", model, "--json")
    assert (found.code, keys(found)) == (0, ["k"])
    assert found.err == (
        "(no item has a vector of model-a: "
        "create them with locus-memory reembed --include-unmarked)\n"
    )
    ok("reembed", "--include-unmarked", "--embedder", model)
    assert keys(ok("search", "ship", "--embedder", model, "--json")) == ["k"]


def test_a_reranker_has_its_say(ok, register):
    register(register_reranker, "length", Model())
    ok("put", "n", "short", "A boat, a boat, a boat.")
    ok("put", "n", "long", "Somebody said that a boat might come by late in the evening.")
    found = ok("search", "boat", "--reranker", "length", "--json", "--explain")
    assert found.json["reranker"] == "made-up"
    reranked = {item["key"]: item["explanation"]["rerank"] for item in found.json["items"]}
    assert reranked == {"short": 23.0, "long": 60.0}
    assert (
        "blended with reranker 60: "
        in ok("search", "boat", "--reranker", "length", "--explain").out
    )


def test_a_reranker_that_fails_is_a_note(run, ok, register):
    register(register_reranker, "broken", Model(RuntimeError("out of paper")))
    ok("put", "n", "k", "A boat.")
    found = run("search", "boat", "--reranker", "broken", "--json")
    assert (found.code, keys(found), found.json["reranker"]) == (0, ["k"], None)
    assert found.err == "(not reranked: RuntimeError: out of paper)\n"


def test_each_hit_explains_itself(ok, sessions, model):
    ok("reembed", "--include-unmarked", "--embedder", model)
    arguments = ("search", "Which tulips did Bo plant?", "--embedder", model, "--explain")
    hits = ok(*arguments, "--json").json["items"]
    assert {"text", "vector", "neighbour", "succession"} < set(hits[0]["explanation"])
    for hit in hits:
        why = hit["explanation"]
        evidence = why["text"] + why["vector"] + why["words"] + why["neighbour"]
        made = evidence * why["speaker"] * why["date"] + why["succession"]
        assert hit["score"] == pytest.approx(made)
    assert [hit["explanation"]["speaker"] > 1 for hit in hits] == [
        hit["value"]["speaker"] == "Bo" for hit in hits
    ]
    best = hits[0]["explanation"]
    shown = ok(*arguments).out
    assert f"text {best['text']:.2f} (#1) + vector {best['vector']:.2f} (#" in shown
    assert f"own words {best['words']:.2f} + neighbour {best['neighbour']:.2f}" in shown
    assert f"x{best['speaker']:g} speaker" in shown
    assert f" = {hits[0]['score']:.2f}" in shown
    assert "explanation" not in ok(*arguments[:-1], "--json").json["items"][0]


def test_what_supersedes_stands_above_and_says_so(ok):
    ok("put", "n", "new", "Kim moved to Paris.", "--metadata", '{"supersedes": "old"}')
    ok("put", "n", "old", "Kim lives in Lyon, and Kim likes Lyon.")
    ok("put", "n", "else", "Kim knows nobody in Nice.")
    arguments = ("search", "where in Lyon does Kim live", "--explain")
    found = ok(*arguments, "--json")
    assert keys(found)[:2] == ["new", "old"]
    new, old = (item["explanation"] for item in found.json["items"][:2])
    assert new["succession"] > 0
    assert old["superseded_by"] == "new"
    out = ok(*arguments).out
    assert f"+{new['succession']:.2f} for superseding" in out
    assert "superseded by new" in out


@pytest.mark.parametrize("columns", ["80", "120"])
def test_explanations_fit_the_terminal(ok, monkeypatch, columns, register):
    register(register_reranker, "length", Model())
    monkeypatch.setenv("COLUMNS", columns)
    value = '{"speaker": "Bo", "date": "2024-05-01", "turn": 1, "text": "' + "word " * 60 + '"}'
    ok("put", "n" * 50, "\x1b[31m" + "k" * 50, value)
    out = ok("search", "word of Bo on 1 May 2024", "--explain", "--reranker", "length").out
    assert "x1.5 speaker, x2 date" in out
    assert max(map(len, out.splitlines())) <= int(columns)
    assert "\x1b" not in out


def test_min_score_leaves_out_what_is_hardly_relevant(ok, run):
    ok("put", "n", "both", "The grey heron waits.")
    ok("put", "n", "one", "The grey bridge.")
    found = {
        item["key"]: item["relevance"]
        for item in ok("search", "grey heron", "--json").json["items"]
    }
    assert found["both"] == 1
    assert 0 < found["one"] < 0.6
    assert keys(ok("search", "grey heron", "--min-score", "0.6", "--json")) == ["both"]
    assert "relevance 1.00" in ok("search", "grey heron", "--explain", "--min-score", "1").out
    assert ok("search", "grey whale of Lisbon", "--min-score", ".9").out == "nothing found\n"
    for bad in ("1.1", "-0.5", "nan"):
        refused = run("search", "heron", "--min-score", bad)
        assert refused.code == 2
        assert "--min-score is a number from 0 to 1" in refused.err


@pytest.mark.slow
def test_a_later_window_says_so(ok, write):
    turns = [{"role": "user", "content": "boat " * (place % 7 + 1)} for place in range(150)]
    ok("import", "--threads", write("chat.json", turns))
    out = ok("search", "boat", "--limit", "150", "--explain").out
    first, later = out.split("from a later window, so capped at ", 1)
    assert first.count("turns/chat") == 101
    assert later.count("turns/chat") == 49


def test_a_memory_is_shown_as_what_it_says(ok):
    ok("remember", "I live in Roscoff.", "--key", "home")
    lines = ok("search", "Roscoff").out.splitlines()
    assert lines[1].rstrip().endswith("I live in Roscoff.")
    assert len(lines) <= 3


def test_an_empty_database(ok, model):
    ok("put", "n", "k", "1")
    ok("rm", "n", "k")
    assert ok("search", "x").out == "nothing found\n"
    assert ok("search", "x", "--embedder", model).out == "nothing found\n"
    assert ok("search", "").out == "nothing found\n"


def test_a_database_that_is_away(fails):
    pytest.importorskip("redis")
    assert "127.0.0.1:1" in fails(1, "--url", "redis:127.0.0.1:1", "search", "x")
