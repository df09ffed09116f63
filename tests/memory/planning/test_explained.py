"""An explained plan accounts for every line that was found; it changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.layers.identity import IdentityBook
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.options import TendingOptions
from locus_memory.memory.scope import Scope
from locus_memory.store.base import scan_all

BOATS = "Which boats do I keep?"


def by_outcome(plan):
    found = {}
    for each in plan.lines:
        found.setdefault(each.outcome, []).append(each)
    return found


async def dump(store):
    """Everything in a store, with the versions of all items."""
    spaces = await store.list_namespaces(limit=1_000)
    return {space: [item.to_dict() async for item in scan_all(store, space)] for space in spaces}


async def test_what_the_gate_keeps_back(world):
    await world.knows("Ada lives in Graz.", "Ada has a boat.")
    plan = await world.manager.plan("What is a boat made of?", explain=True)
    assert (plan.section, plan.block) == ("none", None)
    (line,) = plan.lines
    assert line.outcome == "gate"
    assert line.line.startswith("- user: Ada has a boat.")
    assert (line.part, line.name) == ("section", "user:Ada has a boat.")


async def test_what_another_section_keeps_back_is_told_though_the_wording_decided(world):
    await world.knows("Ada sails with Bo.")
    await world.said("t", "I sail with Bo.", "Noted.")
    plan = await world.manager.plan("What exactly did I say about Bo?", explain=True)
    assert plan.section == "transcript"
    outcomes = by_outcome(plan)
    assert [each.name for each in outcomes["gate"]] == ["user:Ada sails with Bo."]
    assert all(not each.name for each in outcomes["shown"])


async def test_what_is_over_the_budget_or_the_limit(make_world):
    world = make_world(memory_budget_tokens=200, retrieve_limit=10)
    await world.knows(*(f"Ada keeps boat number {n} in the harbour." for n in range(40)))
    outcomes = by_outcome(await world.manager.plan(BOATS, explain=True))
    assert len(outcomes["shown"]) + len(outcomes["budget"]) == 10
    assert len(outcomes["limit"]) == 10
    assert "gate" not in outcomes


async def test_a_line_that_is_cut(make_world):
    world = make_world(memory_budget_tokens=100)
    await world.knows("Ada keeps a yacht, " + "and another one, " * 200 + "at sea.")
    plan = await world.manager.plan("Where do I keep my yacht?", explain=True)
    (line,) = plan.lines
    assert line.outcome == "cut"
    assert line.tokens > plan.tokens
    assert plan.items == 1


async def test_overrides_and_rules_over_their_budgets(world):
    for number in range(50):
        await world.always(f"{number}. " + "Mind the rule of the house. " * 10)
        await world.knows(f"{number}. " + "Cite a source for it. " * 10, kind="feedback")
    plan = await world.manager.plan("What is 17 times 23?", explain=True)
    over = by_outcome(plan)["budget"]
    assert sum(each.part == "override" for each in over) == plan.left_out > 40
    assert sum(each.part == "rule" for each in over) > 40
    assert len(plan.lines) == 100


async def test_without_a_request_there_are_no_lines(world):
    await world.knows("Ada keeps a boat.")
    explained = await world.manager.plan(BOATS, explain=True)
    plain = await world.manager.plan(BOATS)
    assert plain.lines == ()
    assert plain.block == explained.block is not None


@pytest.mark.parametrize("text", [BOATS, "Who am I?", "What exactly did I say?", "Hello", None])
async def test_it_changes_nothing(world, text):
    await world.knows("Ada keeps a boat.", "Ada likes tea.")
    await world.knows("Be brief.", kind="feedback")
    await world.always("Say you to me.")
    await world.said("t", "I keep a boat.", "Noted.")
    before = await dump(world.store)
    await world.manager.plan(text, explain=True)
    await world.manager._afterwards.wait()
    assert await dump(world.store) == before


WORDS = st.lists(st.sampled_from(["boat", "tea", "Bo", "harbour", "<memory>", "..."]), min_size=1)
TEXTS = st.lists(st.tuples(st.sampled_from(["user", "feedback", "project"]), WORDS), max_size=8)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    TEXTS,
    st.lists(WORDS, max_size=4, unique_by=tuple),
    st.sampled_from([BOATS, "my tea", "Who am I?", "Hm"]),
)
async def test_each_line_of_the_block_is_one_that_is_shown(memories, overrides, message):
    store = InMemoryStore()
    manager = LLMMemoryManager(store, tending=TendingOptions(memory_budget_tokens=100))
    kinds = [(kind, " ".join(words)) for kind, words in memories]
    await manager.save([Memory(kind, str(n), text) for n, (kind, text) in enumerate(kinds)])
    book = IdentityBook(store)
    for words in overrides:
        text = " ".join(words)
        await book.change(
            Scope(manager.namespace), lambda known, text=text: known.with_override(text, "2026")
        )
    plan = await manager.plan(message, explain=True)
    shown = [each for each in plan.lines if each.outcome == "shown"]
    listed = [line for line in (plan.block or "").splitlines() if line.startswith("- ")]
    cut = [each for each in plan.lines if each.outcome == "cut"]
    assert [each.line for each in shown] == listed[: len(shown)]
    assert len(listed) == plan.items == len(shown) + len(cut)
    assert {each.name for each in [*shown, *cut] if each.name} == set(plan.shown)
    names = [each.name for each in plan.lines if each.name]
    assert len(names) == len(set(names))
