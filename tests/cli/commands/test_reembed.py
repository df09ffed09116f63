from __future__ import annotations

import pytest

from locus_memory.retrieval.embedders import get_embedder, register_embedder

COUNT = 150
NOTES = {f"{place:03}": f"A boat, number {place}." for place in range(COUNT)} | {
    "doctor": "The doctor comes at noon."
}


class Interrupted:
    """A model that fails from one call on, and remembers what it embedded before."""

    def __init__(self, where, calls):
        self._inner = get_embedder(where)
        self.name, self.dimension = self._inner.name, self._inner.dimension
        self.calls = calls
        self.embedded = []

    async def embed(self, texts, *, kind="document"):
        if self.calls == 0:
            raise ConnectionError("the line is dead")
        self.calls -= 1
        self.embedded += texts
        return await self._inner.embed(texts, kind=kind)


@pytest.fixture
def interrupted(other_model):
    """The other model, which fails at its third batch."""
    model = Interrupted(other_model, 2)
    unregister = register_embedder("interrupted", lambda _hint: model)
    yield model
    unregister()


def keys(result):
    return [item["key"] for item in result.json["items"]]


@pytest.fixture
def stored(store_with, model):
    """Many items with vectors of the model."""
    store_with(model, ("notes", "today"), NOTES)
    return model


@pytest.mark.slow
def test_from_one_model_to_another(ok, fails, stored, other_model, interrupted):
    search = ("search", "physician", "--mode", "vector", "--limit", "1", "--json", "--embedder")
    assert keys(ok(*search, stored)) == ["doctor"]
    line = fails(1, *search, other_model)
    assert "model-a (3 dimensions)" in line
    assert "model-b (2)" in line

    reembed = ("reembed", "notes", "--recursive", "--json", "--embedder")
    assert "the line is dead" in fails(1, *reembed, "interrupted")
    done = len(interrupted.embedded)
    assert 0 < done < COUNT

    interrupted.calls = -1
    rest = COUNT + 1 - done
    expected = {"total": COUNT + 1, "seen": COUNT + 1, "skipped": 0, "left": 0}
    assert ok(*reembed, "interrupted").json == expected | {"embedded": rest, "current": done}
    assert sorted(interrupted.embedded) == sorted(NOTES.values())
    assert ok(*reembed, other_model).json == expected | {"embedded": 0, "current": COUNT + 1}

    assert keys(ok(*search, other_model)) == ["doctor"]
    line = fails(1, *search, stored)
    assert "model-b (2 dimensions)" in line
    assert "model-a (3)" in line


def test_a_terminal_sees_how_far_it_is(run, stored, other_model, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    done = run("reembed", "--embedder", other_model)
    assert done.code == 0
    assert f"{COUNT + 1}/{COUNT + 1}" in done.err
    assert "notes" in done.err
    assert run("reembed", "--embedder", other_model, "--json").err == ""


def test_everything_or_one_namespace(ok, store_with, model, other_model):
    for namespace in (("a",), ("a", "below"), ("b",)):
        store_with(model, namespace, {"k": "A boat."})
    ok("put", "c", "k", "A boat without a vector.")

    def embedded(*arguments):
        return ok("reembed", *arguments, "--embedder", other_model, "--json").json["embedded"]

    assert embedded("a") == 1
    assert embedded("a", "--recursive") == 1
    assert embedded() == 1
    assert embedded() == 0
    assert embedded("--include-unmarked") == 1


def test_the_report_is_a_table(ok, store_with, model, other_model):
    store_with(model, ("n",), {"k": "A boat."})
    lines = ok("reembed", "--embedder", other_model).out.splitlines()
    assert [line.split() for line in lines] == [
        ["embedded", "current", "skipped", "left", "total"],
        ["1", "0", "0", "0", "1"],
    ]


def test_a_model_that_is_none(ok, fails):
    ok("put", "n", "k", "A boat.")
    assert "Known: " in fails(2, "reembed", "n", "--embedder", "nonsense")
    assert fails(1, "--url", "sqlite:./other.db", "reembed").startswith("error: no database")
