"""A fact that is erased is told nowhere any more, in whatever words it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import BackendUnavailableError
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.forgetting.choice import Sources
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, Note, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import MemoryChange, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.store.base import BaseStore
from locus_memory.testing import FakeClock
from tests.memory.forgetting.test_interrupted import FailingStore, Strike
from tests.memory.forgetting.test_layers import contents, put_identity, rows

ADA = Scope(("locus_memory", "users", "ada"))
MARK = "xylophone"
LONG = "It rained the whole day, so we stayed at home and played cards until it was midnight."
TELLS = f"When I was a child, I learnt to play the {MARK} from my aunt, who lived next door."
REPEATS = "As you know, what my aunt taught me makes me happy to this day, whatever comes."
TEXTS = {"told": TELLS, "again": REPEATS, "plain": LONG}


class Telling:
    """An extractor that tells a fact in other words in each layer."""

    name = "telling"

    async def distill(self, messages: Sequence[Any], memories: object) -> Distillate:
        del memories
        texts = [message.content for message in messages]
        places = [place for place, text in enumerate(texts) if text in (TELLS, REPEATS)]
        if not places:
            return Distillate(notes=(NoteDraft(f"Plain talk: {texts[0][:9]}."),))
        change = MemoryChange(
            op="add",
            type=MemoryType.USER,
            key="music",
            content=f"Ada plays the {MARK}.",
            sources=tuple(places),
        )
        notes = (NoteDraft(f"On {MARK}s and rain."), NoteDraft(f"Tune a {MARK}.", "decision"))
        return Distillate(changes=(change,), notes=notes)

    async def extract(self, messages: object, memories: object) -> list[Any]:
        raise AssertionError


async def live(store: BaseStore, plan: dict[str, Any]) -> None:
    """Let a user talk in several sessions, some of which tell the fact."""
    clock, said = FakeClock(), dict[str, list[Message]]()
    options = {"transcript": plan["passive"], "extract_mode": "manual"}
    manager = LLMMemoryManager(store, extract_fn=Telling(), clock=clock, **options)
    for thread, turns in [*plan["sessions"], ("last", plan["waiting"])]:
        for what in turns:
            clock.advance(7)
            number = uuid4().hex if plan["ids"] else None
            known = said.setdefault(thread, [])
            known += [
                Message.user(TEXTS[what]).model_copy(update={"id": number}),
                Message.assistant("Noted."),
            ]
            metadata = {"thread_id": thread, "user_id": "ada"}
            await manager.on_session_end(AgentState(messages=tuple(known), metadata=metadata))
        if thread != "last":
            await manager.sync_now()
    await put_identity(store, ADA, [], f"Ada, of the {MARK}s.")


async def told(store: BaseStore) -> list[Any]:
    """Return the items of which a part has the word."""
    return [each for each in (await contents(store)).items() if MARK in str(each).lower()]


async def check(store: BaseStore, plan: dict[str, Any]) -> None:
    """Forget the fact: what told it is gone, and nothing else."""
    await live(store, plan)
    before = await contents(store)
    kept = [
        name
        for name, value in before.items()
        if name[0] == ADA.episodes and MARK not in str(value).lower()
    ]
    planned = await forget(store, user_id="ada", key="music", dry_run=True)
    assert await contents(store) == before
    report = await forget(store, user_id="ada", key="music")
    names = ("memories", "vitals", "episodes", "turns", "jobs")
    assert [getattr(planned, name) for name in names] == [getattr(report, name) for name in names]
    if report.memories:
        assert await told(store) == []
        after = await contents(store)
        assert [name for name in after if name[0] == ADA.episodes] == kept
        assert report.episodes == sum(name[0] == ADA.episodes for name in before) - len(kept)
    assert (await forget(store, user_id="ada", key="music")).is_empty


plans = st.fixed_dictionaries(
    {
        "sessions": st.lists(
            st.tuples(
                st.sampled_from("abc"),
                st.lists(
                    st.sampled_from(["plain", "plain", "told", "again"]), min_size=1, max_size=3
                ),
            ),
            max_size=5,
        ),
        "ids": st.booleans(),
        "passive": st.booleans(),
        "waiting": st.lists(st.sampled_from(["plain", "again"]), max_size=2),
    }
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(plan=plans)
def test_a_fact_is_told_nowhere_after_it_is_erased(plan: dict[str, Any]) -> None:
    """Whatever episodes, sentences, turns and queued messages told it."""

    async def run() -> None:
        async with InMemoryStore() as store:
            await check(store, plan)

    asyncio.run(run())


@pytest.mark.parametrize("ids", [False, True])
async def test_a_file_does_not_hold_the_word_any_more(tmp_path: Any, ids: bool) -> None:  # noqa: FBT001 - a parameter of a test
    """Its indexes included."""
    sessions = [("a", ["plain", "told"]), ("b", ["again"]), ("a", ["plain"])]
    plan = {"sessions": sessions, "ids": ids, "passive": True, "waiting": []}
    async with SQLiteStore(tmp_path / "m.db") as store:
        await check(store, plan)
    assert MARK[:8] not in rows(tmp_path / "m.db").lower()


async def test_an_episode_that_took_over_what_told_it_goes_too() -> None:
    """An earlier version merged two sessions, of which the older one is a plain one."""
    clock = FakeClock()
    async with InMemoryStore() as store:
        manager = LLMMemoryManager(
            store, extract_fn=Merging(), extract_mode="session_end", clock=clock
        )
        for thread, text in (("a", LONG), ("b", TELLS)):
            clock.advance(100)
            await manager.add([Message.user(text)], user_id="ada", thread_id=thread)
            await manager.sync_now()
        newer, older = await EpisodeBook(store).newest(ADA)
        told_by_both = (*older.notes, *newer.notes)
        merged = replace(older, notes=told_by_both, joined_turns=newer.all_turns)
        await store.put_batch([episode_put(ADA, merged)])
        await store.delete(ADA.episodes, newer.key)
        assert merged.all_turns == (("a", 1, 1), ("b", 1, 1))
        assert (await forget(store, user_id="ada", key="music")).episodes == 1
        assert await told(store) == []


@pytest.mark.slow
async def test_rules_that_hear_a_fact_twice_know_both_messages() -> None:
    """The second time changes nothing of the memory."""
    async with InMemoryStore() as store:
        manager = LLMMemoryManager(store, extract_mode="session_end", clock=FakeClock())
        for thread in "abc":
            cat = [f"My cat is called {MARK.title()}."] if thread != "b" else []
            metadata = {"thread_id": thread, "user_id": "ada"}
            state = AgentState(messages=tuple(map(Message.user, [*cat, LONG])), metadata=metadata)
            await manager.on_session_end(state)
            await manager.sync_now()
        (memory,) = await manager.for_user("ada").retrieve()
        (vitals,) = await manager.for_user("ada").vitals([memory])
        assert len(vitals.messages) == 2
        report = await forget(store, user_id="ada", key=memory.key)
        assert (report.episodes, report.turns) == (0, 2)
        assert await told(store) == []


def test_the_place_of_a_message_decides() -> None:
    """Its number, else a note that names it, the moment or the thread; in forks its id."""
    unique = uuid4().hex
    sources = Sources()
    sources.add("t", "#3")
    sources.add("u", "m", "2026-03-02")
    sources.add("v", unique)
    sources.add("w", f"#{'9' * 5000}")
    assert sources.has("fork", unique)
    assert not sources.has("fork", "m")
    assert not sources.has("u", None)

    def are_in(
        session: str,
        first: int,
        last: int,
        *,
        ended_at: str = "2026-03-03",
        joined: tuple[tuple[str, int, int], ...] = (),
        names: tuple[str, ...] = (),
    ) -> bool:
        episode = Episode(
            session_id=session,
            started_at="2026-03-01",
            ended_at=ended_at,
            notes=(Note("Told.", message_ids=names),),
            turns=(first, last),
            joined_turns=joined,
        )
        return sources.are_in(episode)

    assert are_in("t", 1, 3)
    assert not are_in("t", 4, 9)
    assert not are_in("s", 1, 9)
    assert are_in("s", 1, 9, joined=(("t", 3, 3),))
    assert are_in("u", 1, 1)
    assert not are_in("u", 1, 1, ended_at="2026-03-01")
    assert are_in("u", 1, 1, ended_at="2026-03-01", names=("m",))
    assert not are_in("s", 1, 1, names=("m",))
    assert are_in("s", 1, 1, names=(unique,))
    assert are_in("s", 1, 1, joined=(("u", 5, 6),))
    assert are_in("w", 1, 1)
    assert are_in("v", 7, 8)


class Merging(Telling):
    """An extractor whose episodes differ by their last note only."""

    async def distill(self, messages: Sequence[Any], memories: object) -> Distillate:
        made = await super().distill(messages, memories)
        notes = (NoteDraft("They played cards."), *made.notes[1:])
        return Distillate(changes=made.changes, notes=notes)


async def test_an_interrupted_erasure_is_finished_by_another_one() -> None:
    """What leads to an episode is erased after it."""
    sessions = [("a", ["plain", "told"]), ("b", ["again"])]
    plan = {"sessions": sessions, "ids": True, "passive": False, "waiting": []}
    for steps in range(30):
        strike = Strike()
        store = FailingStore(strike)
        await live(store, plan)
        strike.left = steps
        try:
            await forget(store, user_id="ada", key="music")
        except BackendUnavailableError:
            strike.left = 10**9
            await forget(store, user_id="ada", key="music")
            assert await told(store) == []
        else:
            return
    raise AssertionError("more steps than were interrupted")
