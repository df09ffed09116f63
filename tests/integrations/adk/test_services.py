"""Sessions and memories of ADK: the answers and errors of its services in memory.

One file for all of them: a process that runs tests takes seconds to import ADK.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from dataclasses import replace

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import BaseAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.platform import time as platform_time
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory import EncryptingStore, open_backend
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError, ValueNotSerializableError
from locus_memory.events import collect
from locus_memory.integrations.adk import LocusMemoryService, LocusSessionService
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing import FakeEmbedder

ADA = {"app_name": "app", "user_id": "ada"}
HOME = {**ADA, "session_id": "home"}


def said(text, author="user", **fields):
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(author=author, invocation_id="i", content=content, **fields)


def texts(session):
    return [event.content.parts[0].text for event in session.events]


@pytest.fixture
async def services(provider):
    """Makes session services over one database of each kind."""
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield lambda: LocusSessionService(backend)


class Plain(StoreWrapper):
    """A store without transactions."""

    @property
    def capabilities(self):
        return replace(super().capabilities, transactions=False)


VALUES = st.none() | st.integers(-9, 9) | st.text(max_size=3) | st.lists(st.booleans(), max_size=2)
KEYS = st.sampled_from(["a", "b", "app:a", "app:", "user:a", "user:b", "app:user:a", "x:y", ""])
TEMPORARY = st.sampled_from(["temp:a", "temp:b"])
STATES = st.dictionaries(KEYS | TEMPORARY, VALUES, max_size=4)
IDS = st.sampled_from(["home", " home ", "work", "a/b:*", "é"])
PLACES = st.fixed_dictionaries(
    {
        "app_name": st.sampled_from(["app", "*"]),
        "user_id": st.sampled_from(["ada", "bob", "*"]),
        "session_id": IDS,
    }
)
EVENTS = st.builds(
    lambda text, name, moment, delta, partial: said(
        text,
        id=name,
        timestamp=float(moment),
        partial=partial,
        actions=EventActions(state_delta=delta),
    ),
    st.text(max_size=4),
    st.sampled_from("123456"),
    st.integers(1, 6),
    st.dictionaries(KEYS, VALUES, max_size=3),
    st.sampled_from([None, None, None, False, True]),
)
CONFIGS = st.none() | st.builds(
    GetSessionConfig,
    num_recent_events=st.none() | st.integers(0, 4),
    after_timestamp=st.none() | st.floats(0, 7),
)
CALLS = st.one_of(
    st.tuples(st.just("create_session"), PLACES, STATES),
    st.tuples(st.just("append_event"), PLACES, EVENTS),
    st.tuples(st.just("append_event"), PLACES, EVENTS),
    st.tuples(st.just("append_again"), PLACES, st.just(None)),
    st.tuples(st.just("append_temporary"), PLACES, EVENTS),
    st.tuples(st.just("get_session"), PLACES, CONFIGS),
    st.tuples(st.just("list_sessions"), PLACES, st.booleans()),
    st.tuples(st.just("delete_session"), PLACES, st.just(None)),
    st.tuples(st.just("get_user_state"), PLACES, st.just(None)),
)


class Caller:
    """Makes the calls at one service, with the sessions that it has returned."""

    def __init__(self, *services):
        self.services = services
        self.held = {}
        self.last = None
        self.number = 0

    async def answer(self, name, place, given):
        self.number += 1
        self.service = self.services[self.number % len(self.services)]
        try:
            return await getattr(self, name)(place, given)
        except (AlreadyExistsError, SessionNotFoundError) as error:
            return type(error), str(error)

    async def create_session(self, place, state):
        session = await self.service.create_session(**place, state=state)
        self.held[tuple(place.values())] = session
        return session.model_dump()

    async def append_event(self, place, event):
        session = self.held.get(tuple(place.values()))
        if session is None:
            return None
        self.last = event.model_copy(deep=True)
        returned = await self.service.append_event(session, event.model_copy(deep=True))
        return returned.model_dump(), session.model_dump()

    async def append_again(self, place, _):
        return None if self.last is None else await self.append_event(place, self.last)

    async def append_temporary(self, place, event):
        delta = {**event.actions.state_delta, "temp:once": [1]}
        event = event.model_copy(update={"actions": EventActions(state_delta=delta)})
        answer = await self.append_event(place, event.model_copy(update={"id": f"{self.number}"}))
        self.last = None
        return answer

    async def get_session(self, place, config):
        session = await self.service.get_session(**place, config=config)
        if session is None:
            return None
        self.held[tuple(place.values())] = session
        return session.model_dump()

    async def list_sessions(self, place, is_of_user):
        user = place["user_id"] if is_of_user else None
        listed = await self.service.list_sessions(app_name=place["app_name"], user_id=user)
        return listed.model_dump()

    async def delete_session(self, place, _):
        return await self.service.delete_session(**place)

    async def get_user_state(self, place, _):
        del (place := dict(place))["session_id"]
        return await self.service.get_user_state(**place)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(calls=st.lists(CALLS, max_size=25), has_transactions=st.booleans())
def test_sessions_answer_as_those_of_adk(calls, has_transactions):
    async def both():
        platform_time.set_time_provider(lambda: 3.5)
        store = InMemoryStore() if has_transactions else Plain(InMemoryStore())
        ours = Caller(LocusSessionService(store), LocusSessionService(store))
        theirs = Caller(InMemorySessionService())
        for call in calls:
            assert await ours.answer(*call) == await theirs.answer(*call)

    asyncio.run(both())


class Echo(BaseAgent):
    """An agent without a model: it repeats the words, and counts them in the states."""

    async def _run_async_impl(self, ctx):
        count = ctx.session.state.get("count", 0) + 1
        delta = {"count": count, "user:seen": count, "temp:now": object()}
        yield Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            content=types.Content(
                role="model", parts=[types.Part(text=f"again: {ctx.user_content.parts[0].text}")]
            ),
            actions=EventActions(state_delta=delta),
        )


async def run(runner, text):
    message = types.Content(role="user", parts=[types.Part(text=text)])
    return [
        event
        async for event in runner.run_async(user_id="ada", session_id="home", new_message=message)
    ]


class TestRuns:
    async def test_a_run_continues_a_stored_session(self, services):
        await services().create_session(**HOME)
        for text in ("one", "two"):
            runner = Runner(agent=Echo(name="echo"), app_name="app", session_service=services())
            await run(runner, text)
        session = await services().get_session(**HOME)
        assert texts(session) == ["one", "again: one", "two", "again: two"]
        assert session.state == {"count": 2, "user:seen": 2}
        assert await services().get_user_state(**ADA) == {"seen": 2}

    async def test_a_rewind_restores_the_state(self, services):
        await services().create_session(**HOME)
        runner = Runner(agent=Echo(name="echo"), app_name="app", session_service=services())
        await run(runner, "one")
        [event] = await run(runner, "two")
        await runner.rewind_async(
            user_id="ada", session_id="home", rewind_before_invocation_id=event.invocation_id
        )
        session = await services().get_session(**HOME)
        assert session.state["count"] == 1
        assert session.events[-1].actions.rewind_before_invocation_id == event.invocation_id

    async def test_the_events_of_an_agent_come_back_as_they_were(self, services):
        session = await services().create_session(**HOME)
        part = types.Part(
            function_call=types.FunctionCall(id="c", name="f", args={"a": [1, None, {"b": "é\0"}]}),
            thought_signature=b"\xff\x00",
        )
        events = [
            Event(
                author="a",
                content=types.Content(role="model", parts=[part]),
                long_running_tool_ids={"c", "d"},
                output={"deep": [None]},
                custom_metadata={"k": 1.5},
                actions=EventActions(state_delta={"n": None}, artifact_delta={"file": 0}),
            ),
            Event(author="b", timestamp=1.0, error_code="E", branch="a.b"),
        ]
        for event in events:
            await services().append_event(session, event)
        assert (await services().get_session(**HOME)).events == events


class TestProcesses:
    async def test_appends_at_once_keep_their_order(self, services):
        session = await services().create_session(**HOME)
        writers = [services() for _ in range(3)]
        await asyncio.gather(
            *(
                each.append_event(session.model_copy(deep=True), said(f"{writer} {turn}"))
                for turn in range(8)
                for writer, each in enumerate(writers)
            )
        )
        assert_whole(texts(await services().get_session(**HOME)), turns=8, writers="012")

    @pytest.mark.slow
    def test_two_processes_lose_nothing(self, tmp_path):
        where = f"sqlite:{tmp_path / 'test.db'}"
        together(where, rounds=20)
        assert_whole(asyncio.run(stored(where, "ada")), turns=20)

    async def test_a_session_that_is_made_again_has_nothing_of_the_old_one(self, services):
        one, other = services(), services()
        session = await one.create_session(**HOME, state={"a": 1})
        await one.append_event(session, said("old"))
        await other.delete_session(**HOME)
        with pytest.raises(SessionNotFoundError):
            await one.append_event(session, said("lost"))
        again = await other.create_session(**HOME)
        # The other process knows the old record at the version of the new one.
        await one.append_event(session, said("new"))
        await other.append_event(again, said("newer"))
        found = await services().get_session(**HOME)
        assert (texts(found), found.state) == (["new", "newer"], {})

    async def test_two_that_create_one_session(self, services):
        made = await asyncio.gather(
            *(services().create_session(**HOME, state={"n": n}) for n in range(4)),
            return_exceptions=True,
        )
        kinds = sorted(type(each).__name__ for each in made)
        assert kinds == [
            "AlreadyExistsError",
            "AlreadyExistsError",
            "AlreadyExistsError",
            "Session",
        ]

    async def test_a_cancelled_append_is_whole_or_absent(self, services):
        service = services()
        session = await service.create_session(**HOME)
        for number in range(6):
            event = said(f"{number}", actions=EventActions(state_delta={"n": number}))
            task = asyncio.ensure_future(service.append_event(session, event))
            for _ in range(number):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await service.append_event(session, said("last"))
        found = await services().get_session(**HOME)
        assert texts(found)[-1] == "last"
        assert str(found.state.get("n")) == (texts(found)[-2] if len(found.events) > 1 else "None")

    async def test_an_outage_leaves_the_session_usable(self):
        class Failing(StoreWrapper):
            fails = False

            async def write_batch(self, operations):
                if self.fails:
                    raise ConnectionError
                return await super().write_batch(operations)

        store = Failing(InMemoryStore())
        service = LocusSessionService(store)
        session = await service.create_session(**HOME)
        event = said("one")
        store.fails = True
        with pytest.raises(ConnectionError):
            await service.append_event(session, event)
        assert session.events == []
        store.fails = False
        await service.append_event(session, event)
        assert texts(await service.get_session(**HOME)) == ["one"]


def assert_whole(found, *, turns, writers="ab"):
    """Assert that each writer's turns are in their order, and none is missing."""
    assert len(found) == turns * len(writers)
    for writer in writers:
        own = [text for text in found if text.startswith(writer)]
        assert own == [f"{writer} {turn}" for turn in range(turns)]


async def stored(where, session_id):
    async with LocusSessionService(where) as service:
        return texts(await service.get_session(**ADA, session_id=session_id))


WRITER = """
import asyncio, sys
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events import Event, EventActions
from google.genai import types
from locus_memory.integrations.adk import LocusSessionService

async def main(where, sessions, name, rounds):
    async with LocusSessionService(where) as service:
        print("ready", flush=True)
        sys.stdin.readline()
        for each in sessions.split(","):
            place = {"app_name": "app", "user_id": "ada", "session_id": each}
            try:
                session = await service.create_session(**place)
            except AlreadyExistsError:
                session = await service.get_session(**place)
            for turn in range(int(rounds)):
                content = types.Content(role="user", parts=[types.Part(text=f"{name} {turn}")])
                actions = EventActions(state_delta={name: turn, f"app:{name}": turn})
                event = Event(author=name, content=content, actions=actions)
                await service.append_event(session, event)

asyncio.run(main(*sys.argv[1:]))
"""


def together(where, rounds, sessions="ada"):
    """Let two processes append to the same sessions, separated by commas, at the same time."""
    command = [sys.executable, "-c", WRITER, where, sessions]
    writers = [
        subprocess.Popen(
            [*command, name, str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    for each in writers:
        assert each.stdout.readline() == "ready\n"
    for each in writers:
        each.communicate("go\n", timeout=300)
    assert [each.returncode for each in writers] == [0, 0]


class TestDamage:
    async def test_a_damaged_event_is_left_out_and_told(self, services):
        service = services()
        session = await service.create_session(**HOME)
        for text in ("one", "two", "three"):
            await service.append_event(session, said(text))
        [log] = await service.store.list_namespaces(("adk", "logs"))
        await service.store.put(log, f"{2:016d}", {"author": 7})
        with collect() as events:
            assert texts(await services().get_session(**HOME)) == ["one", "three"]
        assert [(each.name, each.attributes["key"]) for each in events] == [
            ("integrations.item_unreadable", f"{2:016d}")
        ]

    @pytest.mark.parametrize("damaged", ["record", "event", "state", "app", "number"])
    @pytest.mark.parametrize("how", ["other key", "other form"])
    async def test_any_damaged_item(self, damaged, how):
        inner = InMemoryStore()
        store = EncryptingStore(inner, {"k": b"0" * 32}, active="k")
        service = LocusSessionService(store)
        session = await service.create_session(**HOME, state={"a": 1, "app:a": 1})
        event = said("one")
        await service.append_event(session, event)
        [log] = await store.list_namespaces(("adk", "logs"))
        places = {
            "record": (("adk", "sessions", "app", "ada"), "home"),
            "event": (log, f"{1:016d}"),
            "state": (("adk", "session_states", "app", "ada"), f"{log[-1]}=a"),
            "app": (("adk", "app_states", "app"), "=a"),
            "number": (log, f":{event.id}"),
        }
        other = EncryptingStore(inner, {"k": b"1" * 32}, active="k")
        await (other if how == "other key" else store).put(*places[damaged], "x")
        with collect() as events:
            again = LocusSessionService(store)
            await again.append_event(session, said("two"))
            await again.append_event(session, event)
            found = await LocusSessionService(store).get_session(**HOME)
        assert texts(found)[-1] == ("one" if damaged in ("event", "number") else "two")
        assert texts(found)[0] == ("two" if damaged == "event" else "one")
        readable = how == "other form" and damaged in ("state", "app", "number")
        assert bool(events) != readable

    async def test_no_plain_text_is_stored(self, tmp_path):
        path = tmp_path / "test.db"
        async with EncryptingStore(f"sqlite:{path}", {"k": b"0" * 32}, active="k") as store:
            service = LocusSessionService(store)
            session = await service.create_session(**HOME, state={"a": "diagnosis"})
            await service.append_event(session, said("diagnosis"))
        assert b"diagnosis" not in path.read_bytes()


class TestRefusals:
    @pytest.mark.parametrize(
        ("event", "named"),
        [
            (Event(actions=EventActions(state_delta={"a": object()})), "actions.state_delta.a"),
            (Event(actions=EventActions(state_delta={"a": [float("nan")]})), r"state_delta.a\[0\]"),
            (Event(actions=EventActions(agent_state={"a": print})), "actions.agent_state.a"),
            (Event(output={"a": float("inf")}), "event.output.a"),
            (Event(output=print), "event.output"),
            (Event(custom_metadata={"a": {"b": float("nan")}}), "event.custom_metadata.a.b"),
            (Event(author="\ud800"), "event.author"),
            (
                Event(
                    content=types.Content(
                        parts=[
                            types.Part(
                                function_call=types.FunctionCall(name="f", args={"x": float("nan")})
                            )
                        ]
                    )
                ),
                r"event.content.parts\[0\].function_call.args.x",
            ),
        ],
    )
    async def test_what_json_cannot_hold(self, event, named):
        service = LocusSessionService("memory")
        session = await service.create_session(**HOME)
        with pytest.raises(ValueNotSerializableError, match=named):
            await service.append_event(session, event)
        found = await service.get_session(**HOME)
        assert (found.events, found.state, session.events) == ([], {}, [])

    @pytest.mark.parametrize(
        ("state", "named"),
        [
            ({"a": object()}, "state.a"),
            ({"app:a": {"b": float("nan")}}, r"state\['app:a'\].b"),
            ({"\ud800": 1}, "state"),
            ({1: 1}, "state"),
        ],
    )
    async def test_a_state_that_json_cannot_hold(self, state, named):
        service = LocusSessionService("memory")
        with pytest.raises(ValueNotSerializableError, match=named):
            await service.create_session(**HOME, state=state)
        assert await service.get_session(**HOME) is None

    @pytest.mark.parametrize("name", ["app_name", "user_id", "session_id"])
    async def test_ids(self, name):
        service = LocusSessionService("memory")
        # Without an id of a session, ADK makes one.
        for wrong in ["\ud800", 7, *([] if name == "session_id" else [""])]:
            with pytest.raises(InvalidArgumentError, match=name):
                await service.create_session(**{**HOME, name: wrong})
        assert (await service.list_sessions(app_name="app")).sessions == []


@pytest.fixture
async def memories(provider):
    """Makes memory services over one database of each kind."""
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield lambda **given: LocusMemoryService(backend, **given)


WORDS = ["lisbon", "violin", "kitchen", "garden"]
SPOKEN = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
MOMENTS = st.builds(
    lambda text, name, author, moment: said(text, author, id=name, timestamp=float(moment)),
    SPOKEN | st.just("7"),
    st.sampled_from([f"e{number}" for number in range(9)]),
    st.sampled_from(["user", "model"]),
    st.integers(1, 9),
) | st.builds(lambda name: Event(author="a", id=name), st.sampled_from(["e1", "e2"]))
BATCHES = st.lists(MOMENTS, max_size=4, unique_by=lambda event: event.id)
USERS = st.fixed_dictionaries(
    {"app_name": st.sampled_from(["app", "*"]), "user_id": st.sampled_from(["ada", "*"])}
)
MEMORY_CALLS = st.one_of(
    st.tuples(st.just("add_session"), USERS, st.tuples(st.sampled_from(["s", "t"]), BATCHES)),
    st.tuples(st.just("add_events"), USERS, st.tuples(st.sampled_from([None, "s"]), BATCHES)),
    st.tuples(st.just("search"), USERS, st.sampled_from(WORDS)),
    st.tuples(st.just("delete"), USERS, st.sampled_from([None, "", "e1", "e2", "e3"])),
)


async def told(service, name, user, given):
    """Return the answer of a memory service; the order of equal memories is its own."""
    if name == "add_session":
        session = (await InMemorySessionService().create_session(**user)).model_copy(
            update={"id": given[0], "events": given[1]}
        )
        return await service.add_session_to_memory(session)
    if name == "add_events":
        return await service.add_events_to_memory(**user, session_id=given[0], events=given[1])
    if name == "delete":
        return await service.delete_memory(**user, memory_id=given)
    found = await service.search_memory(**user, query=given)
    return sorted(each.model_dump_json() for each in found.memories)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(calls=st.lists(MEMORY_CALLS, max_size=12))
def test_memories_answer_as_those_of_adk(calls):
    async def both():
        ours, theirs = LocusMemoryService("memory", limit=100), InMemoryMemoryService()
        known = {}
        for name, user, details in calls:
            if name.startswith("add"):
                # An id is that of one event, which never changes.
                events = [known.setdefault(event.id, event) for event in details[1]]
                details = details[0], events  # noqa: PLW2901 - as above
            assert await told(ours, name, user, details) == await told(theirs, name, user, details)

    asyncio.run(both())


class TestMemories:
    async def test_a_search_over_all_sessions_of_a_user(self, memories):
        service = memories()
        for session, text in (("one", "My flat is in Lisbon."), ("two", "I play the violin.")):
            await service.add_events_to_memory(
                **ADA, session_id=session, events=[said(text, timestamp=1e9)]
            )
        await service.add_events_to_memory(
            app_name="app", user_id="ada2", events=[said("A flat in Lisbon.")]
        )
        [found] = (await memories().search_memory(**ADA, query="Where is the flat?")).memories
        assert found.content.parts[0].text == "My flat is in Lisbon."
        assert (found.author, found.timestamp[:4]) == ("user", "2001")
        assert (await service.search_memory(**ADA, query="")).memories == []
        assert (await service.search_memory(**ADA, query="c++ \"'%_*")).memories == []

    async def test_memories_that_are_no_events(self, memories):
        entry = MemoryEntry(
            id="m",
            content=types.Content(parts=[types.Part(text="She is allergic to nuts.")]),
            author="doctor",
            timestamp="2026-01-02T03:04:05",
            custom_metadata={"sure": True},
        )
        await memories().add_memory(**ADA, memories=[entry], custom_metadata={"by": "hand"})
        [found] = (await memories().search_memory(**ADA, query="allergic")).memories
        assert found == entry.model_copy(update={"custom_metadata": {"sure": True, "by": "hand"}})
        await memories().delete_memory(**ADA, memory_id="m")
        assert (await memories().search_memory(**ADA, query="allergic")).memories == []

    async def test_an_embedder_finds_what_shares_no_word(self, memories):
        service = memories(embedder=FakeEmbedder(64))
        await service.add_events_to_memory(**ADA, events=[said("cats")])
        assert len((await service.search_memory(**ADA, query="cat")).memories) == 1

    async def test_a_damaged_memory_is_left_out_and_told(self, memories):
        service = memories()
        await service.add_events_to_memory(**ADA, session_id="s", events=[said("violin")])
        await service.store.put(("adk", "memories", "app", "ada", "s"), "=x", {"text": "violin"})
        with collect() as events:
            assert len((await service.search_memory(**ADA, query="violin")).memories) == 1
        assert [each.name for each in events] == ["integrations.item_unreadable"]

    async def test_a_memory_that_no_key_decrypts(self, tmp_path):
        # Only a search by vectors meets an encrypted store.
        inner = InMemoryStore()
        embedder = FakeEmbedder(64)
        store = EncryptingStore(inner, {"k": b"0" * 32}, active="k")
        service = LocusMemoryService(store, embedder=embedder)
        await service.add_events_to_memory(**ADA, session_id="s", events=[said("violin")])
        wrong = EncryptingStore(inner, {"k": b"1" * 32}, active="k")
        other = LocusMemoryService(wrong, embedder=embedder)
        await other.add_events_to_memory(**ADA, session_id="s", events=[said("violin too")])
        with collect() as events:
            assert len((await service.search_memory(**ADA, query="violin")).memories) == 1
        assert "integrations.item_unreadable" in [each.name for each in events]

    async def test_what_json_cannot_hold(self):
        service = LocusMemoryService("memory")
        wrong = types.Part(function_call=types.FunctionCall(name="f", args={"x": float("nan")}))
        event = Event(author="a", content=types.Content(parts=[types.Part(text="x"), wrong]))
        with pytest.raises(ValueNotSerializableError, match=r"events\[1\].content.parts\[1\]"):
            await service.add_events_to_memory(**ADA, events=[said("violin"), event])
        with pytest.raises(ValueNotSerializableError, match=r"custom_metadata\.a"):
            await service.add_events_to_memory(
                **ADA, events=[said("violin")], custom_metadata={"a": object()}
            )
        assert (await service.search_memory(**ADA, query="violin")).memories == []


AGENT = """
from google.adk.agents import BaseAgent
from google.adk.events import Event, EventActions
from google.genai import types

class Echo(BaseAgent):
    async def _run_async_impl(self, ctx):
        said = [event.content.parts[0].text for event in ctx.session.events if event.content]
        part = types.Part(text=f"{len(said)} so far, the first: {said[0]}")
        yield Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            content=types.Content(role="model", parts=[part]),
            actions=EventActions(state_delta={"app:runs": len(said)}),
        )

root_agent = Echo(name="echo")
"""
SERVICES = "from locus_memory.integrations.adk import register\n\nregister()\n"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["locus://sqlite:{}", "locus+sqlite:{}"])
def test_the_command_line_of_adk_takes_the_scheme(tmp_path, form):
    folder = tmp_path / "echo"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / "__init__.py").write_text("from . import agent\n")
    (folder / "services.py").write_text(SERVICES)
    uri = form.format(tmp_path / "agent.db")
    command = [
        *(sys.executable, "-W", "ignore", "-m", "google.adk.cli", "run"),
        *("--session_service_uri", uri, "--memory_service_uri", uri, str(folder)),
    ]
    done = subprocess.run(
        command, input="hello\nagain\nexit\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\[echo\]: (.*)", done.stdout) == [
        "1 so far, the first: hello",
        "3 so far, the first: hello",
    ]

    async def sessions():
        async with LocusSessionService(f"sqlite:{tmp_path / 'agent.db'}") as service:
            return (await service.list_sessions(app_name="echo")).sessions

    [session] = asyncio.run(sessions())
    assert session.state == {"app:runs": 3}
