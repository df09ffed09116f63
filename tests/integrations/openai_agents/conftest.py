"""Sessions of the OpenAI Agents adapter on every kind of database."""

from __future__ import annotations

import pytest

pytest.importorskip("agents")

from agents.tracing import set_tracing_disabled

from locus_memory import open_backend
from locus_memory.integrations.openai_agents import LocusSession

set_tracing_disabled(disabled=True)


@pytest.fixture
async def sessions(provider):
    """Makes sessions over one database of each kind."""
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield lambda name="ada", **given: LocusSession(name, backend, **given)
