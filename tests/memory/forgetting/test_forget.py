"""What is forgotten is gone for good, and nobody else's is."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.agent.loop import Agent
from locus_memory.backends.base import ComposedBackend
from locus_memory.backends.inmemory.backend import InMemoryBackend
from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.errors import (
    ConfigurationError,
    InvalidArgumentError,
    StateTypeError,
)
from locus_memory.events import subscribe
from locus_memory.memory.extraction.extractors import as_extractor
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryChange
from locus_memory.messages import Message
from locus_memory.registry import open_backend
from locus_memory.state import AgentState
from locus_memory.store.hidden_namespaces import FURTHER_VECTORS, further_vectors
from locus_memory.store.view import StoreContext
from locus_memory.testing import FakeEmbedder

# Each might be taken for "ada" by a database that is careless.
NEIGHBOURS = ["ada2", "ad", "Ada", "*", "a/da", "ada\x01", "ada%", "ad_", "users", "ada ", "\x00"]


@pytest.fixture(params=["memory", "sqlite"])
async def backend(request, tmp_path):
    made = InMemoryBackend() if request.param == "memory" else SQLiteBackend(tmp_path / "a.db")
    async with made:
        yield made


@pytest.fixture
async def database(tmp_path):
    async with SQLiteBackend(tmp_path / "a.db") as made:
        yield made


def rows(path):
    """Return everything that a SQLite file holds, the indexes of its searches included."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"')))
            for (name,) in tables.fetchall()
        }


async def contents(backend, *, without=()):
    """Return all items and checkpoints, but for those of some roots and threads."""
    store, checkpointer = backend.store, backend.checkpointer
    items = {}
    for namespace in await store.list_namespaces(limit=10_000):
        if not any(namespace[: len(root)] == root for root in without):
            items[namespace] = [item.to_dict() for item in await store.scan(namespace, 10_000)]
    threads = {}
    for thread in await checkpointer.list_threads(10_000):
        if thread not in without:
            threads[thread] = [
                (info.checkpoint_id, await checkpointer.load(thread, info.checkpoint_id))
                for info in await checkpointer.list_with_metadata(thread, 10_000)
            ]
    return items, threads


async def live(backend, user):
    """Let a user talk twice, and leave a trace everywhere."""
    manager = LLMMemoryManager(backend.store, extract_fn=as_extractor(None))
    agent = Agent(ScriptedModel(), checkpointer=backend, memory_manager=manager)
    await agent.run("I live in Lyon.", f"thread of {user}", user_id=user)
    await agent.run("I live in Paris. My name is Kim.", f"thread of {user}", user_id=user)
    await manager.drain()
    context = StoreContext(backend.store, user_id=user)
    await context.remember("tea", "green")
    await context.remember_with_embedding("likes", "tea", [1.0, 0.5])


async def leave_waiting(backend, *users):
    """Let users say something that waits for extraction."""
    lazy = LLMMemoryManager(backend.store, extract_fn=wait_for_ever, extract_mode="manual")
    for user in users:
        metadata = {"user_id": user, "thread_id": f"waiting of {user}"}
        said = (Message.user("I play the cello."),)
        await lazy.on_session_end(AgentState(messages=said, metadata=metadata))


async def wait_for_ever(messages):
    raise AssertionError(messages)


def roots(user):
    return ("locus_memory", "users", user), ("users", user)


@pytest.mark.slow
async def test_everything_of_a_user_goes_and_nothing_of_a_neighbour(backend):
    users = ["ada", *NEIGHBOURS]
    for user in users:
        await live(backend, user)
    await leave_waiting(backend, *users)
    await backend.store.put(("locus_memory", "current"), "user:home", {"content": "of nobody"})
    await backend.checkpointer.save(AgentState(), "ada")
    for user in users:
        before = await contents(backend, without=(*roots(user), f"thread of {user}"))
        report = await forget(backend, user_id=user)
        assert [(m.type, m.key, m.past) for m in report.memories] == [
            ("user", "home", (1,)),
            ("user", "name", ()),
        ]
        assert report.threads == (f"thread of {user}",)
        assert report.checkpoints == 6
        assert report.jobs == (f"waiting of {user}",)
        assert {key for _, key in report.items} == {"tea", "likes"}
        queue = before[0].pop(("locus_memory", "queue"))
        after = await contents(backend)
        left = after[0].pop(("locus_memory", "queue"), [])
        assert after == before
        of_user = ["locus_memory", "users", user]
        assert left == [item for item in queue if item["value"]["namespace"] != of_user]
        assert (await forget(backend, user_id=user)).is_empty


@pytest.mark.parametrize(
    "asked",
    [
        {"user_id": "ada"},
        {"user_id": "ada", "key": "home"},
        {"user_id": "ada", "key": "home", "threads": True},
        {"user_id": "ada", "query": "Lyon"},
        {"user_id": "ada", "query": "cello"},
    ],
)
async def test_a_dry_run_says_what_a_real_one_does_and_changes_nothing(database, tmp_path, asked):
    for user in ("ada", "ada2"):
        await live(database, user)
    await leave_waiting(database, "ada")
    before = rows(tmp_path / "a.db")
    planned = await forget(database, **asked, dry_run=True)
    assert rows(tmp_path / "a.db") == before
    done = await forget(database, **asked)
    assert rows(tmp_path / "a.db") != before
    assert (planned.dry_run, done.dry_run) == (True, False)
    fields = set(type(done).__dataclass_fields__) - {"dry_run"}
    assert all(getattr(planned, name) == getattr(done, name) for name in fields)


async def test_no_trace_is_left_in_any_table(database, tmp_path):
    await live(database, "ada")
    await leave_waiting(database, "ada")
    await forget(database, user_id="ada")
    left = str(rows(tmp_path / "a.db"))
    assert not [word for word in ("Lyon", "Paris", "Kim", "green", "cello") if word in left]


async def test_a_key_goes_with_its_history_and_its_vector(backend):
    embedder = FakeEmbedder()
    manager = LLMMemoryManager(backend.store, embedder=embedder).for_user("ada")
    for content in ("Lives in Lyon.", "Lives in Paris."):
        await manager.save([Memory("user", "home", content)])
    await manager.save([Memory("project", "home", "Sell the house."), Memory("user", "x", "y")])
    report = await forget(backend, user_id="ada", key="home", type="user")
    assert [(m.key, m.is_current, m.past) for m in report.memories] == [("home", True, (1,))]
    assert await manager.history("home", "user") == []
    assert [m.key async for m in manager.memories()] == ["x", "home"]
    assert await forget(backend, key="home", dry_run=True) == await forget(
        backend.store, key="nothing", dry_run=True
    )


async def test_a_memory_of_no_user(backend):
    manager = LLMMemoryManager(backend.store)
    await manager.save([Memory("user", "home", "Lives in Lyon.")])
    await manager.for_user("ada").save([Memory("user", "home", "Lives in Rome.")])
    await forget(backend, key="home")
    assert await manager.retrieve() == []
    assert len(await manager.for_user("ada").retrieve()) == 1


async def test_a_retired_memory_goes_too(backend):
    def extract(messages):
        return [MemoryChange(op="delete", type="user", key="home")]

    manager = LLMMemoryManager(backend.store, extract_fn=extract)
    await manager.save([Memory("user", "home", "Lives in Lyon.")])
    await manager.on_session_end(AgentState(messages=(Message.user("forget it"),)))
    assert await manager.retrieve() == []
    report = await forget(backend, query="lyon")
    assert [(m.is_current, m.past) for m in report.memories] == [(False, (1,))]
    assert await manager.undo("home") is None


async def test_it_names_the_threads_that_hold_the_source_and_erases_them_if_asked(backend):
    await live(backend, "ada")
    await live(backend, "bob")
    newest = await backend.checkpointer.list_checkpoints("thread of ada", 1)
    await backend.checkpointer.fork("thread of ada", newest[0], "fork")
    report = await forget(backend, user_id="ada", key="home")
    assert report.sources == ("fork", "thread of ada")
    assert report.threads == ()
    assert await backend.checkpointer.exists("thread of ada")
    report = await forget(backend, user_id="ada", key="name", threads=True)
    assert report.threads == ("fork", "thread of ada")
    assert report.cursors == ("thread of ada",)
    assert report.sources == ()
    assert await backend.checkpointer.list_threads() == ["thread of bob"]


async def test_a_source_that_only_an_older_checkpoint_holds(backend):
    checkpointer, manager = backend.checkpointer, LLMMemoryManager(backend.store)
    said = {"role": "user", "content": "I live in Lyon.", "id": "m1"}
    await checkpointer.save({"messages": [said]}, "t")
    await checkpointer.save({"messages": []}, "t")
    await checkpointer.save({"messages": [said]}, "another m1")
    origin = {"thread_id": "t", "message_ids": ["m1"]}
    await manager.save([Memory("user", "home", "Lives in Lyon.", origin)])
    assert (await forget(backend, key="home", dry_run=True)).sources == ("t",)


@pytest.mark.parametrize("ids", [["#1"], [], None])
async def test_a_source_that_is_only_counted_or_unknown(backend, ids):
    await backend.checkpointer.save({"messages": []}, "t")
    await backend.checkpointer.save({"messages": []}, "u")
    origin = {"thread_id": "t"} | ({} if ids is None else {"message_ids": ids})
    manager = LLMMemoryManager(backend.store)
    await manager.save([Memory("user", "home", "Lives in Lyon.", origin)])
    assert (await forget(backend, key="home", dry_run=True)).sources == ("t",)


async def test_the_thread_of_somebody_else_is_never_touched(backend):
    await live(backend, "bob")
    manager = LLMMemoryManager(backend.store).for_user("ada")
    origin = {"thread_id": "thread of bob", "message_ids": ["#1"]}
    await manager.save([Memory("user", "home", "Lives in Lyon.", origin)])
    report = await forget(backend, user_id="ada", key="home", threads=True)
    assert (report.threads, report.sources) == ((), ())
    assert await backend.checkpointer.exists("thread of bob")


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("lyon", ["a", "b"]),
        ("flat in Lyon", ["a"]),
        ("the FLATS", ["a"]),
        ("what about Lyon and Rome?", []),
        ("京北", []),
        ("东京", ["c"]),
        ("home", ["home"]),
    ],
)
async def test_a_query_takes_what_has_all_its_words(backend, query, keys):
    manager = LLMMemoryManager(backend.store)
    texts = {"a": "A flat in Lyon", "b": "Lyon is wet", "c": "住在东京和北海道", "home": "Rome"}
    await manager.save([Memory("user", key, content) for key, content in texts.items()])
    report = await forget(backend, query=query)
    assert [memory.key for memory in report.memories] == keys
    assert {m.key async for m in manager.memories()} == set(texts) - set(keys)


async def test_of_a_memory_that_only_used_to_say_it_the_past_goes(backend):
    manager = LLMMemoryManager(backend.store)
    for content in ("Lives in Rome.", "Lives in Lyon.", "Lives in Paris."):
        await manager.save([Memory("user", "home", content)])
    report = await forget(backend, query="Lyon")
    assert [(m.key, m.is_current, m.past) for m in report.memories] == [("home", False, (2,))]
    assert [m.content for m in await manager.history("home")] == [
        "Lives in Paris.",
        "Lives in Rome.",
    ]


async def test_what_waits_for_extraction_goes_with_its_words_or_its_source(backend):
    manager = LLMMemoryManager(backend.store, extract_fn=wait_for_ever, extract_mode="manual")
    for thread, text in (("t", "I live in Lyon."), ("u", "I live in Rome."), ("v", "Hm.")):
        message = Message(role="user", content=text, id=f"id of {thread}")
        state = AgentState(messages=(message,), metadata={"thread_id": thread})
        await manager.on_session_end(state)
    origin = {"thread_id": "v", "message_ids": ["id of v"]}
    await manager.save([Memory("user", "mood", "Unsure.", origin)])
    assert (await forget(backend, query="Lyon")).jobs == ("t",)
    assert (await forget(backend, key="mood")).jobs == ("v",)
    left = await backend.store.scan(("locus_memory", "queue"))
    assert [item.value["thread"] for item in left] == ["u"]


@pytest.mark.parametrize("where", ["checkpoint", "state"])
async def test_a_thread_is_a_users_by_its_checkpoints_or_its_state(backend, where):
    owner = {"user_id": "ada"}
    for thread in ("a", "b"):
        for number in range(3):
            noted = owner if where == "checkpoint" and number == 0 else {"user_id": None}
            state = AgentState(metadata=owner if where == "state" else {"user_id": 7})
            await backend.checkpointer.save(state, thread, metadata=noted)
    await backend.checkpointer.save({"user_id": "ada"}, "c")
    assert (await forget(backend, user_id="ada")).threads == ("a", "b")
    assert await backend.checkpointer.list_threads() == ["c"]


@pytest.mark.slow
async def test_more_of_everything_than_a_page_holds(database):
    puts = [(("users", "ada", f"n{n}"), f"k{n}", n) for n in range(1_100)]
    await database.store.put_batch(puts)
    for number in range(510):
        await database.checkpointer.save({}, f"t{number:04}", metadata={"user_id": "ada"})
    await database.checkpointer.save({}, "t9999", metadata={"user_id": "bob"})
    report = await forget(database, user_id="ada")
    assert (len(report.items), len(report.threads)) == (1_100, 510)
    assert await database.store.list_namespaces() == []
    assert await database.checkpointer.list_threads() == ["t9999"]


async def test_namespaces_that_hold_one_for_each_thread(backend):
    await live(backend, "ada")
    for thread in ("thread of ada", "thread of ada2"):
        await backend.store.put(("turns", thread), "1", {"text": "I live in Lyon."})
    report = await forget(backend, user_id="ada", thread_namespaces=[("turns",)])
    assert (("turns", "thread of ada"), "1") in report.items
    assert await backend.store.list_namespaces() == [("turns", "thread of ada2")]


async def test_the_items_of_sessions_go_with_their_threads(backend):
    for user in ("ada", "bob"):
        await live(backend, user)
        session = StoreContext(backend.store, user, f"thread of {user}").for_session()
        await session.put("draft", "I live in Lyon.")
        await session.scoped("deep").put_with_embedding("note", "Kim", [1.0, 0.5])
        await backend.store.put(further_vectors(("sessions", f"thread of {user}")), "n", {})
    await backend.store.put(("sessions", "of nobody"), "draft", 1)
    items = {
        (("sessions", "thread of ada"), "draft"),
        (("sessions", "thread of ada", "deep"), "note"),
    }
    dry = await forget(backend, user_id="ada", dry_run=True)
    assert items <= set(dry.items)
    assert len(await backend.store.list_namespaces(("sessions",))) == 5
    report = await forget(backend, user_id="ada")
    assert report.items == dry.items
    assert await backend.store.list_namespaces(("sessions",)) == [
        ("sessions", "of nobody"),
        ("sessions", "thread of bob"),
        ("sessions", "thread of bob", "deep"),
    ]
    [left] = await backend.store.list_namespaces((FURTHER_VECTORS,))
    assert left[-1] == "thread of bob"


async def test_the_items_of_sessions_without_checkpoints(backend):
    """Who reads a thread for its memories alone knows it by a reading mark."""
    manager = LLMMemoryManager(backend.store, extract_fn=as_extractor(None))
    told = {"ada": ["s1", "both", "a/b"], "bob": ["s2", "both"], None: ["s3"]}
    for user, threads in told.items():
        for thread in threads:
            metadata = {"thread_id": thread} | ({"user_id": user} if user else {})
            said = (Message.user("I live in Lyon."),)
            await manager.on_session_end(AgentState(messages=said, metadata=metadata))
            await backend.store.put(("sessions", thread), "draft", user)
    await backend.checkpointer.save(AgentState(), "a/b", metadata={"user_id": "eve"})
    report = await forget(backend, user_id="ada")
    assert [each for each in report.items if each[0][0] == "sessions"] == [
        (("sessions", "s1"), "draft")
    ]
    kept = await backend.store.list_namespaces(("sessions",))
    assert kept == [("sessions", each) for each in ("a/b", "both", "s2", "s3")]


async def test_the_items_of_a_session_stay_with_a_thread_that_stays(backend):
    await live(backend, "ada")
    await backend.store.put(("sessions", "thread of ada"), "draft", 1)
    await forget(backend, user_id="ada", key="home")
    assert await backend.store.exists(("sessions", "thread of ada"), "draft")
    await live(backend, "ada")
    await forget(backend, user_id="ada", key="home", threads=True)
    assert not await backend.store.exists(("sessions", "thread of ada"), "draft")


async def test_a_damaged_thread_is_named_and_left(database, tmp_path):
    await database.checkpointer.save({"messages": []}, "whole", metadata={"user_id": "ada"})
    await database.checkpointer.save({"messages": []}, "damaged")
    async with SQLiteCheckpointer(tmp_path / "a.db", state_type=Refusing) as checkpointer:
        report = await forget(database.store, checkpointer, user_id="ada")
    assert (report.threads, report.unreadable) == (("whole",), ("damaged",))
    assert await database.checkpointer.list_threads() == ["damaged"]


class Refusing:
    def to_checkpoint(self):
        return {}

    @classmethod
    def from_checkpoint(cls, document):
        raise StateTypeError(repr(document))


async def test_nothing_but_numbers_is_told_of_it(backend):
    heard = []
    await live(backend, "ada")
    unsubscribe = subscribe(heard.append)
    report = await forget(backend, user_id="ada")
    unsubscribe()
    told = [event for event in heard if event.name == "memory.forgotten"]
    assert [event.attributes for event in told] == [{"memories": 2, "threads": 1}]
    assert not [word for word in ("Lyon", "Paris", "green") if word in repr(report)]


async def test_a_provider_string_is_opened_and_closed(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    async with SQLiteBackend(tmp_path / "a.db") as backend:
        await live(backend, "ada")
    assert len((await forget(url, user_id="ada")).threads) == 1
    async with SQLiteBackend(tmp_path / "a.db") as backend:
        assert await backend.checkpointer.list_threads() == []


async def test_checkpoints_that_are_elsewhere(backend, tmp_path):
    await live(backend, "ada")
    async with SQLiteCheckpointer(tmp_path / "b.db") as checkpointer:
        await checkpointer.save({"messages": [{"n": 1}]}, "t", metadata={"user_id": "ada"})
    report = await forget(backend, f"sqlite:{tmp_path / 'b.db'}", user_id="ada")
    assert (len(report.memories), report.threads) == (2, ("t",))
    assert await backend.checkpointer.list_threads() == ["thread of ada"]


async def test_threads_without_a_store(tmp_path):
    async with open_backend(f"file:{tmp_path}") as backend:
        for thread, user in (("t", "ada"), ("u", "bob")):
            state = AgentState(metadata={"user_id": user})
            await backend.checkpointer.save(state, thread)
        planned = await forget(backend, user_id="ada", dry_run=True)
        assert (planned.threads, planned.has_store) == (("t",), False)
        assert (await forget(backend, user_id="ada")).threads == ("t",)
        assert await backend.checkpointer.list_threads() == ["u"]
        for asked in ({"key": "home"}, {"user_id": "bob", "query": "Lyon", "threads": True}):
            with pytest.raises(ConfigurationError, match="has no store"):
                await forget(backend, **asked)
    assert (await forget(f"file:{tmp_path}", user_id="bob")).threads == ("u",)


async def test_neither_a_store_nor_threads():
    with pytest.raises(ConfigurationError, match="has no store"):
        await forget(ComposedBackend("nothing"), user_id="ada")


async def test_a_store_without_checkpoints(backend):
    await live(backend, "ada")
    report = await forget(backend.store, user_id="ada")
    assert (len(report.memories), report.threads, report.has_store) == (2, (), True)
    assert await backend.checkpointer.list_threads() == ["thread of ada"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"user_id": ""},
        {"user_id": 7},
        {"key": "a", "query": "b"},
        {"key": ""},
        {"query": "?!"},
        {"user_id": "ada", "type": "user"},
        {"key": "a", "type": "nonsense"},
        {"key": "a", "prefix": ()},
        {"key": "a", "prefix": "locus_memory"},
    ],
)
async def test_a_wrong_call_erases_nothing(backend, asked):
    await live(backend, "ada")
    before = await contents(backend)
    with pytest.raises(InvalidArgumentError):
        await forget(backend, **asked)
    assert await contents(backend) == before


async def test_what_is_no_store():
    for asked in ({"key": "a"}, {"user_id": "ada", "checkpointer": "memory"}):
        with pytest.raises(ConfigurationError, match="not int"):
            await forget(7, **asked)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(users=st.lists(st.text(min_size=1, max_size=6), min_size=2, max_size=4, unique=True))
async def test_no_two_users_are_ever_one(users):
    users = [user.encode("utf-8", "replace").decode() for user in users]
    if len(set(users)) < len(users):
        return
    backend = InMemoryBackend()
    manager = LLMMemoryManager(backend.store)
    for user in users:
        await manager.for_user(user).save([Memory("user", "k", "v")])
        await backend.checkpointer.save({}, f"t{user}", metadata={"user_id": user})
    await forget(backend, user_id=users[0])
    assert await manager.for_user(users[0]).retrieve() == []
    for user in users[1:]:
        assert len(await manager.for_user(user).retrieve()) == 1
    assert set(await backend.checkpointer.list_threads()) == {f"t{user}" for user in users[1:]}
