from __future__ import annotations

import pytest

from locus_memory import events, get_checkpointer


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def happened():
    found = []
    stop = events.subscribe(found.append)
    yield found
    stop()


@pytest.fixture(params=["memory", "file:threads", "sqlite:agent.db"])
async def checkpointer(request):
    async with get_checkpointer(request.param) as made:
        yield made
