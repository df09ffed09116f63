"""Conversations that are ingested: at once, once, and whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError, InvalidKeyError
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import MemoryChange, MemoryType
from locus_memory.messages import Message
from tests.memory.sessions.conftest import LONG, SCOPE, Distiller, episodes_of

TURNS = [{"user": f"{LONG} {n}", "assistant": f"Noted, {n}."} for n in range(3)]
MARCH = "2026-03-01T10:00:00+01:00"


async def transcript(store, thread="c", scope=SCOPE):
    return [item.value["text"] for item in await store.scan(scope.transcript(thread), 1000)]


async def test_a_conversation_becomes_an_episode_at_once(tend, either):
    """The date dates everything; the answer counts what is new."""
    change = MemoryChange(op="add", type=MemoryType.USER, key="home", content="Ada is in Graz.")
    made = Distillate(changes=(change,), notes=(NoteDraft("Ada is in Graz."),))
    manager = tend(extract_fn=Distiller(made))
    answer = await manager.ingest("helper", "c", TURNS, session_date=MARCH)
    assert answer == {"turns": 3, "episodes": 1, "facts": 1, "pending": 0}
    (episode,) = await episodes_of(either)
    assert (episode.session_id, episode.agent_id, episode.turns) == ("c", "helper", (1, 6))
    assert episode.started_at == episode.ended_at == "2026-03-01T09:00:00.000000+00:00"
    (memory,) = await manager.retrieve()
    assert memory.metadata["valid_from"] == episode.started_at
    assert await transcript(either) == [text for turn in TURNS for text in turn.values()]


async def test_ingesting_again_changes_nothing(tend, either):
    """Neither in whole nor in part, also after other sessions of the conversation."""
    model = Distiller()
    manager = tend(extract_fn=model)
    await manager.ingest("helper", "c", TURNS, session_date=MARCH)
    await manager.ingest("helper", "c", TURNS, session_date="2026-04-01")
    for turns in (TURNS, TURNS[:2]):
        again = await manager.ingest("helper", "c", turns, session_date=MARCH)
        assert again == {"turns": 0, "episodes": 0, "facts": 0, "pending": 0}
    assert len(model.sessions) == 2
    assert [each.turns for each in await episodes_of(either)] == [(1, 6), (7, 12)]
    assert len(await transcript(either)) == 12


async def test_a_conversation_that_grew_adds_its_new_turns(tend, either):
    manager = tend()
    await manager.ingest("helper", "c", TURNS[:2])
    answer = await manager.ingest("helper", "c", TURNS)
    assert answer == {"turns": 1, "episodes": 1, "facts": 0, "pending": 0}
    assert [each.turns for each in await episodes_of(either)] == [(1, 4), (5, 6)]


async def test_turns_can_be_recorded_first_and_distilled_later(tend, either):
    """Recording writes the transcript only, and distilling does not record again."""
    model = Distiller()
    manager = tend(extract_fn=model)
    for turns in (3, 0):
        answer = await manager.ingest("helper", "c", TURNS, skip_extraction=True)
        assert answer == {"turns": turns, "episodes": 0, "facts": 0, "pending": 0}
    assert model.sessions == []
    assert await either.list_keys(SCOPE.queue) == []
    assert len(await transcript(either)) == 6
    assert (await manager.ingest("helper", "c", TURNS))["episodes"] == 1
    assert (await manager.ingest("helper", "c", TURNS))["turns"] == 0
    assert (await manager.ingest("helper", "c", TURNS, skip_extraction=True))["turns"] == 0
    assert len(await transcript(either)) == 6


async def test_what_is_only_recorded_holds_no_secret(tend, either):
    """A turn without its secret is not new again; `allow_secrets` keeps it."""
    turns = [*TURNS[:1], {"user": "My password is hunter2!"}]
    manager = tend()
    for new in (2, 0):
        answer = await manager.ingest("helper", "c", turns, skip_extraction=True)
        assert answer["turns"] == new
    assert await transcript(either) == list(TURNS[0].values())
    allowing = tend(allow_secrets=True)
    await allowing.ingest("helper", "d", turns, skip_extraction=True)
    assert len(await transcript(either, "d")) == 3


FAMILY = [
    {"role": "user", "content": f"{LONG} 1", "metadata": {"said_at": "2026-03-01T23:00:00+02:00"}},
    {"role": "user", "content": "And tea."},
    {"role": "system", "content": "Be kind."},
    {"role": "assistant", "content": "I like milk.", "name": "Bo"},
    Message.assistant("Noted."),
    {"role": "assistant", "content": None},
]


async def test_messages_keep_their_order_names_and_moments(tend, either):
    """Several of one role stand one after another, and nobody's words are the user's."""
    model = Distiller()
    manager = tend(extract_fn=model)
    answer = await manager.ingest("helper", "c", FAMILY, session_date=MARCH)
    assert answer["turns"] == 4
    assert (await manager.ingest("helper", "c", FAMILY, session_date=MARCH))["turns"] == 0
    turns = await either.scan(SCOPE.transcript("c"), 100)
    assert [
        (each.value["text"], each.metadata["speaker"], each.metadata["date"][:16])
        for each in sorted(turns, key=lambda turn: turn.metadata["number"])
    ] == [
        (f"{LONG} 1", "user", "2026-03-01T21:00"),
        ("And tea.", "user", "2026-03-01T09:00"),
        ("I like milk.", "Bo", "2026-03-01T09:00"),
        ("Noted.", "assistant", "2026-03-01T09:00"),
    ]
    assert [len(each) for each in model.sessions] == [4]


async def test_a_message_with_a_bad_moment_is_refused(tend):
    bad = {"role": "user", "content": LONG, "metadata": {"said_at": "noon"}}
    with pytest.raises(InvalidArgumentError, match="ISO 8601"):
        await tend().ingest("helper", "c", [bad])


async def test_a_failing_model_leaves_the_turns_pending(tend, either):
    manager = tend(extract_fn=Distiller(ConnectionError()))
    assert (await manager.ingest("helper", "c", TURNS))["pending"] == 1
    again = await manager.ingest("helper", "c", TURNS)
    assert again == {"turns": 0, "episodes": 1, "facts": 0, "pending": 0}


@pytest.mark.parametrize(
    "turns",
    [
        "text",
        None,
        5,
        {"user": LONG},
        [LONG],
        [{}],
        [{"user": " "}],
        [{"user": 3}],
        [{"user": LONG, "date": MARCH}],
        [*TURNS, {"assistant": None}],
    ],
)
async def test_what_is_no_turn_is_refused_before_anything_is_written(tend, either, turns):
    with pytest.raises(InvalidArgumentError):
        await tend().ingest("helper", "c", turns)
    assert await either.list_keys(SCOPE.cursors) == []


async def test_bad_names_are_refused(tend):
    manager = tend()
    with pytest.raises(InvalidKeyError):
        await manager.ingest("", "c", TURNS)
    with pytest.raises(InvalidKeyError):
        await manager.ingest("helper", "", TURNS)


calls = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([None, MARCH]), st.booleans()), max_size=6
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(calls)
async def test_any_order_of_calls_ingests_each_turn_once(calls):
    """Each dated turn is in at most one episode, and recorded exactly once."""
    async with InMemoryStore() as store:
        manager = LLMMemoryManager(store, extract_fn=Distiller(), extract_mode="session_end")
        for count, date, skips in calls:
            await manager.ingest(
                "helper", "c", TURNS[:count], session_date=date, skip_extraction=skips
            )
        dated = {(n, date) for count, date, _ in calls for n in range(count)}
        distilled = {(n, date) for count, date, skips in calls for n in range(count) if not skips}
        covered = [
            number
            for each in await episodes_of(store)
            for number in range(each.turns[0], each.turns[1] + 1)
        ]
        assert len(covered) == len(set(covered)) == 2 * len(distilled)
        assert len(await transcript(store)) == 2 * len(dated)
        await manager.close()
