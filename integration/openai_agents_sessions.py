"""A pytest plugin: the tests of the OpenAI Agents SDK get our session for its SQLiteSession."""

from __future__ import annotations

import asyncio

import agents
import agents.memory
import pytest

from locus_memory.integrations.openai_agents import LocusSession

OPENED = []


class Ours(LocusSession):
    """Our session with the arguments of theirs; it is closed after the test."""

    def __init__(self, session_id, db_path=None, *, session_settings=None):
        where = "memory" if db_path is None else f"sqlite:{db_path}"
        super().__init__(session_id, where, session_settings=session_settings)
        OPENED.append(self)

    def close(self):
        """Leave it to the end of the test."""


agents.SQLiteSession = agents.memory.SQLiteSession = Ours


@pytest.fixture(autouse=True)
def _closed():
    yield
    while OPENED:
        asyncio.run(LocusSession.close(OPENED.pop()))
