"""Vectors as evidence: a fact that says the same in other words opens the gate."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.retrieval.embedders.scale import register_scale

FACT = "Ada drives an old Volvo."
QUESTION = "Which automobile suits this owner?"
OTHER = "How are eggs boiled?"


class Meanings:
    """An embedder that knows which texts are about cars."""

    dimension = 2

    def __init__(self, name="meanings"):
        self.name = name
        self.queries = []
        self.fails = False

    async def embed(self, texts, *, kind="document"):
        if kind == "query":
            self.queries += texts
            if self.fails:
                raise OSError
        return [self._vector(text) for text in texts]

    def _vector(self, text):
        return [1.0, 0.1] if "Volvo" in text or "automobile" in text else [0.1, 1.0]


@pytest.fixture
def scale():
    restore = register_scale("meanings", unrelated=0.2, paraphrase=0.9)
    yield
    restore()


@pytest.fixture(params=["memory", "sqlite"])
def make(request, make_world, clock, tmp_path):
    def made(embedder, **options):
        store = InMemoryStore(clock=clock)
        if request.param == "sqlite":
            store = SQLiteStore(tmp_path / "m.db", clock=clock)
        return make_world(store, embedder=embedder, **options)

    return made


@pytest.mark.usefixtures("scale")
async def test_a_fact_in_other_words_opens_the_gate(make):
    world = make(Meanings())
    await world.knows(FACT, "Bo likes rye bread.")
    plan = await world.manager.plan(QUESTION)
    assert (plan.section, plan.reason) == ("pinned", "a near vector")
    assert "Volvo" in plan.block


@pytest.mark.usefixtures("scale")
async def test_a_far_vector_opens_nothing(make):
    world = make(Meanings())
    await world.knows(FACT)
    assert (await world.manager.plan(OTHER)).block is None


async def test_a_vector_on_an_unknown_scale_is_no_evidence(make):
    world = make(Meanings("unmeasured"))
    await world.knows(FACT)
    assert (await world.manager.plan(QUESTION)).block is None


@pytest.mark.usefixtures("scale")
async def test_evidence_can_be_switched_off(make):
    world = make(Meanings(), evidence=False)
    await world.knows(FACT)
    assert (await world.manager.plan(QUESTION)).block is None


@pytest.mark.usefixtures("scale")
@pytest.mark.parametrize("text", [QUESTION, OTHER, "Where do I live?", "Where were we?", "Volvo?"])
async def test_a_message_is_embedded_once_a_turn(make, text):
    embedder = Meanings()
    world = make(embedder)
    await world.knows(FACT)
    await world.session(2, "Ada compared cars.")
    await world.block(text)
    assert len(embedder.queries) <= 1


@pytest.mark.usefixtures("scale")
async def test_an_embedder_that_fails_leaves_the_words(make, events):
    embedder = Meanings()
    world = make(embedder)
    await world.knows(FACT)
    embedder.fails = True
    assert "Volvo" in await world.block("Who drives the Volvo?")
    assert await world.block(QUESTION) is None
    assert events.of("retrieval.degraded")


@pytest.mark.usefixtures("scale")
async def test_an_embedder_that_hangs_ends_with_the_recall(make, events):
    class Hanging(Meanings):
        async def embed(self, texts, *, kind="document"):
            if kind == "query":
                await asyncio.Event().wait()
            return await super().embed(texts, kind=kind)

    world = make(Hanging(), recall_timeout=0.05)
    await world.knows(FACT)
    assert await world.block(QUESTION) is None
    assert "memory.retrieve_failed" in events.names
