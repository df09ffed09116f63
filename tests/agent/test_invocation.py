"""Functions of the caller around each run of an agent."""

from __future__ import annotations

import pytest

from locus_memory import Agent, ScriptedModel
from locus_memory.errors import ConfigurationError, ModelUnavailableError


async def test_functions_around_a_run(happened):
    told = []

    def before(invocation):
        told.append(("before", invocation.thread_id, invocation.user_id, invocation.result))
        assert [each.content for each in invocation.state.messages] == ["I have a cat."]

    async def after(invocation):
        told.append(("after", invocation.result.text, invocation.error))

    agent = Agent(ScriptedModel(), before_invocation=[before], after_invocation=[after])
    await agent.run("I have a cat.", "t", user_id="ada")
    assert told == [("before", "t", "ada", None), ("after", "Noted.", None)]
    assert [each.name for each in happened if each.error] == []


async def test_a_function_around_a_run_that_fails(happened):
    def broken(invocation):
        raise RuntimeError("out of order")

    agent = Agent(ScriptedModel(), before_invocation=[broken], after_invocation=[broken])
    assert (await agent.run("I have a cat.")).text == "Noted."
    found = [(each.name, each.attributes) for each in happened if each.error]
    assert found == [
        ("agent.hook_failed", {"hook": "before_invocation"}),
        ("agent.hook_failed", {"hook": "after_invocation"}),
    ]


async def test_a_function_after_a_run_that_failed_gets_the_error():
    error = ModelUnavailableError("no network")
    told = []

    async def model(messages):
        raise error

    agent = Agent(model, after_invocation=[told.append])
    with pytest.raises(ModelUnavailableError):
        await agent.run("I have a cat.")
    assert [(each.result, each.error) for each in told] == [(None, error)]


@pytest.mark.parametrize("name", ["before_invocation", "after_invocation"])
@pytest.mark.parametrize("given", [3, ["no function"]])
def test_what_is_no_list_of_functions(name, given):
    with pytest.raises(ConfigurationError, match=f"{name} is a list of functions"):
        Agent(ScriptedModel(), **{name: given})
