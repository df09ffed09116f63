"""What is forgotten is gone for good, and nobody else's is."""

from __future__ import annotations

import itertools
import re
import sqlite3
from contextlib import closing, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.agent import Agent
from locus_memory.backends.base import ComposedBackend
from locus_memory.backends.inmemory.backend import InMemoryBackend
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.conversation.summary import SummarizingManager
from locus_memory.conversation.summary_thread import root_digest
from locus_memory.errors import (
    BackendUnavailableError,
    ConfigurationError,
    InvalidArgumentError,
    StateTypeError,
)
from locus_memory.events import subscribe
from locus_memory.memory.extract import as_extractor
from locus_memory.memory.forget import forget
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryChange
from locus_memory.messages import Message, ToolCall, ToolResult
from locus_memory.registry import open_backend
from locus_memory.state import AgentState
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
    context = StoreContext(backend.store, user_id=user)
    await context.remember("tea", "green")
    await context.remember_with_embedding("likes", "tea", [1.0, 0.5])


async def leave_waiting(backend, *users):
    """Let users say something that waits for extraction."""
    lazy = LLMMemoryManager(backend.store, extract_fn=wait_for_ever, batch_messages=10**9)
    for user in users:
        metadata = {"user_id": user, "thread_id": f"waiting of {user}"}
        said = (Message.user("I play the cello."),)
        await lazy.on_session_end(AgentState(messages=said, metadata=metadata))


async def wait_for_ever(messages):
    raise AssertionError(messages)


def roots(user):
    return ("locus_memory", "users", user), ("users", user)


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
        assert report.vectors == 1
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
    assert report.vectors == 1
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
    manager = LLMMemoryManager(backend.store, extract_fn=wait_for_ever, batch_messages=10**9)
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


async def test_summaries_go_with_their_threads(backend):
    said = [Message.user(f"I live in Lyon, number {n}") for n in range(12)]
    kept = [Message.user(f"Quite another, number {n}") for n in range(12)]
    for messages in (said, kept):
        manager = SummarizingManager(10, 3, lambda _: "Lyon again", store=backend.store)
        await manager.async_apply(messages)
    state = AgentState(messages=tuple(said), metadata={"user_id": "ada"})
    await backend.checkpointer.save(state, "t")
    space = ("locus_memory", "summaries")
    assert len(await backend.store.scan(space)) == 2
    planned = await forget(backend, user_id="ada", dry_run=True)
    assert (await forget(backend, user_id="ada")).summaries == planned.summaries == 1
    assert len(await backend.store.scan(space)) == 1


async def summarised(backend, *states, thread="t", **options):
    """Save states of ada's thread, each summarised as an agent does."""
    manager = SummarizingManager(4, 2, store=backend.store, **options)
    for messages in states:
        await manager.async_apply(messages)
        state = AgentState(messages=tuple(messages), metadata={"user_id": "ada"})
        await backend.checkpointer.save(state, thread)


def talk(start, count):
    return [Message.user(f"{start} {number}") for number in range(count)]


SYSTEM = Message.system("Be kind.")
CALLED = [
    Message.user("Lyon"),
    Message.assistant(None, [ToolCall(id="c", name="t")]),
    *talk("Lyon", 5),
]
LATE = Message.tool(ToolResult(tool_call_id="c", name="t", content="late"))


@pytest.mark.parametrize(
    ("states", "options", "asked"),
    [
        pytest.param([[SYSTEM, *talk("Lyon", 9)]], {"preserve_system": False}, {}, id="system"),
        pytest.param(
            [talk("Lyon", 9)],
            {"namespace": ("mine", "sums")},
            {"summary_namespaces": [("mine", "sums")]},
            id="namespace",
        ),
        pytest.param(
            [talk("Lyon", 9)], {"namespace": ("my", "summaries")}, {"prefix": ("my",)}, id="prefix"
        ),
        pytest.param([talk("Lyon", 9)], {}, {"prefix": ("my",)}, id="default beside the prefix"),
        pytest.param(
            [talk("Lyon", 9), [*talk("Lyon", 1), Message.user("elsewhere")]], {}, {}, id="branch"
        ),
        pytest.param([CALLED, [*CALLED, LATE]], {}, {}, id="late result"),
        pytest.param([talk("Lyon", 9), talk("Rome", 9)], {}, {}, id="begun anew"),
        pytest.param(
            [talk("Lyon", 9), talk("Rome", 9), talk("Paris", 9)], {}, {}, id="begun anew twice"
        ),
    ],
)
async def test_no_summary_of_a_thread_is_left(backend, states, options, asked):
    await summarised(backend, *states, **options)
    space = options.get("namespace", ("locus_memory", "summaries"))
    found = len(await backend.store.scan(space))
    assert found
    await backend.store.put(space, "of another", {"text": "Kim", "covered": 2, "root": "r"})
    planned = await forget(backend, user_id="ada", dry_run=True, **asked)
    assert planned.summaries == found
    assert (await forget(backend, user_id="ada", **asked)).summaries == found
    assert [item.key for item in await backend.store.scan(space)] == ["of another"]


async def test_more_summaries_than_a_page_holds(backend):
    await summarised(backend, talk("Lyon", 3))
    space, root = ("locus_memory", "summaries"), root_digest(talk("Lyon", 1))
    value = {"text": "Lyon", "covered": 2, "root": root}
    await backend.store.put_batch([(space, f"{n}", value) for n in range(1_100)])
    assert (await forget(backend, user_id="ada")).summaries == 1_100
    assert await backend.store.scan(space) == []


async def test_a_state_that_is_no_conversation_has_no_summary(backend):
    checkpointer = DeltaCheckpointer(state_type=None)
    for number, messages in enumerate(([], [7], [{"role": "no role"}], ["text"], 7, "text")):
        state = {"messages": messages, "metadata": {"user_id": "ada"}}
        await checkpointer.save(state, f"t{number}")
    report = await forget(backend, checkpointer, user_id="ada")
    assert (report.summaries, len(report.threads)) == (0, 6)


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


class Strike:
    """Counts the steps of a deletion, and lets the database be gone after some of them."""

    def __init__(self):
        self.left = 10**9

    def step(self):
        self.left -= 1
        if self.left < 0:
            raise BackendUnavailableError("gone")


class FailingStore(InMemoryStore):
    """A store that erases one item at a step."""

    def __init__(self, strike):
        super().__init__()
        self.strike = strike

    async def delete_batch(self, keys):
        for key in keys:
            self.strike.step()
            await super().delete_batch([key])

    async def clear_namespace(self, namespace, *, recursive=False):
        self.strike.step()
        return await super().clear_namespace(namespace, recursive=recursive)


class FailingCheckpointer(DeltaCheckpointer):
    """A checkpointer that erases one thread at a step."""

    def __init__(self, strike):
        super().__init__()
        self.strike = strike

    async def delete(self, thread_id, checkpoint_id=None):
        self.strike.step()
        return await super().delete(thread_id, checkpoint_id)


async def live_everywhere(store, checkpointer):
    """Leave a trace of ada of each kind there is, twice and in a fork; and one of bob."""
    for user in ("ada", "bob"):
        summaries = SummarizingManager(4, 2, f"Lyon, {user}, {{}}".format, store=store)
        extractor = as_extractor(None)
        memories = LLMMemoryManager(store, extract_fn=extractor, embedder=FakeEmbedder())
        agent = Agent(
            ScriptedModel(),
            checkpointer=checkpointer,
            memory_manager=memories,
            conversation_manager=summaries,
        )
        for thread in (f"{user} 1", f"{user} 2"):
            for said in ("I live in Lyon.", "I live in Paris now.", "I live in Lyon again."):
                await agent.run(f"{said} On {thread}.", thread, user_id=user)
            await store.put(("turns", thread), "1", {"text": "I live in Lyon."})
            await store.put(("turns", thread), "2", {"text": "I live in Paris now."})
        newest = await checkpointer.list_checkpoints(f"{user} 1", 1)
        await checkpointer.fork(f"{user} 1", newest[0], f"{user} fork")
        await store.put(("turns", f"{user} fork"), "1", {"text": "I live in Lyon."})
        await StoreContext(store, user_id=user).remember("tea", "green")
        lazy = LLMMemoryManager(store, extract_fn=wait_for_ever, batch_messages=10**9)
        metadata = {"user_id": user, "thread_id": f"{user} 1"}
        said = (Message.user("I live in Lyon."),)
        await lazy.on_session_end(AgentState(messages=said, metadata=metadata))


async def traces(store):
    """Return every item of ada's."""
    found = []
    for namespace in await store.list_namespaces(limit=10_000):
        found += [
            (namespace, item.key)
            for item in await store.scan(namespace, 10_000)
            if re.search(r"\bada\b", f"{namespace} {item.key} {item.value}")
        ]
    return found


@pytest.mark.parametrize("asked", [{}, {"key": "home", "threads": True}])
async def test_whatever_the_moment_it_is_interrupted_the_next_time_finishes(asked):
    wanted = {"user_id": "ada", **asked, "thread_namespaces": [("turns",)]}
    for steps in itertools.count():
        strike = Strike()
        store, checkpointer = FailingStore(strike), FailingCheckpointer(strike)
        await live_everywhere(store, checkpointer)
        strike.left = steps
        with suppress(BackendUnavailableError):
            await forget(store, checkpointer, **wanted)
        is_through = strike.left >= 0
        strike.left = 10**9
        await forget(store, checkpointer, **wanted)
        left = await traces(store)
        assert not asked or left == [(("users", "ada", "memories"), "tea")]
        assert asked or left == []
        assert await checkpointer.list_threads() == ["bob 1", "bob 2", "bob fork"]
        assert (await forget(store, checkpointer, **wanted)).is_empty
        if is_through:
            break
    assert steps > 15


@pytest.mark.parametrize("asked", [{"key": "home", "threads": True}, {"query": "lyon"}, {}])
async def test_what_was_interrupted_is_finished_the_next_time(asked):
    for steps in range(6):
        strike = Strike()
        store, checkpointer = FailingStore(strike), FailingCheckpointer(strike)
        manager = LLMMemoryManager(store, extract_fn=as_extractor(None))
        agent = Agent(ScriptedModel(), checkpointer=checkpointer, memory_manager=manager)
        await agent.run("I live in Lyon.", "t", user_id="ada")
        await agent.run("I live in Lyon, near the river.", "t", user_id="ada")
        wanted = {"user_id": "ada", **asked}
        planned = await forget(store, checkpointer, **wanted, dry_run=True)
        strike.left = steps
        with suppress(BackendUnavailableError):
            await forget(store, checkpointer, **wanted)
        strike.left = 10**9
        await forget(store, checkpointer, **wanted)
        assert (await forget(store, checkpointer, **wanted)).is_empty
        assert await checkpointer.list_threads() == list(planned.sources)


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
