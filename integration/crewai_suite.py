"""A pytest plugin: the tests of CrewAI's memory get our storage for theirs in a folder."""

from __future__ import annotations

import pytest
from crewai.memory.storage.factory import set_memory_storage_factory

from locus_memory.integrations.crewai import LocusStorage

OPENED = []


def ours(folder):
    """Return our storage in a file of a folder."""
    OPENED.append(LocusStorage(f"sqlite:{folder}.db"))
    return OPENED[-1]


@pytest.fixture(autouse=True)
def _closed():
    set_memory_storage_factory(ours)
    yield
    set_memory_storage_factory(None)
    while OPENED:
        OPENED.pop().close()
