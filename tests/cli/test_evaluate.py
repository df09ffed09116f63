from __future__ import annotations

import orjson
import pytest

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


def test_the_set_that_ships(ok):
    document = ok("eval", "--json").json
    assert document["overall"]["questions"] == 43
    assert "R@10" in ok("eval").out


def test_a_file_of_ones_own(ok, write):
    write("one.json", orjson.dumps([CONVERSATION]).decode())
    document = ok("eval", "one.json", "--json").json
    assert document["overall"]["recall"]["10"] == 1


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
