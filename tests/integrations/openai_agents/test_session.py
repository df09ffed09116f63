"""A session of the OpenAI Agents SDK: what it keeps, in which order, and what it refuses."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from itertools import groupby

import pytest
from agents import Agent, Runner, SessionSettings, SQLiteSession
from agents.memory import OpenAIResponsesCompactionSession, Session
from agents.testing import ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from locus_memory import EncryptingStore, get_store
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError, ValueNotSerializableError
from locus_memory.events import collect
from locus_memory.integrations.openai_agents import LocusSession
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing import FakeClock


def said(text, role="user"):
    return {"role": role, "content": text}


def answer(text):
    part = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return [
        ResponseOutputMessage(
            id="m1", type="message", role="assistant", content=[part], status="completed"
        )
    ]


class TestRuns:
    async def test_a_run_sees_the_runs_before(self, sessions):
        model = ScriptedModel([answer("Hello Ada."), answer("In Berlin.")])
        agent = Agent("Assistant", model=model)
        await Runner.run(agent, "I am Ada, I live in Berlin.", session=sessions())
        result = await Runner.run(agent, "Where do I live?", session=sessions())
        assert result.final_output == "In Berlin."
        assert [each["content"] for each in model.last_call.input if each["role"] == "user"] == [
            "I am Ada, I live in Berlin.",
            "Where do I live?",
        ]
        assert len(await sessions().get_items()) == 4
        assert await sessions("bob").get_items() == []

    async def test_a_compaction_replaces_the_end_in_one_transaction(self, sessions):
        session = sessions()
        await session.add_items([said(f"{number}") for number in range(6)])
        snapshot = await session._get_compaction_snapshot(4)
        assert (snapshot.items, snapshot.complete) == ([said(f"{n}") for n in range(2, 6)], False)
        assert await snapshot.replace_suffix(1, [said("short")])
        assert await session.get_items() == [said("0"), said("1"), said("2"), said("short")]
        # Of another moment, it replaces nothing.
        assert not await snapshot.replace_suffix(1, [said("late")])
        whole = await session._get_compaction_snapshot(4)
        assert whole.complete
        await sessions().add_items([said("meanwhile")])
        assert not await whole.replace_suffix(0, [said("late")])
        assert [each["content"] for each in await session.get_items()] == [
            *("0", "1", "2", "short", "meanwhile")
        ]

    async def test_a_compaction_drops_what_is_outdated_before_it(self, sessions):
        session = sessions()
        await session.add_items([said(f"{number}") for number in range(6)])
        snapshot = await session._get_compaction_snapshot(
            2, prune_prefix=lambda item: item["content"] < "2"
        )
        assert await snapshot.replace_suffix(0, [said("short")])
        assert [each["content"] for each in await session.get_items()] == ["2", "3", "short"]

    def test_the_sdk_takes_it_for_a_session(self):
        session = LocusSession("ada")
        assert isinstance(session, Session)
        wrapped = OpenAIResponsesCompactionSession("ada", session)
        assert wrapped.underlying_session is session


ITEMS = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.text()}),
    max_size=4,
)
CALLS = st.one_of(
    st.tuples(st.just("add_items"), ITEMS),
    st.tuples(st.just("get_items"), st.none() | st.integers(0, 6)),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(calls=st.lists(CALLS, max_size=14), two=st.booleans())
def test_it_answers_as_the_session_of_the_sdk(calls, two):
    async def both():
        store = InMemoryStore()
        ours = [LocusSession("ada", store), LocusSession("ada", store)]
        theirs = SQLiteSession("ada")
        for number, (name, *arguments) in enumerate(calls):
            mine = ours[number % 2 if two else 0]
            assert await getattr(mine, name)(*arguments) == await getattr(theirs, name)(*arguments)
        assert await ours[0].get_items() == await theirs.get_items()
        theirs.close()

    asyncio.run(both())


class TestAppends:
    async def test_calls_at_once_keep_their_order_and_their_batches(self, sessions):
        writers = [sessions() for _ in range(3)]
        await asyncio.gather(
            *(
                each.add_items([said(f"{writer}"), said(f"{turn}", "assistant")])
                for turn in range(8)
                for writer, each in enumerate(writers)
            )
        )
        items = await sessions().get_items()
        assert_whole([each["content"] for each in items], writers=3, turns=8)

    async def test_a_number_is_never_used_twice(self, sessions):
        one, other = sessions(), sessions()
        await one.add_items([said("1"), said("2"), said("3")])
        assert await other.pop_item() == said("3")
        await other.clear_session()
        await one.add_items([said("4")])
        await other.add_items([said("5")])
        await sessions().add_items([said("6")])
        assert [each["content"] for each in await one.get_items()] == ["4", "5", "6"]

    @pytest.mark.slow
    def test_two_processes_lose_nothing(self, tmp_path):
        where = f"sqlite:{tmp_path / 'test.db'}"
        together(where, rounds=20)
        session = LocusSession("ada", where)

        async def read():
            async with session:
                return [each["content"] for each in await session.get_items()]

        assert_whole(asyncio.run(read()), writers=2, turns=20)

    async def test_a_store_without_transactions(self):
        class Plain(StoreWrapper):
            @property
            def capabilities(self):
                return type(super().capabilities)(ttl=True)

        store = Plain(InMemoryStore())
        one, other = LocusSession("ada", store), LocusSession("ada", store)
        await one.add_items([said("1"), said("2")])
        await other.add_items([said("3")])
        assert await one.pop_item() == said("3")
        await one.add_items([said("4")])
        assert [each["content"] for each in await other.get_items()] == ["1", "2", "4"]
        assert await one._get_compaction_snapshot(2) is None
        await other.clear_session()
        assert await one.get_items() == []


class TestTime:
    async def test_items_expire(self):
        clock = FakeClock()
        store = InMemoryStore(clock=clock)
        one, other = LocusSession("ada", store, ttl=60), LocusSession("ada", store, ttl=60)
        await one.add_items([said("1")])
        clock.advance(40)
        await other.add_items([said("2")])
        clock.advance(30)
        assert await one.get_items() == [said("2")]
        clock.advance(60)
        assert await one.get_items() == []
        await one.add_items([said("3")])
        await other.add_items([said("4")])
        assert await LocusSession("ada", store).get_items() == [said("3"), said("4")]


class TestDamage:
    async def test_a_damaged_item_is_left_out_and_told(self, sessions):
        session = sessions()
        await session.add_items([said("1"), said("2"), said("3")])
        place = ("openai_agents", "ada", "main")
        await session.store.put(place, f"{2:016d}", "not an item")
        with collect() as events:
            assert await session.get_items(2) == [said("1"), said("3")]
        assert [(each.name, each.attributes["key"]) for each in events] == [
            ("integrations.item_unreadable", f"{2:016d}")
        ]
        assert await session._get_compaction_snapshot(3) is None
        assert await session.pop_item() == said("3")
        assert await session.pop_item() == said("1")
        assert await session.pop_item() is None
        await session.clear_session()
        assert await session.store.list_keys(place) == ["head"]

    @pytest.mark.parametrize("damaged", [f"{2:016d}", "head"])
    async def test_a_value_that_no_key_decrypts(self, damaged):
        inner = InMemoryStore()
        store = EncryptingStore(inner, {"k": b"0" * 32}, active="k")
        session = LocusSession("ada", store)
        await session.add_items([said("1"), said("2"), said("3")])
        place = ("openai_agents", "ada", "main")
        other = EncryptingStore(inner, {"k": b"1" * 32}, active="k")
        await other.put(place, damaged, said("x"))
        again = LocusSession("ada", store)
        await again.add_items([said("4")])
        expected = ["1", "2", "3", "4"] if damaged == "head" else ["1", "3", "4"]
        with collect() as events:
            assert [each["content"] for each in await again.get_items()] == expected
        assert bool(events) == (damaged != "head")

    async def test_a_head_of_another_form(self):
        store = InMemoryStore()
        await LocusSession("ada", store).add_items([said("1")])
        await store.put(("openai_agents", "ada", "main"), "head", "none")
        await LocusSession("ada", store).add_items([said("2")])
        assert await LocusSession("ada", store).get_items() == [said("1"), said("2")]

    async def test_no_plain_text_is_stored(self, tmp_path):
        path = tmp_path / "test.db"
        async with EncryptingStore(f"sqlite:{path}", {"k": b"0" * 32}, active="k") as store:
            session = LocusSession("ada", store)
            await session.add_items([said("diagnosis")])
            assert await session.get_items() == [said("diagnosis")]
        assert b"diagnosis" not in path.read_bytes()


class TestRefusals:
    @pytest.mark.parametrize(
        ("items", "named"),
        [
            ([said("1"), "text"], r"items\[1\]"),
            ([said("1"), {"role": "user", "content": float("nan")}], r"items\[1\]\.content"),
            (
                [{"role": "user", "content": [{"when": object()}]}],
                r"items\[0\]\.content\[0\]\.when",
            ),
        ],
    )
    async def test_what_json_cannot_hold(self, items, named):
        session = LocusSession("ada")
        with pytest.raises(InvalidArgumentError, match=named):
            await session.add_items(items)
        assert await session.get_items() == []

    async def test_the_place_of_a_value_is_that_of_the_call(self):
        with pytest.raises(ValueNotSerializableError) as caught:
            await LocusSession("ada").add_items([said("1"), said({1})])
        assert caught.value.path == "items[1].content"

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            ({"session_id": ""}, "session_id"),
            ({"session_id": 7}, "session_id"),
            ({"ttl": -1}, "ttl"),
            ({"branch": ""}, "branch"),
            ({"namespace": "agents"}, "namespace"),
        ],
    )
    def test_options(self, options, named):
        with pytest.raises(InvalidArgumentError, match=named):
            LocusSession(**{"session_id": "ada", **options})

    async def test_a_negative_limit(self):
        with pytest.raises(InvalidArgumentError, match="limit"):
            await LocusSession("ada").get_items(-1)


class TestSettings:
    async def test_the_limit_of_the_settings(self):
        store = InMemoryStore()
        session = LocusSession("ada", store, session_settings={"limit": 1})
        await session.add_items([said("1"), said("2")])
        assert session.session_settings == SessionSettings(limit=1)
        assert await session.get_items() == [said("2")]
        assert await session.get_items(5) == [said("1"), said("2")]
        assert "ada" in repr(session)

    async def test_it_closes_what_it_opened_alone(self, tmp_path):
        async with get_store(f"sqlite:{tmp_path / 'test.db'}") as store:
            async with LocusSession("ada", store) as session:
                await session.add_items([said("1")])
            assert await session.get_items() == [said("1")]


def assert_whole(texts, *, writers, turns):
    """Assert that each writer's turns are whole, in their order, and none is missing."""
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    for writer, own in groupby(sorted(pairs, key=lambda pair: pair[0]), lambda pair: pair[0]):
        assert writer in {str(number) for number in range(writers)}
        assert [turn for _, turn in own] == [str(turn) for turn in range(turns)]
    assert len(pairs) == writers * turns


WRITER = """
import asyncio, sys
from locus_memory.integrations.openai_agents import LocusSession

async def main(where, sessions, name, rounds):
    print("ready", flush=True)
    sys.stdin.readline()
    for each in sessions.split(","):
        async with LocusSession(each, where) as session:
            for turn in range(rounds):
                await session.add_items([
                    {"role": "user", "content": name}, {"role": "assistant", "content": str(turn)}
                ])

asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
"""


def together(where, rounds, sessions="ada"):
    """Let two processes append to the same sessions, separated by commas, at the same time."""
    command = [sys.executable, "-c", WRITER, where, sessions]
    writers = [
        subprocess.Popen(
            [*command, name, str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("0", "1")
    ]
    for each in writers:
        assert each.stdout.readline() == "ready\n"
    for each in writers:
        each.communicate("go\n", timeout=300)
    assert [each.returncode for each in writers] == [0, 0]
