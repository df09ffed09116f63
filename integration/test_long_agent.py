"""A long thread of the Locus SDK's own agent."""

from __future__ import annotations

from locus.agent import Agent
from locus.testing import FunctionModel

from tests.integrations.locus.test_agent import take_turns


def make_agent(handler, **options):
    return Agent(model=FunctionModel(handler), system_prompt="Be brief.", **options)


async def test_two_hundred_turns_cost_less_than_their_last_state():
    await take_turns(make_agent, 200)
