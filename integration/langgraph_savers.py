"""The `conftest.py` that LangGraph's own tests get here: their fixtures, with our saver.

It is copied into the folder of those tests, and runs in a process of theirs.
"""

from __future__ import annotations

from uuid import UUID

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.store.memory import InMemoryStore

from locus_memory.integrations.langgraph import LocusSaver

SAVERS = {"sync_checkpointer", "async_checkpointer"}


@pytest.fixture
def sync_checkpointer(tmp_path):
    with LocusSaver(f"sqlite:{tmp_path / 'agent.db'}") as saver:
        yield saver


@pytest.fixture
async def async_checkpointer(tmp_path):
    async with LocusSaver(f"sqlite:{tmp_path / 'agent.db'}") as saver:
        yield saver


@pytest.fixture(autouse=True)
def _only_langchain_core(monkeypatch):
    """Hide the package langchain, which langmem installs: the tests list all packages of a run."""
    monkeypatch.setattr("langchain_core.language_models.base._get_langchain_version", lambda: None)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request):
    return request.param


@pytest.fixture
def cache():
    return InMemoryCache()


@pytest.fixture
def sync_store():
    return InMemoryStore()


@pytest.fixture
def async_store():
    return InMemoryStore()


@pytest.fixture
def deterministic_uuids(mocker):
    numbered = (UUID(f"00000000-0000-4000-8000-{number:012}") for number in range(10_000))
    return mocker.patch("uuid.uuid4", side_effect=numbered)


def pytest_collection_modifyitems(config, items):
    """Leave only the tests that save checkpoints."""
    others = [item for item in items if SAVERS.isdisjoint(item.fixturenames)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]
