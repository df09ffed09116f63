"""Memory tools of the Anthropic adapter."""

from __future__ import annotations

import pytest

pytest.importorskip("anthropic")

from locus_memory import open_backend
from locus_memory.integrations.anthropic import AsyncLocusMemoryTool


@pytest.fixture
async def tools(provider):
    """Makes memory tools over one database of each kind."""
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield lambda **given: AsyncLocusMemoryTool(backend, **given)
