"""What is forgotten is gone from the layers beside the memories as well."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.layers.log import LogEntry, log_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put
from locus_memory.store.wrappers.base import StoreWrapper
from tests.memory.transcripts import transcript_puts

ADA = Scope(("locus_memory", "users", "ada"))
BOB = Scope(("locus_memory", "users", "bob"))
NOW = "2026-03-01T10:00:00.000000+00:00"
VITALS = {"decayed_at": NOW, "pinned_at": NOW, "sources": [], "trained": []}
MARK = "xylophone"

marks = st.lists(st.booleans(), min_size=1, max_size=9)
told = st.fixed_dictionaries(
    {
        "facts": marks,
        "episodes": marks,
        "turns": marks,
        "overrides": marks,
        "derived": marks,
        "narrative": st.booleans(),
    }
)


def said(number: int, what: str, *, marked: bool) -> str:
    """Return a sentence with or without the word."""
    return f"The {what}{number} is about {MARK}s." if marked else f"The {what}{number} is plain."


async def live(store: BaseStore, scope: Scope, told: dict[str, Any]) -> None:
    """Leave records in every layer."""
    manager = LLMMemoryManager(store).scoped(scope.namespace)
    await manager.save(
        [
            Memory(MemoryType.USER, f"k{n}", said(n, "fact", marked=marked))
            for n, marked in enumerate(told["facts"])
        ]
    )
    episodes = [
        Episode(
            session_id=f"s{n}",
            started_at=NOW,
            ended_at=NOW,
            notes=(Note("A plain session."), Note(text, "decision"))[n % 2 :],
        )
        for n, marked in enumerate(told["episodes"])
        if (text := said(n, "episode", marked=marked))
    ]
    messages = [
        Message.user(said(n, "turn", marked=marked)) for n, marked in enumerate(told["turns"])
    ]
    await store.put_batch(
        [
            *(
                Put(namespace=scope.vitals, key=f"user:k{n}", value=VITALS)
                for n in range(len(told["facts"]))
            ),
            *(episode_put(scope, each) for each in episodes),
            *transcript_puts(scope, "t", messages, 1, NOW),
            log_put(scope, LogEntry(kind="distill", at=NOW, duration_ms=1.0)),
        ]
    )
    overrides = [said(n, "override", marked=marked) for n, marked in enumerate(told["overrides"])]
    derived = [fact(said(n, "derived", marked=each)) for n, each in enumerate(told["derived"])]
    await put_identity(
        store, scope, derived, said(0, "narrative", marked=told["narrative"]), overrides
    )


def fact(text: str, thread: str | None = None, *ids: str) -> dict[str, Any]:
    """Return a fact about the owner as earlier versions stored it."""
    return {"text": text, "source": {"thread_id": thread, "message_ids": list(ids)}, "at": NOW}


async def put_identity(
    store: BaseStore,
    scope: Scope,
    facts: Sequence[dict[str, Any]],
    narrative: str,
    overrides: Sequence[str] = (),
) -> None:
    """Store the record of an identity as earlier versions did."""
    fixed = [
        {"id": f"{n:032}", "text": text, "created_at": NOW} for n, text in enumerate(overrides)
    ]
    value = {"overrides": fixed, "facts": facts, "content": narrative, "content_at": NOW}
    await store.put(scope.identity, "identity", value, text="")


async def contents(store: BaseStore) -> dict[Any, Any]:
    """Return the values of all items."""
    return {
        (space, item.key): item.value
        for space in await store.list_namespaces(limit=1_000)
        for item in await store.scan(space, 1_000)
    }


async def check_words(store: BaseStore, told: dict[str, Any]) -> None:
    """Forget the word, and check that all of it and nothing else is gone."""
    for scope in (ADA, BOB):
        await live(store, scope, told)
    before = await contents(store)
    planned = await forget(store, user_id="ada", query=MARK, dry_run=True)
    assert await contents(store) == before
    report = await forget(store, user_id="ada", query=MARK)
    gone = sum(sum(told[name]) for name in ("facts", "overrides", "derived"))
    for each in (planned, report):
        assert (each.vitals, each.episodes, each.turns, each.log) == (
            sum(told["facts"]),
            sum(told["episodes"]),
            sum(told["turns"]),
            0,
        )
        assert sum(memory.is_current for memory in each.memories) == gone
    after = await contents(store)
    for name, value in before.items():
        is_ada = name[0][:3] == ADA.namespace
        if is_ada and name[0] != ADA.identity and name[0][3:4] != ("vitals",):
            assert (name in after) == (MARK not in str(value))
        elif not is_ada:
            assert after[name] == value
    assert await store.get(ADA.identity, "identity") is None
    manager = LLMMemoryManager(store).scoped(ADA.namespace)
    fixed = (await manager.identity.read()).overrides
    assert len(fixed) == told["overrides"].count(False)
    left = [each.content async for each in manager.memories()]
    assert sum("derived" in each for each in left) == told["derived"].count(False)
    for space in (ADA.current, ADA.episodes, ADA.transcript("t")):
        assert await store.search(space, MARK) == []
    plain = [n for n, marked in enumerate(told["turns"]) if not marked]
    for number in plain:
        hits = await store.search(ADA.transcript("t"), f"turn{number}", 20)
        assert said(number, "turn", marked=False) in [hit.value["text"] for hit in hits]
    assert (await forget(store, user_id="ada", query=MARK)).is_empty


async def check_user(store: BaseStore, told: dict[str, Any]) -> None:
    """Forget the user, and check that every layer is empty."""
    report = await forget(store, user_id="ada")
    assert report.log == 1
    assert not [name for name in await contents(store) if name[0][:3] == ADA.namespace]
    assert [name for name in await contents(store) if name[0][:3] == BOB.namespace]
    assert report.turns == told["turns"].count(False)
    assert (await forget(store, user_id="ada")).is_empty


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(told=told)
def test_a_marked_word_is_gone_from_all_layers_in_memory(told: dict[str, Any]) -> None:
    """By the word, and then by the user."""

    async def check() -> None:
        async with InMemoryStore() as store:
            await check_words(store, told)
            await check_user(store, told)

    asyncio.run(check())


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(told=told)
def test_a_marked_word_is_gone_from_all_layers_on_sqlite(told: dict[str, Any]) -> None:
    """The file, its search indexes included, holds the word for the other user only."""

    async def check(path: Path) -> None:
        async with SQLiteStore(path) as store:
            await check_words(store, told)
            await forget(store, user_id="bob", query=MARK)
            assert MARK[:8] not in rows(path)
            await check_user(store, told)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder) / "m.db"))


def rows(path: Path) -> str:
    """Return everything that a SQLite file holds, the indexes of its searches included."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return "".join(
            repr(connection.execute(f'SELECT * FROM "{name}"').fetchall())
            for (name,) in tables.fetchall()
        )


@pytest.fixture(params=["inmemory", "sqlite"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A store."""
    is_file = request.param == "sqlite"
    async with SQLiteStore(tmp_path / "m.db") if is_file else InMemoryStore() as made:
        yield made


async def test_a_key_takes_what_it_was_learnt_from_and_what_says_the_same(
    memory: BaseStore,
) -> None:
    """The turns of its messages, and texts with all its words; another memory of them stays."""
    manager = LLMMemoryManager(memory).scoped(ADA.namespace)
    messages = [
        Message.user("Call me what you like."),
        Message.assistant("Yes."),
        Message.user("The sea at Lisbon, for me, it must be."),
        Message.user("And yes, I do like the snow of Graz."),
    ]
    messages[2] = messages[2].model_copy(update={"id": "m3"})
    source = {"thread_id": "t", "message_ids": ["m3", "#1"]}
    await manager.save(Memory(MemoryType.USER, "home", "Ada lives in Lisbon.", source))
    await manager.save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
    facts = [fact("A person of the sea.", "t", "#1")]
    when = {"started_at": NOW, "ended_at": NOW}
    episodes = [
        Episode(session_id="a", notes=(Note("In Lisbon, where Ada lives, it rained."),), **when),
        Episode(session_id="b", notes=(Note("Ada talked of Lisbon."),), **when),
    ]
    await memory.put_batch(
        [
            *transcript_puts(ADA, "t", messages, 1, NOW),
            *(episode_put(ADA, each) for each in episodes),
        ]
    )
    await put_identity(memory, ADA, facts, "X.")
    for key in ("home", "tea"):
        await memory.put(ADA.vitals, f"user:{key}", VITALS)
    report = await forget(memory, user_id="ada", key="home")
    assert (report.vitals, report.episodes, report.turns) == (1, 1, 2)
    assert await memory.list_keys(ADA.vitals) == ["user:tea"]
    left = [item.value["text"] for item in await memory.scan(ADA.transcript("t"))]
    assert left == [messages[1].content, messages[3].content]
    assert await memory.search(ADA.transcript("t"), "Lisbon") == []
    left = {each.content async for each in manager.memories()}
    assert left == {"Ada likes tea.", "A person of the sea."}
    assert await memory.get(ADA.identity, "identity") is None
    assert [e.value["session_id"] for e in await memory.scan(ADA.episodes)] == ["b"]


async def test_a_type_keeps_the_layers_to_the_memories_of_that_type(memory: BaseStore) -> None:
    """A word that only the query has erases no episode, since an episode has no type."""
    manager = LLMMemoryManager(memory).scoped(ADA.namespace)
    await manager.save(Memory(MemoryType.FEEDBACK, "tea", "Never offer tea."))
    when = {"started_at": NOW, "ended_at": NOW}
    await memory.put_batch(
        [
            episode_put(ADA, Episode(session_id="a", notes=(Note("Ada had tea."),), **when)),
            episode_put(
                ADA, Episode(session_id="b", notes=(Note("To never offer tea: so be it."),), **when)
            ),
        ]
    )
    report = await forget(memory, user_id="ada", query="tea", type="feedback")
    assert (len(report.memories), report.episodes) == (1, 1)
    assert [e.value["session_id"] for e in await memory.scan(ADA.episodes)] == ["a"]


async def test_erasing_a_memory_by_the_manager_takes_its_vital_signs(memory: BaseStore) -> None:
    """The number counts versions only."""
    manager = LLMMemoryManager(memory).scoped(ADA.namespace)
    await manager.save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
    await memory.put(ADA.vitals, "user:tea", VITALS)
    assert await manager.forget("tea") == 1
    assert await contents(memory) == {}


async def test_a_block_that_a_run_builds_meanwhile_goes_too(memory: BaseStore) -> None:
    """It may show what was there when it was built."""

    class Racing(StoreWrapper):
        async def delete_batch(self, keys: Any) -> Any:
            for space in (ADA.blocks, ADA.kept_notes, ADA.runs):
                await self.inner.put(space, "t", "Ada likes tea.")
            return await self.inner.delete_batch(keys)

    await LLMMemoryManager(memory).scoped(ADA.namespace).save(Memory("user", "tea", "Likes tea."))
    await forget(Racing(memory), user_id="ada", key="tea")
    assert await contents(memory) == {}


@pytest.mark.parametrize("user_id", ["ada", None])
async def test_a_key_that_is_not_there_leaves_the_records_of_runs(
    memory: BaseStore, user_id: str | None
) -> None:
    """A mistyped key erases nothing, and the right one the records that may show the memory."""
    root = LLMMemoryManager(memory)
    manager = root if user_id is None else root.for_user(user_id)
    await manager.save([Memory("user", "home", "The user lives in Graz.")])
    metadata = {"thread_id": "t"} | ({} if user_id is None else {"user_id": user_id})
    state = AgentState(messages=[Message.user("Where do I live?")], metadata=metadata)
    await root.on_session_start(state)
    seen = await manager.saw("t")
    assert "Graz" in str(seen[0].stable)

    for absent in ({"key": "hme"}, {"key": "home", "type": "feedback"}):
        report = await forget(memory, user_id=user_id, **absent)
        assert report.is_empty
        assert await manager.forget(absent["key"], absent.get("type")) == 0
        assert await manager.saw("t") == seen

    await forget(memory, user_id=user_id, key="home")
    assert await manager.saw("t") == []


async def test_a_damaged_memory_is_erased_by_its_key(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    async with SQLiteStore(path) as store:
        await LLMMemoryManager(store).for_user("ada").save([Memory("user", "home", "In Graz.")])
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE items SET value = replace(value, 'Graz', 'Gras')")
    async with SQLiteStore(path) as store:
        assert await LLMMemoryManager(store).for_user("ada").forget("home") == 1
        assert await contents(store) == {}
