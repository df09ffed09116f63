"""The options of an agent: in a value, by name, and by the names of earlier versions."""

import inspect
import warnings
from dataclasses import fields

import pytest

from locus_memory import (
    Agent,
    AgentOptions,
    ConfigurationError,
    InvalidArgumentError,
    LLMMemoryManager,
    Memory,
    MemorySettings,
    Message,
    ScriptedModel,
)
from locus_memory.agent.options import AgentKeywords

OPTIONS = {"max_iterations": 3, "agent_id": "notes", "inherit_user": True, "end_on_error": True}


def told(agent):
    return {name: getattr(agent, name) for name in OPTIONS}


def test_at_most_eight_parameters_and_the_fields_of_the_options():
    parameters = inspect.signature(Agent).parameters
    assert len([each for each in parameters if each != "keywords"]) == 8
    assert [each.name for each in fields(AgentOptions)] == list(AgentKeywords.__annotations__)


def test_the_value_and_the_names_mean_the_same():
    in_value = Agent(ScriptedModel(), options=AgentOptions(**OPTIONS))
    assert told(in_value) == told(Agent(ScriptedModel(), **OPTIONS)) == OPTIONS
    assert told(Agent(ScriptedModel())) == {
        "max_iterations": 20,
        "agent_id": None,
        "inherit_user": False,
        "end_on_error": False,
    }


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"max_iteration": 3}, TypeError, "unexpected keyword argument 'max_iteration'"),
        (
            {"max_iterations": 3, "options": AgentOptions()},
            ConfigurationError,
            "'max_iterations' is given twice",
        ),
        ({"options": {"max_iterations": 3}}, ConfigurationError, "options is AgentOptions"),
        ({"inherit_user": 1}, ConfigurationError, "inherit_user is True or False"),
        ({"agent_id": 7}, ConfigurationError, "agent_id is a string or None"),
        ({"max_iterations": 0}, InvalidArgumentError, "max_iterations is at least 1"),
    ],
)
def test_what_is_no_option(given, error, message):
    with pytest.raises(error, match=message):
        Agent(ScriptedModel(), **given)


def test_the_names_of_earlier_versions_are_read():
    """Each with a warning, and beside settings that say something else."""
    settings = MemorySettings(prefetch=False)
    with pytest.warns(DeprecationWarning, match=r"MemorySettings\(placement=, on_error=\)") as seen:
        agent = Agent(ScriptedModel(), memory_settings=settings, memory_placement="system")
    assert seen[0].filename == __file__
    assert (agent.memory_placement, agent.on_memory_error) == ("system", "report")
    assert not agent._memory._settings.prefetch
    with pytest.warns(DeprecationWarning, match="on_memory_error"):
        assert Agent(ScriptedModel(), on_memory_error="raise").on_memory_error == "raise"
    for old in ({"memory_placement": "end"}, {"on_memory_error": "ignore"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(ConfigurationError):
                Agent(ScriptedModel(), **old)


async def test_settings_that_name_no_length_cut_nothing():
    """A block is as long as its manager allows, whatever else the settings say."""
    seen = []

    async def model(messages):
        seen.append(len(messages[0].content))
        return Message.assistant("Yes.")

    async with LLMMemoryManager("memory", memory_budget_tokens=5_000) as memory:
        await memory.save(Memory("user", f"k{n}", f"Fact {n}: " + "tea " * 40) for n in range(60))
        for settings in (None, MemorySettings(sync_turns=False)):
            agent = Agent(model, memory_manager=memory, memory_settings=settings)
            await agent.run("Hello.")
    assert min(seen) > 6_000
