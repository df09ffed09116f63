"""Sessions of ADK's own services, copied: the same events in the same order, the same states."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from uuid import uuid4

import pytest

pytest.importorskip("google.adk")

from google.adk.events import Event, EventActions
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from locus_memory import open_backend
from locus_memory.errors import ConfigurationError
from locus_memory.events import collect
from locus_memory.integrations.adk import LocusSessionService
from locus_memory.integrations.adk.importing.copying import import_sessions
from locus_memory.integrations.adk.importing.sources import open_source

PLACES = [
    ("app", "ada", "home"),
    ("app", "ada", "work é/:*"),
    ("app", "bo", "home"),
    ("b", "ada", "x"),
]


def said(text, moment, **delta):
    content = types.Content(role="user", parts=[types.Part(text=text), types.Part(text="\t é")])
    actions = EventActions(state_delta=delta)
    return Event(
        author="user", invocation_id="i", content=content, actions=actions, timestamp=moment
    )


def place(name):
    return dict(zip(("app_name", "user_id", "session_id"), name, strict=True))


async def filled(service, count=5, base=1_740_000_000.0):
    """Let a service of ADK write sessions, with states of all three kinds, mixed."""
    sessions = {}
    for number, name in enumerate(PLACES):
        state = {"own": {"n": [number]}, "user:from": name[2], "app:first": number, "temp:x": 1}
        sessions[name] = await service.create_session(**place(name), state=state)
    for n in range(count):
        for number, (name, session) in enumerate(sessions.items()):
            delta = {"n": n, f"k{n}": None, "user:n": n * 10 + number, "app:n": n * 0.1}
            # Events of one moment are in an order, too.
            event = said(f"{name} {n}", base + n // 2, **delta)
            if n % 2:
                event.id = f"{n}-{name[2]}"
            await service.append_event(session, event)
    return {name: await service.get_session(**place(name)) for name in PLACES}


def as_it_was(session):
    events = [event.model_dump(mode="json", exclude_none=True) for event in session.events]
    return session.state, events, session.last_update_time


def all_of(sessions):
    return {name: as_it_was(session) for name, session in sessions.items()}


async def listed(backend):
    service = LocusSessionService(backend)
    return {name: await service.get_session(**place(name)) for name in PLACES}


async def copied(where, target, **given):
    async with open_source(where) as source:
        return await import_sessions(source, target, **given)


@pytest.fixture
def where(tmp_path):
    return str(tmp_path / "old.db")


@pytest.fixture(params=["sqlite", "database", "postgresql"])
async def original(request, tmp_path):
    """Opens a service of ADK, and tells where its database is."""
    if request.param == "sqlite":
        where = str(tmp_path / "old.db")
        yield SqliteSessionService(where), where
        return
    pytest.importorskip("sqlalchemy")
    from google.adk.sessions import DatabaseSessionService  # noqa: PLC0415 - it needs sqlalchemy

    if request.param == "database":
        where = f"sqlite:///{tmp_path / 'old.db'}"
        service = DatabaseSessionService(where.replace("sqlite:", "sqlite+aiosqlite:"))
    else:
        server, schema = request.getfixturevalue("postgresql_server").url, f"adk_{uuid4().hex}"
        await run_on(server, f"CREATE SCHEMA {schema}")
        where = f"{server}?search_path={schema}"
        service = DatabaseSessionService(
            server.replace("postgresql:", "postgresql+asyncpg:"),
            connect_args={"server_settings": {"search_path": schema}},
        )
    yield service, where
    await service.db_engine.dispose()
    if request.param == "postgresql":
        await run_on(server, f"DROP SCHEMA {schema} CASCADE")


async def run_on(url, statement):
    asyncpg = pytest.importorskip("asyncpg")
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


class TestCopies:
    async def test_a_session_is_as_it_was(self, original):
        theirs, where = original
        expected = await filled(theirs)
        async with open_backend("memory") as backend:
            done = await copied(where, backend)
            assert all_of(await listed(backend)) == all_of(expected)
            rows = [each for each in done if each.session_id is not None]
            assert [(each.events, each.saved, each.conflicts) for each in rows] == [(5, 5, 0)] * 4
            assert sum(each.saved_keys for each in done) == 2 * 2 + 3 * 2
            service = LocusSessionService(backend)
            for name in ("ada", "bo"):
                state = await service.get_user_state(app_name="app", user_id=name)
                assert state == await theirs.get_user_state(app_name="app", user_id=name)
            again = await copied(where, backend)
            counts = {(each.saved, each.saved_keys, each.conflicts) for each in again}
            assert counts == {(0, 0, 0)}

    @pytest.mark.slow
    async def test_on_any_database(self, where, provider):
        expected = await filled(SqliteSessionService(where))
        url, options = provider
        async with open_backend(url, **options) as backend:
            await copied(where, backend)
            assert all_of(await listed(backend)) == all_of(expected)
            await copied(where, backend)
            assert all_of(await listed(backend)) == all_of(expected)

    async def test_a_session_goes_on(self, where):
        theirs = SqliteSessionService(where)
        await filled(theirs)
        async with open_backend("memory") as backend:
            await copied(where, backend)
            service = LocusSessionService(backend)
            session = await service.get_session(**place(PLACES[0]))
            event = said("more", 1_750_000_000.0, own="mine", **{"user:n": "mine"})
            await service.append_event(session, event)
            # The original of another session has gone on, too.
            other = await theirs.get_session(**place(PLACES[2]))
            later = datetime.now(UTC).timestamp() + 60
            await theirs.append_event(other, said("later", later, own="theirs", **{"app:n": 99}))
            done = await copied(where, backend)
            assert [each.saved for each in done if each.session_id] == [0, 0, 1, 0]
            found = await listed(backend)
            assert found[PLACES[0]].events[-1].content.parts[0].text == "more"
            assert found[PLACES[0]].state["own"] == "mine"
            assert found[PLACES[0]].state["user:n"] == "mine"
            assert found[PLACES[2]].events[-1].content.parts[0].text == "later"
            assert found[PLACES[2]].state["own"] == "theirs"
            assert found[PLACES[0]].state["app:n"] == 99

    @pytest.mark.slow
    async def test_the_rest_follows_an_import_that_stopped_midway(self, where):
        theirs = SqliteSessionService(where)
        session = await theirs.create_session(**place(PLACES[0]), state={"own": 1})
        for n in range(230):
            await theirs.append_event(session, said(str(n), 1_740_000_000.0 + n, n=n))
        expected = as_it_was(await theirs.get_session(**place(PLACES[0])))

        class CutOffError(Exception):
            pass

        async with open_backend("memory") as backend:
            restore, calls = backend.store.restore, []

            async def failing(items):
                calls.append(items)
                if len(calls) == 2:
                    raise CutOffError
                await restore(items)

            backend.store.restore = failing
            with pytest.raises(CutOffError):
                await copied(where, backend)
            found = await LocusSessionService(backend).get_session(**place(PLACES[0]))
            assert len(found.events) == 200
            backend.store.restore = restore
            [done] = await copied(where, backend)
            assert (done.events, done.saved) == (230, 30)
            found = await LocusSessionService(backend).get_session(**place(PLACES[0]))
            assert as_it_was(found) == expected

    async def test_sessions_with_one_id_alone(self, where):
        await filled(SqliteSessionService(where))
        async with open_backend("memory") as backend:
            done = await copied(where, backend, session_id="home")
            assert [(each.user_id, each.saved) for each in done] == [("ada", 5), ("bo", 5)]
            found = await listed(backend)
            assert [session is not None for session in found.values()] == [True, False, True, False]
            assert "app:n" not in found[PLACES[0]].state


class TestFaults:
    async def test_other_events_stay(self, where):
        expected = await filled(SqliteSessionService(where))
        async with open_backend("memory") as backend:
            service = LocusSessionService(backend)
            mine = await service.create_session(**place(PLACES[0]))
            await service.append_event(mine, said("mine", 1.0))
            done = await copied(where, backend)
            assert [each.conflicts for each in done if each.session_id] == [1, 0, 0, 0]
            found = await listed(backend)
            assert [event.content.parts[0].text for event in found[PLACES[0]].events] == ["mine"]
            assert as_it_was(found[PLACES[1]]) == as_it_was(expected[PLACES[1]])

    async def test_what_cannot_be_read_is_left_out_and_told(self, where):
        await filled(SqliteSessionService(where))
        with closing(sqlite3.connect(where)) as connection:
            changes = [("{", 0), ('{"author": 5}', 4), ('{"author": "a", "timestamp": NaN}', 8)]
            ids = [row[0] for row in connection.execute("SELECT rowid FROM events ORDER BY rowid")]
            for content, number in changes:
                statement = "UPDATE events SET event_data = ? WHERE rowid = ?"
                connection.execute(statement, (content, ids[number]))
            statement = (
                "UPDATE app_states SET state = '{\"n\": Infinity, \"m\": 1}' WHERE app_name = 'b'"
            )
            connection.execute(statement)
            connection.commit()
        with collect() as events:
            async with open_backend("memory") as backend:
                done = await copied(where, backend)
                found = await listed(backend)
        rows = [(each.events, each.saved, each.unreadable) for each in done if each.session_id]
        assert rows == [(2, 2, 3), (5, 5, 0), (5, 5, 0), (5, 5, 0)]
        assert len(found[PLACES[0]].events) == 2
        assert found[PLACES[3]].state["app:m"] == 1
        assert "app:n" not in found[PLACES[3]].state
        assert sum(each.name == "integrations.item_unreadable" for each in events) == 4

    async def test_pickled_events_are_refused(self, where):
        # `google/adk/sessions/schemas/v0.py` of google-adk 2.13.0.
        with closing(sqlite3.connect(where)) as connection:
            connection.execute("CREATE TABLE events (id, app_name, actions BLOB, content TEXT)")
            connection.commit()
        with pytest.raises(ConfigurationError, match="adk migrate session"):
            await copied(where, "memory")

    async def test_another_version_of_the_schema_is_refused(self, where):
        written_by_database_service(where, version="7")
        with pytest.raises(ConfigurationError, match="schema_version 7"):
            await copied(where, "memory")

    async def test_other_tables_are_refused(self, where):
        with closing(sqlite3.connect(where)) as connection:
            connection.execute("CREATE TABLE events (id, event_data)")
            connection.execute("CREATE TABLE sessions (id, cookie)")
            connection.commit()
        with pytest.raises(ConfigurationError, match="sessions has no app_name, state"):
            await copied(where, "memory")


# The tables of `google/adk/sessions/schemas/v1.py` of google-adk 2.13.0, as SQLAlchemy creates
# them on SQLite: `DatabaseSessionService` needs a package that not every environment has.
TABLES = """
    CREATE TABLE adk_internal_metadata (
        "key" VARCHAR(128) NOT NULL, value VARCHAR(256) NOT NULL, PRIMARY KEY ("key"));
    CREATE TABLE sessions (
        app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL, id VARCHAR(128) NOT NULL,
        state TEXT NOT NULL, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,
        PRIMARY KEY (app_name, user_id, id));
    CREATE TABLE app_states (
        app_name VARCHAR(128) NOT NULL, state TEXT NOT NULL, update_time DATETIME NOT NULL,
        PRIMARY KEY (app_name));
    CREATE TABLE user_states (
        app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL, state TEXT NOT NULL,
        update_time DATETIME NOT NULL, PRIMARY KEY (app_name, user_id));
    CREATE TABLE events (
        id VARCHAR(128) NOT NULL, app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL,
        session_id VARCHAR(128) NOT NULL, invocation_id VARCHAR(256) NOT NULL,
        timestamp DATETIME NOT NULL, event_data TEXT,
        PRIMARY KEY (id, app_name, user_id, session_id));
"""


def written_by_database_service(where, version="1"):
    moment = "2025-03-01 10:00:00.250000"
    events = [said("b", 1740823200.25, n=2), said("a", 1740823200.25, n=1)]
    for event, name in zip(events, "ba", strict=True):
        event.id = name
    with closing(sqlite3.connect(where)) as connection:
        connection.executescript(TABLES)
        connection.execute(
            "INSERT INTO adk_internal_metadata VALUES ('schema_version', ?)", (version,)
        )
        row = ("app", "ada", "home", '{"own": 1}', moment, moment)
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute("INSERT INTO app_states VALUES ('app', '{\"a\": 1}', ?)", (moment,))
        for event in events:
            data = event.model_dump(exclude_none=True, mode="json")
            row = (event.id, "app", "ada", "home", "i", moment, json.dumps(data))
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()


async def test_the_tables_of_the_database_service(where):
    written_by_database_service(where)
    async with open_backend("memory") as backend:
        await copied(where, backend)
        found = await LocusSessionService(backend).get_session(**place(PLACES[0]))
    # As that service reads them: of one moment, by their ids.
    assert [event.id for event in found.events] == ["a", "b"]
    assert found.state == {"own": 1, "app:a": 1}
    assert found.last_update_time == 1740823200.25
