from __future__ import annotations

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from locus_memory import open_backend
from locus_memory.integrations.langgraph import LocusSaver

TESTS = 81
"""How many tests langgraph-checkpoint-conformance 0.0.2 has."""


@pytest.mark.slow
async def test_every_capability_and_every_test_passes(provider):
    """LangGraph's own suite: nothing is skipped, nothing fails."""
    where, options = provider

    async with open_backend(where, **options) as backend:

        @checkpointer_test(name=f"LocusSaver over {backend.provider}")
        async def saver():
            async with LocusSaver(backend) as opened:
                yield opened

        report = await validate(saver)
    failures = [failure for result in report.results.values() for failure in result.failures]
    assert failures == []
    assert report.results.keys() == {capability.value for capability in Capability}
    assert all(result.detected and result.passed for result in report.results.values())
    assert report.conformance_level() == "FULL"
    assert sum(result.tests_passed for result in report.results.values()) >= TESTS
