"""Two processes that append to one session of a framework at the same time, in 20 sessions."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("agents")
pytest.importorskip("key_value.aio")
pytest.importorskip("google.adk")
pytest.importorskip("pydantic_ai.conversation_store")

from locus_memory import open_backend
from locus_memory.integrations.key_value import LocusKeyValue
from locus_memory.integrations.openai_agents import LocusSession
from locus_memory.integrations.pydantic_ai import LocusConversationStore
from locus_memory.testing.servers import PostgreSQLServer, RedisServer
from tests.integrations.adk import test_services as adk
from tests.integrations.key_value.test_store import append_together, assert_appended
from tests.integrations.openai_agents.test_session import assert_whole, together
from tests.integrations.pydantic_ai.test_conversations import WRITER, texts

SESSIONS = [f"session {number}" for number in range(20)]
TURNS = 40


@pytest.fixture(params=["sqlite", PostgreSQLServer, RedisServer], ids=str)
def where(request, tmp_path):
    """A provider string of each kind of database, empty."""
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'test.db'}"
    else:
        with request.param() as server:
            yield server.url


@pytest.mark.slow
async def test_openai_sessions_of_two_processes(where):
    together(where, TURNS, ",".join(SESSIONS))
    async with open_backend(where) as backend:
        for name in SESSIONS:
            items = await LocusSession(name, backend).get_items()
            assert_whole([each["content"] for each in items], writers=2, turns=TURNS)


def write_together(where):
    """Let two processes save the same conversations at the same time."""
    command = [sys.executable, "-c", WRITER, where]
    writers = [subprocess.Popen([*command, each, ",".join(SESSIONS)]) for each in "ab"]
    assert [each.wait(300) for each in writers] == [0, 0]


@pytest.mark.slow
async def test_conversations_of_two_processes(where):
    write_together(where)
    async with open_backend(where) as backend:
        for name in SESSIONS:
            found = texts(await LocusConversationStore(backend).load(name))
            assert len(found) == 40
            for each in "ab":
                own = [text for text in found if text.startswith(each)]
                assert own == [f"{each}{turn}" for turn in range(20)]


async def test_entries_of_two_processes(where):
    append_together(where, ",".join(SESSIONS))
    async with open_backend(where) as backend:
        for name in SESSIONS:
            await assert_appended(LocusKeyValue(backend), name)


async def test_adk_sessions_of_two_processes(where):
    adk.together(where, TURNS, ",".join(SESSIONS))
    for name in SESSIONS:
        adk.assert_whole(await adk.stored(where, name), turns=TURNS)
