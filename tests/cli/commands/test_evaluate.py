from __future__ import annotations

import asyncio
from xml.etree import ElementTree as ET

import orjson
import pytest

from locus_memory.cli.commands.evaluate import recall_chart
from locus_memory.evaluation import evaluate, load_sample
from locus_memory.retrieval.rerankers import register_reranker
from locus_memory.testing import FakeEmbedder

CONVERSATION = {
    "id": "one",
    "speakers": ["Ada", "Ben"],
    "sessions": [
        {
            "date_time": "1:56 pm on 8 May, 2023",
            "turns": [
                {"id": "D1:1", "speaker": "Ada", "text": "I adopted a parrot called Figaro."},
                {"id": "D1:2", "speaker": "Ben", "text": "My sister moved to Trieste."},
            ],
        }
    ],
    "questions": [
        {"question": "What is Ada's parrot called?", "category": 4, "evidence": ["D1:1"]},
    ],
}


@pytest.mark.slow
def test_the_set_that_ships(ok):
    document = ok("eval", "--json").json
    assert document["overall"]["questions"] == 43
    assert "R@10" in ok("eval").out


@pytest.mark.slow
def test_it_draws_a_line_for_each_mode(ok, empty_directory):
    document = ok("eval", "--plot", "recall.svg", "--json").json
    root = ET.fromstring((empty_directory / "recall.svg").read_text())
    (line,) = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(line.get("points").split()) == len(document["overall"]["recall"])
    assert document["plot"] == "recall.svg"
    assert "plot: recall.svg" in ok("eval", "--plot", "recall.svg").out


@pytest.mark.slow
def test_a_hybrid_search_is_drawn_beside_its_two_sides():
    report = asyncio.run(evaluate(load_sample(), "memory", FakeEmbedder()))
    chart = recall_chart(report)
    assert [line.label.partition(":")[0] for line in chart.lines] == ["hybrid", "text", "vector"]
    assert chart.lines[0].points == list(report.overall.recall.items())


def test_a_file_of_ones_own(ok, write):
    write("one.json", orjson.dumps([CONVERSATION]).decode())
    document = ok("eval", "one.json", "--json").json
    assert document["overall"]["recall"]["10"] == 1


@pytest.mark.slow
def test_it_leaves_nothing_behind(ok):
    ok("put", "n", "k", "1")
    ok("--url", "sqlite:./locus.db", "eval")
    assert ok("ls", "--json").json["namespaces"] == [["n"]]


@pytest.mark.parametrize("content", ["not JSON", "[1]", "{}"])
def test_what_is_no_dataset(run, write, content):
    write("bad.json", content)
    result = run("eval", "bad.json")
    assert result.code != 0
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err


def test_an_embedder_that_is_none(run):
    result = run("eval", "--embedder", "nonsense")
    assert result.code != 0
    assert "local" in result.err


@pytest.mark.slow
def test_a_reranker_takes_part(run, ok):
    class Backwards:
        name = "backwards"

        async def rerank(self, query, texts):
            assert query
            return [float(place) for place in range(len(texts))]

    unregister = register_reranker("backwards", lambda _hint: Backwards())
    try:
        document = ok("eval", "--reranker", "backwards", "--json").json
        shown = ok("eval", "--reranker", "backwards").out
    finally:
        unregister()
    plain = ok("eval", "--json").json
    assert (plain["reranker"], document["reranker"]) == (None, "backwards")
    assert "text search, backwards;" in shown
    assert document["overall"]["ndcg@10"] < plain["overall"]["ndcg@10"]


@pytest.mark.slow
def test_a_reranker_that_fails_is_told_of_once(run):
    class Broken:
        name = "broken"

        async def rerank(self, query, texts):
            raise RuntimeError("out of paper")

    unregister = register_reranker("broken", lambda _hint: Broken())
    try:
        result = run("eval", "--reranker", "broken", "--json")
    finally:
        unregister()
    assert (result.code, result.err) == (0, "(not reranked: RuntimeError: out of paper)\n")


def test_both_models_and_their_names(ok, model, write):
    write("one.json", orjson.dumps([CONVERSATION]).decode())
    document = ok("eval", "one.json", "--embedder", model, "--json").json
    assert (document["mode"], document["embedder"]) == ("hybrid", "model-a")


def test_unknown_models_list_the_known(fails):
    line = fails(2, "eval", "--reranker", "colbert")
    assert line == (
        "error: --reranker: unknown reranker 'colbert'. Known: cross-encoder, late-interaction\n"
    )
    assert "Known: fastembed, local" in fails(2, "eval", "--embedder", "nonsense")
