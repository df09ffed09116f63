"""The messages on the page on troubleshooting: each is one that the library gives.

A message is a cell of its own at the beginning of a row; `...` in it stands for any text. What
provokes them is here in the same order.
"""

from __future__ import annotations

import gc
import inspect
import os
import re
import sqlite3
import warnings
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

import pytest
import redis
from langgraph.graph import START, StateGraph

from locus_memory import (
    Agent,
    AgentState,
    LLMMemoryManager,
    Memory,
    Message,
    OpenAIChat,
    ScriptedModel,
    blocking,
    get_checkpointer,
    get_store,
    open_backend,
)
from locus_memory._internal.locks import locked
from locus_memory.errors import LocusMemoryError
from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.testing import FakeEmbedder
from locus_memory.testing.servers import RedisServer

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
MESSAGES = re.findall(r"^\| `([^|]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
NS = ("jobs",)
WHERE = "sqlite:./agent.db"
PROVOKED = []


def provoked(function):
    PROVOKED.append(function)
    return function


def by_sqlite(*statements):
    """Do something with the file as another program does."""
    with closing(sqlite3.connect("agent.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@provoked
async def no_store_in_files():
    get_store("file:./dir")


@provoked
async def missing_folders():
    async with get_store("sqlite:./no/such/agent.db") as store:
        await store.get(NS, "7")


@provoked
async def three_slashes():
    async with get_store("sqlite:///agent.db") as store:
        await store.get(NS, "7")


@provoked
async def a_file_of_another_program():
    by_sqlite("CREATE TABLE theirs (x)")
    async with get_store(WHERE) as store:
        await store.get(NS, "7")


@provoked
async def a_file_of_a_newer_version():
    async with get_store(WHERE) as store:
        await store.put(NS, "7", 1)
    by_sqlite("PRAGMA user_version = 999")
    async with get_store(WHERE) as store:
        await store.get(NS, "7")


@provoked
async def a_lock_of_a_suspended_process():
    checkpointer = get_checkpointer("file:there", busy_timeout=0)
    await checkpointer.open()
    [path] = checkpointer.storage._threads.locks("t")
    path.parent.mkdir()
    with locked(path):
        await checkpointer.save({}, "t")


@provoked
async def a_transaction_left_open():
    async with get_store(WHERE, busy_timeout=0.01) as store:
        await store.put(NS, "7", 1)
        with closing(sqlite3.connect("agent.db", isolation_level=None)) as shell:
            shell.execute("BEGIN IMMEDIATE")
            await store.put(NS, "7", 2)


@provoked
async def a_file_replaced():
    async with get_store("sqlite:./other.db") as store:
        await store.put(NS, "7", 1)
    async with get_store(WHERE) as store:
        await store.put(NS, "7", 1)
        os.replace("other.db", "agent.db")  # noqa: PTH105 - as `mv` does
        await store.put(NS, "7", 2)


@provoked
async def no_redis():
    async with get_store("redis:localhost:9") as store:
        await store.get(NS, "7")


@provoked
async def no_postgresql():
    async with get_store("postgresql://locus@127.0.0.1:9/mydb") as store:
        await store.get(NS, "7")


@provoked
async def no_database(postgresql_server):
    async with get_store(f"{postgresql_server.url.rpartition('/')[0]}/nope") as store:
        await store.get(NS, "7")


@provoked
async def no_role(postgresql_server):
    url = f"postgresql://nobody@127.0.0.1:{postgresql_server.port}/postgres"
    async with get_store(url) as store:
        await store.get(NS, "7")


@provoked
async def no_right_to_make_tables(postgresql_server):
    postgresql_server.run("CREATE ROLE reader LOGIN")
    url = f"postgresql://reader@127.0.0.1:{postgresql_server.port}/postgres"
    async with get_store(url, table_prefix="reader_") as store:
        await store.get(NS, "7")


@provoked
async def no_password():
    with RedisServer() as server, redis.Redis.from_url(server.url) as client:
        client.config_set("requirepass", "secret")
        async with get_store(server.url) as store:
            await store.get(NS, "7")


@provoked
async def no_such_number(redis_server):
    async with get_store(f"{redis_server.url}/99") as store:
        await store.get(NS, "7")


@provoked
async def no_memory_left():
    with RedisServer() as server, redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", 1)
        async with get_store(server.url) as store:
            await store.put(NS, "7", 1)


@provoked
async def used_after_close():
    store = get_store(WHERE)
    await store.put(NS, "7", 1)
    await store.close()
    await store.get(NS, "7")


@provoked
async def never_closed():
    store = get_store(WHERE)
    await store.put(NS, "7", 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del store
        gc.collect()
    raise LocusMemoryError(str(caught[-1].message))


@provoked
async def a_string_for_a_namespace():
    async with get_store("memory") as store:
        await store.put("jobs", "7", 1)


@provoked
async def no_json():
    async with get_store("memory") as store:
        await store.put(NS, "7", {"at": datetime(2026, 5, 1)})  # noqa: DTZ001 - as a reader does


@provoked
async def another_dimension():
    async with get_store("memory", embedding_dimension=3) as store:
        await store.put_with_embedding(NS, "7", 1, [1.0])


@provoked
async def blocking_in_an_event_loop():
    with blocking("memory") as store:
        store.put(NS, "7", 1)


@provoked
async def another_version():
    async with get_store("memory") as store:
        await store.put(NS, "7", "queued")
        await store.put(NS, "7", "taken by A", if_version=1)
        await store.put(NS, "7", "taken by B", if_version=1)


@provoked
async def another_parent():
    async with get_checkpointer("memory") as checkpointer:
        await checkpointer.save({}, "t", "start")
        await checkpointer.save({}, "t", "mine", expected_parent="start")
        await checkpointer.save({}, "t", "theirs", expected_parent="start")


@provoked
async def a_fork_of_nothing():
    async with get_checkpointer("memory") as checkpointer:
        await checkpointer.fork("nope", "x", "new")


@provoked
async def a_string_for_a_state():
    async with get_checkpointer("memory") as checkpointer:
        await checkpointer.save("text", "t")


@provoked
async def a_state_of_another_class():
    async with get_checkpointer(WHERE) as checkpointer:
        await checkpointer.save({"n": 1}, "t")
    async with get_checkpointer(WHERE, state_type=AgentState) as checkpointer:
        await checkpointer.load("t")


async def second_run(**options):
    """Run an agent on a thread of Ada's."""
    async with Agent(ScriptedModel(), checkpointer="memory") as agent:
        await agent.run("Hello.", "t", user_id="ada")
        await agent.run("Hello again.", "t", **options)


@provoked
async def no_user():
    await second_run()


@provoked
async def another_user():
    await second_run(user_id="bob")


@provoked
async def a_thread_of_other_code():
    async with get_checkpointer("memory") as checkpointer:
        await checkpointer.save({"n": 1}, "t")
        async with Agent(ScriptedModel(), checkpointer=checkpointer) as agent:
            await agent.run("Hello.", "t")


@provoked
async def a_plain_function_as_the_model():
    await Agent(lambda _messages: Message.assistant("Hello.")).run("Hello.")


@provoked
async def no_endpoint():
    async with OpenAIChat("qwen3", base_url="http://127.0.0.1:9/v1", max_retries=0) as model:
        await model([Message.user("Hello.")])


@provoked
async def another_embedder():
    async with get_store("memory") as store:
        async with LLMMemoryManager(store, embedder=FakeEmbedder(64)) as memory:
            await memory.save([Memory("user", "cat", "The cat is called Bosun.")])
        async with LLMMemoryManager(store, embedder=FakeEmbedder(32)) as memory:
            await memory.retrieve(query="cat")


@dataclass
class Order:
    number: int


class Basket(TypedDict):
    order: Any


@provoked
async def a_class_that_no_schema_names():
    builder = StateGraph(Basket).add_node("buy", lambda _state: {"order": Order(1)})
    config = {"configurable": {"thread_id": "t"}}
    async with LocusSaver("memory") as saver:
        graph = builder.add_edge(START, "buy").compile(checkpointer=saver)
        await graph.ainvoke({"order": None}, config)
        await saver.aget_tuple(config)


@provoked
async def a_damaged_checkpoint():
    async with get_checkpointer(WHERE) as checkpointer:
        await checkpointer.save({"n": 1}, "t", "one")
    by_sqlite("UPDATE checkpoints SET payload = substr(payload, 1, length(payload) - 1)")
    async with get_checkpointer(WHERE) as checkpointer:
        await checkpointer.load("t")


@provoked
async def a_damaged_item():
    async with open_backend(WHERE) as backend:
        await backend.store.put(("u",), "a", "hello")
    by_sqlite("""UPDATE items SET value = '"jello"'""")
    async with open_backend(WHERE) as backend:
        await backend.store.get(("u",), "a")


def matches(shown, message):
    pattern = "(?s:.*)".join(map(re.escape, shown.split("...")))
    return re.fullmatch(pattern, message) is not None


@pytest.fixture
def given(request, tmp_path, monkeypatch):
    """Go to an empty folder; return the fixtures that the parameters name."""
    monkeypatch.chdir(tmp_path)
    names = inspect.signature(request.getfixturevalue("provoke")).parameters
    return {name: request.getfixturevalue(name) for name in names}


@pytest.mark.parametrize(
    ("shown", "provoke"),
    list(zip(MESSAGES, PROVOKED, strict=True)),
    ids=[each.__name__ for each in PROVOKED],
)
async def test_message(shown, provoke, given):
    with pytest.raises(LocusMemoryError) as caught:
        await provoke(**given)
    if str(caught.value).startswith("RedisServer: "):
        # There is no server to provoke: a wheel of it is missing.
        raise caught.value
    assert matches(shown, str(caught.value)), str(caught.value)
