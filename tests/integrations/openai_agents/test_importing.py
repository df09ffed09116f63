"""Sessions of the SDK's own `SQLiteSession`, copied: the same items in the same order."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import pytest
from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession

from locus_memory import open_backend
from locus_memory.errors import ConfigurationError
from locus_memory.events import collect
from locus_memory.integrations.openai_agents import LocusSession
from locus_memory.integrations.openai_agents.importing import import_sessions, open_source

IDS = ["ada", "a/b:* é", "bo"]


def items(name, count):
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"n": 1}'}
    said = [
        {"role": "user", "content": f"{name} {n} \0 é"} if n % 3 else call | {"n": n / 3}
        for n in range(count)
    ]
    return [*said, {"role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}]


@pytest.fixture
def where(tmp_path):
    return str(tmp_path / "old.db")


async def filled(where, count=7):
    """Let the SDK write some sessions, one after the other and mixed."""
    sessions = {name: SQLiteSession(name, where) for name in IDS}
    for name, session in sessions.items():
        await session.add_items(items(name, count))
    for name, session in sessions.items():
        await session.add_items([{"role": "user", "content": f"last of {name}"}])
    found = {name: await session.get_items() for name, session in sessions.items()}
    for session in sessions.values():
        session.close()
    return found


async def copied(where, target, **given):
    async with open_source(where) as source:
        return await import_sessions(source, target, **given)


async def listed(target, names=IDS):
    return {name: await LocusSession(name, target).get_items() for name in names}


class TestCopies:
    async def test_a_session_returns_the_same_items(self, where, provider):
        expected = await filled(where)
        url, options = provider
        async with open_backend(url, **options) as backend:
            done = await copied(where, backend)
            assert [(each.session_id, each.branch) for each in done] == [
                (name, "main") for name in sorted(IDS)
            ]
            assert all(each.items == each.saved == 9 for each in done)
            assert await listed(backend) == expected
            again = await copied(where, backend)
            assert {(each.saved, each.conflicts) for each in again} == {(0, 0)}
            # The session goes on, also through a second import.
            session = LocusSession("ada", backend)
            await session.add_items([{"role": "user", "content": "more"}])
            again = await copied(where, backend)
            assert {(each.saved, each.conflicts) for each in again} == {(0, 0)}
            assert (await session.pop_item())["content"] == "more"
            assert await session.get_items() == expected["ada"]

    async def test_moments_are_those_of_the_original(self, where):
        await filled(where)
        with sqlite3.connect(where) as connection:
            connection.execute("UPDATE agent_messages SET created_at = '2024-02-03 04:05:06'")
        connection.close()
        async with open_backend("memory") as backend:
            await copied(where, backend)
            turns = await LocusSession("bo", backend).get_conversation_turns()
        moment = datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)
        assert {datetime.fromisoformat(turn["timestamp"]) for turn in turns} == {moment}

    async def test_what_was_added_meanwhile_is_copied_later(self, where):
        await filled(where)
        async with open_backend("memory") as backend:
            await copied(where, backend)
            session = SQLiteSession("bo", where)
            await session.add_items([{"role": "user", "content": "later"}])
            done = await copied(where, backend)
            assert [each.saved for each in done] == [0, 0, 1]
            assert await listed(backend, ["bo"]) == {"bo": await session.get_items()}
            session.close()

    async def test_the_rest_follows_an_import_that_stopped_midway(self, where):
        expected = await filled(where, 450)
        async with open_backend("memory") as backend:

            def stop(name, number):
                if (name, number) == ("ada", 400):
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                await copied(where, backend, on_item=stop)
            assert (await listed(backend, ["ada"]))["ada"] == expected["ada"][:400]
            done = await copied(where, backend)
            assert [each.saved for each in done] == [0, 52, 452]
            assert await listed(backend) == expected

    async def test_numbers_without_items_are_no_harm(self, where):
        """A kill between the reservation of numbers and the write of the items leaves those."""
        expected = await filled(where)
        async with open_backend("memory") as backend:
            session = LocusSession("bo", backend)
            await session.add_items([*expected["bo"][:3], *expected["bo"][3:]])
            while len(await session.get_items()) > 3:
                await session.pop_item()
            await copied(where, backend)
            assert await listed(backend) == expected

    async def test_one_session_alone(self, where):
        await filled(where)
        async with open_backend("memory") as backend:
            [done] = await copied(where, backend, session_id="bo")
            assert (done.session_id, done.saved) == ("bo", 9)
            assert await copied(where, backend, session_id="none") == []
            assert (await listed(backend, ["ada"]))["ada"] == []


class TestBranches:
    async def test_a_branch_is_a_branch(self, where):
        theirs = AdvancedSQLiteSession(session_id="tree", db_path=where, create_tables=True)
        await theirs.add_items(items("trunk", 6))
        await theirs.create_branch_from_turn(3, "side")
        await theirs.add_items([{"role": "user", "content": "aside"}])
        await theirs.switch_to_branch("main")
        await theirs.add_items([{"role": "user", "content": "on"}])
        expected = {name: await theirs.get_items(branch_id=name) for name in ("main", "side")}
        theirs.close()
        plain = SQLiteSession("plain", where)
        await plain.add_items(items("plain", 2))
        plain.close()
        async with open_backend("memory") as backend:
            done = await copied(where, backend)
            assert [(each.session_id, each.branch) for each in done] == [
                ("plain", "main"),
                ("tree", "main"),
                ("tree", "side"),
            ]
            ours = LocusSession("tree", backend)
            assert await ours.get_items() == expected["main"]
            await ours.switch_to_branch("side")
            assert await ours.get_items() == expected["side"]
            assert expected["side"] != expected["main"]
            assert len(await LocusSession("plain", backend).get_items()) == 3


class TestFaults:
    async def test_other_items_stay(self, where):
        expected = await filled(where)
        async with open_backend("memory") as backend:
            mine = [{"role": "user", "content": "mine"}]
            await LocusSession("bo", backend).add_items(mine)
            done = await copied(where, backend)
            assert [(each.saved, each.conflicts) for each in done] == [(9, 0), (9, 0), (0, 1)]
            assert await listed(backend) == {**expected, "bo": mine}

    async def test_what_cannot_be_read_is_left_out_as_by_the_sdk(self, where):
        await filled(where)
        with sqlite3.connect(where) as connection:
            changes = [("{", 1), ("[]", 2), ('{"n": NaN}', 3)]
            connection.executemany(
                "UPDATE agent_messages SET message_data = ? WHERE id = ?", changes
            )
        connection.close()
        async with open_backend("memory") as backend:
            with collect() as events:
                _, ada, _ = await copied(where, backend)
            assert (ada.items, ada.saved, ada.unreadable, ada.conflicts) == (6, 6, 3, 0)
            told = [each.attributes["key"] for each in events if "unreadable" in each.name]
            assert told == ["1", "2", "3"]
            assert (await copied(where, backend))[1].saved == 0

    async def test_other_tables_are_refused(self, where):
        with sqlite3.connect(where) as connection:
            connection.execute("CREATE TABLE agent_messages (id, text)")
        connection.close()
        with pytest.raises(ConfigurationError, match="has no created_at, message_data, session_id"):
            await copied(where, "memory")
