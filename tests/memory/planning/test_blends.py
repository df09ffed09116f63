"""The order of the facts of a section by a blend of recall."""

from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.memory.layers.vitals import Vitals, vitals_put
from locus_memory.testing import FakeEmbedder

DAY = 86_400
OLD = "Ada baked rye bread in the morning, and it was good bread."
NEW = "Ada baked white bread in the cellar."
QUESTION = "Which bread did Ada bake in the morning, rye?"


@pytest.fixture(params=["memory", "sqlite"])
def make(request, make_world, clock, tmp_path):
    def made(**options):
        store = InMemoryStore(clock=clock)
        if request.param == "sqlite":
            store = SQLiteStore(tmp_path / "m.db", clock=clock)
        return make_world(store, **options)

    return made


async def told(world, kind="project"):
    await world.knows(OLD, kind=kind)
    world.clock.advance(200 * DAY)
    await world.knows(NEW, kind=kind)


async def trusts(world, text, trust, kind="project"):
    vitals = Vitals(decayed_at="", pinned_at="", trust=trust)
    await world.store.put_batch([vitals_put(world.scope, f"{kind}:{text[:40]}", vitals)])


def order(block):
    return ["rye" if "rye" in line else "white" for line in block.splitlines() if "bread" in line]


RECENT = {"blend": "recency", "blend_weights": (0.1, 0.9)}
TRUSTED = {"blend": "trust", "blend_weights": (0.1, 0.9, 0.0)}


@pytest.mark.parametrize("mode", ["heuristic", "off"])
async def test_a_blend_orders_the_facts_of_a_section(make, mode):
    world = make(gate_mode=mode)
    await told(world)
    assert order(await world.block(QUESTION)) == ["rye", "white"]


@pytest.mark.parametrize("mode", ["heuristic", "off"])
async def test_recency_puts_the_newer_first(make, mode):
    world = make(gate_mode=mode, **RECENT)
    await told(world)
    assert order(await world.block(QUESTION)) == ["white", "rye"]


async def test_trust_puts_the_trusted_first(make):
    world = make(**TRUSTED)
    await told(world)
    await trusts(world, OLD, 0.1)
    await trusts(world, NEW, 0.9)
    assert order(await world.block(QUESTION)) == ["white", "rye"]
    await trusts(world, OLD, 0.9)
    await trusts(world, NEW, 0.1)
    world.clock.advance(10)
    assert order(await world.block(QUESTION)) == ["rye", "white"]


async def test_the_salience_counts_with_a_blend_as_well(make):
    world = make(blend="recency", blend_weights=(1.0, 0.0))
    await told(world)
    vitals = Vitals(decayed_at="", pinned_at="", salience=0.0)
    await world.store.put_batch([vitals_put(world.scope, f"project:{OLD[:40]}", vitals)])
    vitals = Vitals(decayed_at="", pinned_at="", salience=1.0)
    await world.store.put_batch([vitals_put(world.scope, f"project:{NEW[:40]}", vitals)])
    assert order(await world.block("Which bread did Ada bake?")) == ["white", "rye"]


async def test_a_blend_orders_the_facts_about_the_user(make):
    world = make(**RECENT)
    await told(world, kind="user")
    block = await world.block("What do you know about me and my rye bread?")
    assert order(block) == ["white", "rye"]


async def test_facts_below_the_least_relevance_are_left_out(make):
    world = make(blend="recency", min_relevance=0.9, embedder=FakeEmbedder())
    await told(world)
    await world.knows("Bo sails to Gotland with Mo.")
    assert order(await world.block(OLD)) == ["rye"]
    plan = await world.manager.plan("Is there a museum of old ships on Gotland?")
    assert (plan.section, plan.block) == ("pinned", None)


async def test_the_evidence_is_that_of_the_search(make):
    for options in ({}, RECENT, TRUSTED):
        world = make(**options)
        await told(world)
        assert (await world.manager.plan(QUESTION)).reason == "two words of a fact"
        assert (await world.manager.plan("What is 17 times 23?")).block is None
