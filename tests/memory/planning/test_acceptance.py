"""Everyday questions cost nothing, beside a scope of realistic facts and sessions."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from statistics import mean

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def everyday():
    found = importlib.util.spec_from_file_location("everyday", BENCHMARKS / "everyday.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.slow
async def test_everyday_questions_cost_nothing(world, everyday):
    await everyday.fill(world.store, world.manager)
    assert len(everyday.facts()) == 60
    plans = [await world.manager.plan(question) for question in everyday.questions()]
    assert len(plans) == 200
    assert mean(plan.tokens == 0 for plan in plans) >= 0.95
    assert all((plan.block is None) is (plan.tokens == 0) for plan in plans)


@pytest.mark.slow
async def test_questions_about_the_user_are_answered(world, everyday):
    await everyday.fill(world.store, world.manager)
    plans = [
        (section, word, await world.manager.plan(text)) for section, text, word in everyday.needs()
    ]
    assert mean(plan.section != "none" for _, _, plan in plans) >= 0.9
    assert mean(plan.section == section for section, _, plan in plans) >= 0.9
    assert mean(word in (plan.block or "") for _, word, plan in plans) >= 0.9
    assert all(plan.tokens <= 800 for _, _, plan in plans)
