"""The window of a model: what is shown takes at most an eighth of it."""

from __future__ import annotations

import pytest

from locus_memory import Agent
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.chat.base import CONTEXT_WINDOW, window_of
from locus_memory.conversation.roles import BLOCK_CLOSE
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.errors import InvalidArgumentError
from locus_memory.testing import FakeModel

FACTS = [f"Ada keeps {n} bees in the garden behind house number {n}." for n in range(120)]


@pytest.fixture(params=["memory", "sqlite"])
def world(make_world, request, clock, tmp_path):
    stores = {"sqlite": lambda: SQLiteStore(tmp_path / "m.db", clock=clock), "memory": lambda: None}
    return make_world(stores[request.param]())


async def shown(world, window, thread):
    """Return the tokens of what a run is shown, and its stable part."""
    model = FakeModel(["Yes."])
    model.context_window = window
    agent = Agent(model, checkpointer="memory", memory_manager=world.manager)
    await agent.run("How many bees does Ada keep?", thread)
    blocks = [each.content.rpartition(BLOCK_CLOSE)[0] for each in model.calls[0]]
    return sum(map(expected_tokens, blocks)), model.calls[0][0].content


async def test_a_run_is_shown_at_most_an_eighth(world):
    await world.knows(*FACTS)
    tokens, everything = await shown(world, None, "none")
    assert tokens > 1_500
    assert everything.splitlines()[-2] in (await shown(world, 1_000_000, "large"))[1]
    tokens, stable = await shown(world, 8_000, "small")
    assert 500 < tokens <= 1_000
    assert len(stable) < len(everything) / 2
    assert CONTEXT_WINDOW.get() is None


async def test_a_kept_part_that_is_too_long_for_another_model_is_built_again(world):
    await world.knows(*FACTS)
    tokens, _ = await shown(world, None, "t")
    assert tokens > 1_500
    tokens, stable = await shown(world, 8_000, "t")
    assert tokens <= 1_000
    await world.knows("Ada is allergic to bees.")
    # What is new stands in the tail, whatever the model.
    assert (await shown(world, 8_000, "t"))[1] == stable
    assert (await shown(world, None, "t"))[1] == stable


async def test_a_plan_without_a_model_has_the_budget_of_the_manager(world):
    await world.knows(*FACTS)
    assert (await world.manager.plan("bees")).tokens > 1_500


@pytest.mark.parametrize("stated", [None, 0, -5, True, "8000", 8_000.5, object()])
def test_what_is_no_number_of_tokens_is_no_window(stated):
    model = FakeModel()
    model.context_window = stated
    assert window_of(model) is None
    assert window_of(len) is None


def test_models_state_their_window():
    openai = pytest.importorskip("locus_memory.chat.openai.model")
    make = openai.OpenAIChat
    assert window_of(make("m", base_url="http://localhost:9", context_window=32_768)) == 32_768
    assert window_of(make("m", base_url="http://localhost:9")) is None
    with pytest.raises(InvalidArgumentError, match="context_window"):
        make("m", base_url="http://localhost:9", context_window=0)
