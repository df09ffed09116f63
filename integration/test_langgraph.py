"""LangGraph's own conformance suite, from its released package, on every server there is."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import ProgressCallbacks

from locus_memory import open_backend
from locus_memory.integrations.langgraph import LocusSaver

FULL = ("FULL", 81, 0)


async def result_of(where, **options):
    """Run the suite and print its report; return its level, and how many passed and skipped."""
    async with open_backend(where, **options) as backend:

        @checkpointer_test(name=f"LocusSaver over {backend.provider}")
        async def saver():
            async with LocusSaver(backend) as opened:
                yield opened

        report = await validate(saver, progress=ProgressCallbacks.quiet())
    report.print_report()
    results = report.results.values()
    passed = sum(result.tests_passed for result in results)
    return report.conformance_level(), passed, sum(result.tests_skipped for result in results)


@pytest.mark.parametrize("where", ["memory", "sqlite:./agent.db"])
async def test_without_a_server(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert await result_of(where) == FULL


async def test_on_postgresql(postgresql_url):
    assert await result_of(postgresql_url, schema="langgraph") == FULL


async def test_on_redis(redis_url):
    assert await result_of(redis_url, key_prefix="langgraph:") == FULL
