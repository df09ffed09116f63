"""Threads of LangGraph's own savers, copied: each checkpoint is the one that it was."""

from __future__ import annotations

import asyncio
import json
import operator
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import Annotated

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from locus_memory import open_backend
from locus_memory.errors import CheckpointConflictError, ConfigurationError
from locus_memory.events import collect
from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.integrations.langgraph.importing.threads import import_threads, open_source

COMMAND = [sys.executable, "-W", "ignore", "-m", "locus_memory.cli"]


class Trip(BaseModel):
    city: str
    nights: dict[int, bytes] = {}


class State(MessagesState):
    trip: Trip | None
    steps: Annotated[list[str], operator.add]


def graph(saver):
    """A graph with messages, an object, parallel tasks, a subgraph and an interrupt in it."""
    inner = StateGraph(State)
    inner.add_node("look", lambda _: {"steps": ["look"]})
    inner.add_node("ask", lambda _: {"steps": [f"told {interrupt('Go on?')}"]})
    inner.add_edge(START, "look").add_edge("look", "ask")
    outer = StateGraph(State)
    outer.add_node(
        "plan",
        lambda _: {
            "messages": [("ai", "planned \0 é")],
            "trip": Trip(city="Brest", nights={1: b"\xff"}),
        },
    )
    outer.add_node("walk", lambda given: {"steps": [f"walk {given['n']}"]})
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "plan").add_edge("plan", "inner")
    outer.add_conditional_edges("plan", lambda _: [Send("walk", {"n": n}) for n in range(3)])
    return outer.compile(checkpointer=saver)


def played(saver, threads=("x", "a/b:*")):
    """Run the graph: each thread is interrupted and resumed, forked, and interrupted again."""
    app = graph(saver)
    for name in threads:
        config = {"configurable": {"thread_id": name}}
        app.invoke({"messages": [("user", "one")]}, config)
        app.invoke(Command(resume="yes"), config)
        first = list(app.get_state_history(config))[-2]
        app.invoke({"messages": [("user", "fork")]}, first.config)
        app.invoke({"messages": [("user", "two")]}, config)


@contextmanager
def postgresql_saver(url):
    postgres = pytest.importorskip("langgraph.checkpoint.postgres")
    with postgres.PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        yield saver


@contextmanager
def sqlite_saver(where):
    with SqliteSaver.from_conn_string(where) as saver:
        yield saver


@pytest.fixture(params=["sqlite", "postgresql"])
def original(request, tmp_path):
    """A saver of LangGraph with threads, and where it is."""
    if request.param == "sqlite":
        where, opened = str(tmp_path / "old.db"), sqlite_saver
    else:
        from locus_memory.testing.servers import PostgreSQLServer  # noqa: PLC0415 - seldom needed

        pytest.importorskip("langgraph.checkpoint.postgres")
        server = request.getfixturevalue("postgresql_server")
        assert isinstance(server, PostgreSQLServer)
        where, opened = server.url, postgresql_saver
    with opened(where) as saver:
        saver.serde = JsonPlusSerializer(allowed_msgpack_modules=[(__name__, "Trip")])
        threads = [f"{tmp_path.name} x", "a/b:*"]
        played(saver, threads)
        yield saver, where, threads


async def copied(where, target, **given):
    async with open_source(where) as source:
        return await import_threads(source, target, **given)


async def copied_all(where, target, threads):
    return [each for name in threads for each in await copied(where, target, thread_id=name)]


async def listed(saver, threads):
    found = {}
    for name in threads:
        config = {"configurable": {"thread_id": name}}
        found[name] = [each async for each in saver.alist(config)]
    return found


def as_it_was(found):
    """Return a checkpoint in a form that compares; the path of a task orders its writes."""
    return (
        found.config["configurable"],
        found.parent_config and found.parent_config["configurable"],
        found.checkpoint,
        found.metadata,
        sorted(map(repr, found.pending_writes)),
    )


def by_id(listing):
    return sorted(
        map(as_it_was, listing),
        key=lambda each: (each[0]["thread_id"], each[0]["checkpoint_ns"], each[2]["id"]),
    )


class TestCopies:
    @pytest.mark.slow
    async def test_every_checkpoint_is_as_it_was(self, original, provider):
        saver, where, threads = original
        url, options = provider
        async with open_backend(url, **options) as backend:
            done = await copied_all(where, backend, threads)
            ours = LocusSaver(backend, serde=saver.serde)
            for name in threads:
                theirs = list(saver.list({"configurable": {"thread_id": name}}))
                mine = (await listed(ours, [name]))[name]
                assert by_id(mine) == by_id(theirs)
                # Each namespace is in LangGraph's order.
                root = [each for each in mine if not each.config["configurable"]["checkpoint_ns"]]
                ids = [each.checkpoint["id"] for each in root]
                assert ids == sorted(ids, reverse=True)
                counts = [each for each in done if each.thread_id == name]
                assert sum(each.checkpoints for each in counts) == len(theirs)
                assert sum(each.writes for each in counts) == sum(
                    len(each.pending_writes) for each in theirs
                )
            assert {(each.missing, each.unreadable) for each in done} == {(0, 0)}
            again = await copied_all(where, backend, threads)
            assert [each.saved for each in again] == [0] * len(again)

    @pytest.mark.slow
    async def test_a_graph_goes_on_where_it_was(self, original):
        saver, where, threads = original
        config = {"configurable": {"thread_id": threads[0]}}
        async with open_backend("memory") as backend:
            await copied(where, backend, thread_id=threads[0])
            app = graph(LocusSaver(backend))
            mine = await app.ainvoke(Command(resume="yes"), config)
        theirs = graph(saver).invoke(Command(resume="yes"), config)
        assert mine["steps"] == theirs["steps"]
        assert mine["trip"] == theirs["trip"] == Trip(city="Brest", nights={1: b"\xff"})
        assert [each.content for each in mine["messages"]] == [
            each.content for each in theirs["messages"]
        ]

    @pytest.mark.slow
    async def test_what_was_added_meanwhile_is_copied_later(self, tmp_path):
        where = str(tmp_path / "old.db")
        with sqlite_saver(where) as saver:
            played(saver, ["x"])
            async with open_backend("memory") as backend:
                await copied(where, backend)
                played(saver, ["x", "y"])
                done = await copied(where, backend)
                assert {each.missing for each in done} == {0}
                assert 0 < sum(each.saved for each in done) < sum(each.checkpoints for each in done)
                found = await listed(LocusSaver(backend, serde=saver.serde), ["x", "y"])
            for name, mine in found.items():
                theirs = list(saver.list({"configurable": {"thread_id": name}}))
                assert by_id(mine) == by_id(theirs)

    async def test_another_thread_of_the_same_name_is_not_touched(self, tmp_path):
        where = str(tmp_path / "old.db")
        with sqlite_saver(where) as saver:
            played(saver, ["a", "x"])
        async with open_backend("memory") as backend:
            config = {"configurable": {"thread_id": "x"}}
            await graph(LocusSaver(backend)).ainvoke({"messages": [("user", "mine")]}, config)
            with pytest.raises(CheckpointConflictError):
                await copied(where, backend)
            found = await listed(LocusSaver(backend), ["a"])
            assert found == {"a": []}

    async def test_a_damaged_checkpoint_is_left_out_and_told(self, tmp_path):
        where = str(tmp_path / "old.db")
        with sqlite_saver(where) as saver:
            played(saver, ["x"])
            ids = [
                row[0]
                for row in saver.conn.execute(
                    "SELECT checkpoint_id FROM checkpoints WHERE checkpoint_ns = '' ORDER BY 1"
                )
            ]
            # Old releases wrote the objects of classes into JSON.
            message = {"lc": 2, "type": "constructor", "id": ["langchain", "AIMessage"]}
            changes = [
                ("msgpack", b"\xc1", ids[1]),
                ("pickle", b"x", ids[2]),
                ("json", json.dumps({"channel_values": {"messages": [message]}}).encode(), ids[3]),
            ]
            saver.conn.executemany(
                "UPDATE checkpoints SET type = ?, checkpoint = ? WHERE checkpoint_id = ?", changes
            )
            saver.conn.commit()
        with collect() as events:
            async with open_backend("memory") as backend:
                [root, *_] = await copied(where, backend)
        assert (root.unreadable, root.missing, root.saved) == (3, 0, len(ids) - 3)
        told = [each for each in events if each.name == "integrations.checkpoint_unreadable"]
        assert [each.attributes["checkpoint"] for each in told] == ids[1:4]


class TestCommand:
    @pytest.mark.slow
    def test_a_count_that_matches(self, tmp_path):
        with sqlite_saver(str(tmp_path / "old.db")) as saver:
            played(saver)
            number = len(list(saver.list(None)))
        for saved in (number, 0):
            done = ran(tmp_path, "--json")
            document = json.loads(done.stdout)
            assert (document["checkpoints"], document["saved"]) == (number, saved)
            assert (document["missing"], document["unreadable"]) == (0, 0)
        shown = subprocess.run(
            [*COMMAND, "--url", "sqlite:new.db", "threads"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert 'langgraph:["x",""]' in shown.stdout

    @pytest.mark.slow
    def test_a_kill_loses_nothing(self, tmp_path):
        with sqlite_saver(str(tmp_path / "old.db")) as saver:
            played(saver, [f"thread {number}" for number in range(12)])
            number = len(list(saver.list(None)))
        there = []
        for _ in range(3):
            with subprocess.Popen(
                command(), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as process:
                while process.poll() is None and counted(tmp_path) <= max([0, *there]) + 20:
                    time.sleep(0.05)
                process.send_signal(signal.SIGKILL)
            there.append(counted(tmp_path))
        assert there[0] < number
        document = json.loads(ran(tmp_path, "--json").stdout)
        assert (document["checkpoints"], document["missing"]) == (number, 0)

        async def both():
            async with open_backend(f"sqlite:{tmp_path / 'new.db'}") as backend:
                with sqlite_saver(str(tmp_path / "old.db")) as saver:
                    mine = LocusSaver(backend, serde=saver.serde)
                    found = [each async for each in mine.alist(None)]
                    return by_id(found), by_id(saver.list(None))

        mine, theirs = asyncio.run(both())
        assert mine == theirs

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("given", "told"),
        [
            (["--format", "langgraph"], "--from"),
            (["--format", "langgraph", "--from", "none.db"], "none.db: there is no such file"),
            (["--format", "langgraph", "--from", "a.db", "x.json"], "no FILE"),
            (["--from", "a.db", "x.json"], "--from needs --format langgraph"),
            (["--format", "langgraph", "--from", "text.db"], "text.db: not a database"),
            (["--format", "langgraph", "--from", "empty.db"], "empty.db: not a database"),
            ([], "name a FILE"),
        ],
    )
    def test_what_is_refused(self, tmp_path, given, told):
        (tmp_path / "text.db").write_text("no database" * 100)
        with sqlite3.connect(tmp_path / "empty.db") as connection:
            connection.execute("CREATE TABLE other (a)")
        connection.close()
        done = subprocess.run(
            [*COMMAND, "import", *given], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode in (1, 2)
        assert told in done.stderr
        assert len(done.stderr.splitlines()) == 1


async def test_a_server_that_cannot_be_reached(unused_tcp_port_factory):
    url = f"postgresql://ada:secret@127.0.0.1:{unused_tcp_port_factory()}/x"
    with pytest.raises(Exception, match="cannot be reached") as refused:
        await copied(url, "memory")
    assert "secret" not in str(refused.value)
    assert not isinstance(refused.value, ConfigurationError)


def command(*more):
    given = ("--format", "langgraph", "--from", "old.db")
    return [*COMMAND, "--url", "sqlite:new.db", "import", *given, *more]


def ran(folder, *more):
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        command(*more), cwd=folder, capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done


def counted(folder):
    """Return how many records the target has."""
    with sqlite3.connect(folder / "new.db") as connection:
        names = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%checkpoints'"
            )
        ]
        found = sum(
            connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names
        )
    connection.close()
    return found
