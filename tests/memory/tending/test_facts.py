"""The consolidation of facts by a model: what it proposes is checked, and can be undone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import ConfigurationError
from locus_memory.memory import consolidate_facts
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.layers.log import read_log
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.rewriting.groups import calls, near_vectors
from locus_memory.memory.tending.rewriting.proposal import read_proposal
from locus_memory.messages import Message
from locus_memory.store.base import BaseStore
from locus_memory.testing import FakeClock, FakeEmbedder

SCOPE = Scope(("locus_memory",))
USER = MemoryType.USER


class Model:
    """A model that answers what it is told to."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, messages: list[Message]) -> Message:
        self.asked.append(messages[-1].content or "")
        answer = self.answers.pop(0) if self.answers else {"operations": []}
        return Message.assistant(answer if isinstance(answer, str) else json.dumps(answer))


def ops(*operations: dict[str, Any]) -> dict[str, Any]:
    """Return an answer."""
    return {"operations": list(operations)}


FACTS = [
    ("tea", "Ada likes green tea.", 0.4),
    ("tea2", "Ada likes tea a lot.", 0.6),
    ("home", "Ada lives in Lyon.", 0.5),
    ("home2", "Ada lives in Paris.", 0.5),
    ("nut", "Ada is allergic to walnuts.", 0.95),
    ("nut2", "Ada is allergic to nuts.", 0.5),
    ("cat", "The cat of Ada is named Mimi.", 0.5),
]
"""Three pairs that are alike, and one fact that is like no other."""


async def live(store: BaseStore, clock: FakeClock, **options: Any) -> LLMMemoryManager:
    """Return a manager with the facts, one a minute."""
    manager = LLMMemoryManager(store, clock=clock, **options)
    for key, content, importance in FACTS:
        await manager.save(Memory(USER, key, content, {"importance": importance}))
        clock.advance(60)
    return manager


def number(model_prompt: str, content: str) -> int:
    """Return the number of a fact in a prompt."""
    line = next(each for each in model_prompt.splitlines() if content in each)
    return int(line.partition(".")[0])


async def current(manager: LLMMemoryManager) -> dict[str, str]:
    """Return the contents of the current facts."""
    return {each.key: each.content async for each in manager.memories()}


async def test_a_model_sees_only_facts_that_are_alike(store: BaseStore, clock: FakeClock) -> None:
    """Groups of at least two, in one call; an answer without operations changes nothing."""
    manager = await live(store, clock)
    before, model = await current(manager), Model()
    report = await consolidate_facts(manager, model)
    assert (report.asked, report.calls, report.changes, report.refused) == (6, 1, (), ())
    assert "Mimi" not in model.asked[0]
    assert model.asked[0].count("Group") == 3
    assert await current(manager) == before
    assert [entry.kind async for entry in read_log(store, SCOPE)] == ["facts"]


async def test_accepted_operations_are_written_and_undone(
    store: BaseStore, clock: FakeClock
) -> None:
    """A merge and a replacement are in the history; a dry run says the same and writes nothing."""
    manager = await live(store, clock)
    before = await current(manager)
    first = Model()
    await consolidate_facts(manager, first)
    places = {key: number(first.asked[0], content) for key, content, _ in FACTS[:6]}
    answer = ops(
        {
            "op": "Merge",
            "keep": str(places["tea"]),
            "drop": [places["tea2"]],
            "content": "Ada likes green tea a lot.",
        },
        {"op": "supersede", "old": places["home"], "new": places["home2"]},
    )
    text = f"<think>{json.dumps(ops())}</think>Here it is:\n```json\n{json.dumps(answer)}\n```"
    dry = await consolidate_facts(manager, Model(text), dry_run=True)
    assert await current(manager) == before
    assert dry.diff().splitlines() == [
        "- Ada likes green tea.",
        "- Ada likes tea a lot.",
        "+ Ada likes green tea a lot.",
        "- Ada lives in Lyon.",
        "  Ada lives in Paris.",
    ]
    report = await consolidate_facts(manager, Model(text))
    assert report.changes == dry.changes
    after = await current(manager)
    assert after == {
        **{key: content for key, content in before.items() if key not in ("tea2", "home")},
        "tea": "Ada likes green tea a lot.",
    }
    merged = (await manager.history("tea"))[0]
    assert merged.metadata["importance"] == 0.6
    assert [each["key"] for each in merged.metadata["merged_from"]] == ["tea", "tea2"]
    assert merged.metadata["consolidated_at"] > merged.metadata["valid_from"]
    assert (await VitalsBook(store).of(SCOPE, [merged]))["user:tea"].salience == 0.6
    for change in report.changes:
        for key in change.keys:
            if (await current(manager)).get(key) != before[key]:
                await manager.undo(key)
    assert await current(manager) == before


LIES: list[Any] = [
    "I will not.",
    "{",
    {"operations": [{"op": "retire", "which": n} for n in range(1, 7)]},
    {"operations": [{"op": "retire", "which": n} for n in (1, 2, 3)]},
    {"operations": [{"op": "merge", "keep": 1, "drop": [2, 3, 4, 5, 6], "content": "Ada."}]},
    {"operations": [{"op": "merge", "keep": 1, "drop": [2], "content": "Ada is dead."}]},
    {"operations": [{"op": "merge", "keep": 1, "drop": [2], "content": ""}]},
    {"operations": [{"op": "merge", "keep": 1, "drop": [1], "content": "Ada lives in Lyon."}]},
    {"operations": [{"op": "merge", "keep": 0, "drop": [99], "content": "x"}]},
    {"operations": [{"op": "merge", "keep": None, "drop": None, "content": None}]},
    {"operations": [{"op": "supersede", "old": 2, "new": 99}]},
    {"operations": [{"op": "retire", "which": True}, {"op": "retire", "which": 1.5}, 7, None]},
    {"operations": [{"op": "erase", "which": 1}, {"op": ["retire"], "which": 1}, {}]},
    {"operations": "retire everything"},
    {"survivors": ["Ada likes green tea."]},
    json.dumps(ops({"op": "retire", "which": 1})) + json.dumps(ops({"op": "retire", "which": 2})),
]


@pytest.mark.parametrize("lie", LIES)
async def test_a_lying_model_loses_nothing(lie: Any, clock: FakeClock, events: Any) -> None:
    """Whatever it drops, invents or misspells: every fact is still there."""
    async with InMemoryStore(clock=clock) as store:
        manager = await live(store, clock)
        before = await current(manager)
        report = await consolidate_facts(manager, Model(lie))
        assert await current(manager) == before
        assert report.changes == ()
        assert len(report.refused) == events.names.count("memory.facts_refused") > 0


async def test_the_older_fact_never_wins(clock: FakeClock) -> None:
    """Neither by a replacement nor by a merge, and an allergy is not lost to a lesser fact."""
    async with InMemoryStore(clock=clock) as store:
        manager = await live(store, clock)
        before, model = await current(manager), Model()
        await consolidate_facts(manager, model)
        place = {key: number(model.asked[0], content) for key, content, _ in FACTS[:6]}
        lies = [
            {"op": "supersede", "old": place["home2"], "new": place["home"]},
            {"op": "supersede", "old": place["home"], "new": place["tea2"]},
            {"op": "supersede", "old": place["nut"], "new": place["nut2"]},
            {"op": "retire", "which": place["nut"]},
            {
                "op": "merge",
                "keep": place["home2"],
                "drop": [place["home"]],
                "content": "Ada lives in Lyon.",
            },
            {
                "op": "merge",
                "keep": place["home2"],
                "drop": [place["tea"]],
                "content": "Ada lives in Paris and likes green tea.",
            },
            {
                "op": "merge",
                "keep": place["tea"],
                "drop": [place["tea2"]],
                "content": "Ada likes green tea a lot since 2019.",
            },
        ]
        report = await consolidate_facts(manager, Model(ops(*lies)))
        assert await current(manager) == before
        assert len(report.refused) == len(lies)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["op", "keep", "drop", "content", "old", "new", "which"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
operations = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["merge", "supersede", "retire"])},
        optional={
            "keep": st.integers(-1, 8),
            "drop": st.lists(st.integers(-1, 8), max_size=4) | json_values,
            "content": st.sampled_from([content for _, content, _ in FACTS]) | st.text(max_size=9),
            "old": st.integers(-1, 8),
            "new": st.integers(-1, 8),
            "which": st.integers(-1, 8) | json_values,
        },
    ),
    max_size=6,
)


@pytest.mark.slow
@given(stated=operations | st.lists(json_values, max_size=4))
def test_no_answer_loses_the_words_of_a_fact(stated: list[Any]) -> None:
    """A fact goes only for a newer one, with its words, or with few others of no importance."""
    facts = [
        Memory(USER, key, text, {"importance": weight, "valid_from": f"2026-01-0{n}T00:00:00Z"})
        for n, (key, text, weight) in enumerate(FACTS, 1)
    ]
    (call,) = calls(facts, [(0, 1), (2, 3), (4, 5)], 60)
    proposal = read_proposal(json.dumps({"operations": stated}), call)
    gone = [each.places[0] for each in proposal.operations if each.op == "retire"]
    assert len(gone) * 3 <= len(call.facts)
    assert 4 not in gone
    touched = [place for each in proposal.operations for place in each.places]
    assert len(touched) == len(set(touched))
    for each in proposal.operations:
        if each.op == "supersede":
            assert each.places in ((0, 1), (2, 3))
        if each.op == "merge":
            assert {call.groups[place] for place in each.places} == {call.groups[each.places[0]]}


@pytest.mark.parametrize("batch", [2, 3, 60])
def test_groups_are_whole_where_they_fit(batch: int) -> None:
    """No call has more facts than allowed, and no group of one."""
    facts = [Memory(USER, f"k{n}", f"c{n}") for n in range(10)]
    made = list(calls(facts, [(0, 1), (1, 2), (4, 5), (6, 7), (8, 9)], batch))
    seen = [fact.key for call in made for fact in call.facts]
    assert len(seen) == len(set(seen))
    assert all(2 <= len(call.facts) <= batch for call in made)
    for call in made:
        assert all(call.groups.count(group) > 1 for group in call.groups)
    assert len(seen) == (8 if batch == 2 else 9)


def test_vectors_of_the_same_direction_are_near() -> None:
    """A cosine of at least 0.85, whatever the length of the vectors."""
    vectors = [[1.0, 0.0], [0.0, 1.0], [9.0, 0.5], [1.0, 1.0]]
    assert list(near_vectors([5, 6, 7, 8], vectors)) == [(5, 7)]
    assert list(near_vectors([5], vectors[:1])) == []


async def test_facts_that_are_alike_by_their_vectors_are_shown(clock: FakeClock) -> None:
    """An embedder finds pairs that share fewer than half of their words."""

    class Near(FakeEmbedder):
        """An embedder for which all texts are the same."""

        def _vector(self, text: str) -> list[float]:
            del text
            return super()._vector("same")

    async with InMemoryStore(clock=clock) as store:
        manager = LLMMemoryManager(store, clock=clock, embedder=Near())
        await manager.save([Memory(USER, "a", "Ada sails."), Memory(USER, "b", "Boats please.")])
        assert (await consolidate_facts(manager, Model())).asked == 2


async def test_a_fact_that_changes_meanwhile_stays(clock: FakeClock) -> None:
    """What is written while the model thinks is not overwritten, and nothing is retired for it."""
    async with InMemoryStore(clock=clock) as store:
        manager = await live(store, clock)

        class Slow(Model):
            """A model that thinks while the facts change."""

            async def __call__(self, messages: list[Message]) -> Message:
                text = messages[-1].content or ""
                place = {key: number(text, content) for key, content, _ in FACTS[:6]}
                await manager.save(Memory(USER, "tea", "Ada hates tea."))
                await manager.save(Memory(USER, "home2", "Ada lives in Rome."))
                self.answers = [
                    ops(
                        {
                            "op": "merge",
                            "keep": place["tea"],
                            "drop": [place["tea2"]],
                            "content": "Ada likes green tea a lot.",
                        },
                        {"op": "supersede", "old": place["home"], "new": place["home2"]},
                    )
                ]
                return await super().__call__(messages)

        report = await consolidate_facts(manager, Slow())
        assert report.changes == ()
        left = await current(manager)
        assert left["tea"] == "Ada hates tea."
        assert left["tea2"] == "Ada likes tea a lot."
        assert left["home"] == "Ada lives in Lyon."


async def test_a_consolidation_asks_the_model_at_most_once_a_day(
    clock: FakeClock, events: Any
) -> None:
    """The last step of a pass; a failing model is an event, and asked again the next time."""
    async with InMemoryStore(clock=clock) as store:
        model = Model("not JSON")
        manager = await live(store, clock, extract_fn=LLMExtractor(model))
        asked = []
        for hours in (0, 1, 22, 2):
            clock.advance(hours * 3_600)
            asked.append(sum(each.calls for each in (await manager.consolidate()).facts))
        assert asked == [1, 0, 0, 1]

        async def failing(_: Any) -> Message:
            raise ValueError("no")

        clock.advance(86_400)
        broken = LLMMemoryManager(store, extract_fn=LLMExtractor(failing), clock=clock)
        assert (await broken.consolidate()).facts == ()
        assert len(events.of("memory.facts_failed")) == 1
        assert (await manager.consolidate()).facts[0].calls == 1


@pytest.mark.parametrize("batch", [0, 1, True, "60"])
async def test_a_batch_has_two_facts_at_least(batch: Any) -> None:
    """A call of one fact has nothing to compare."""
    async with InMemoryStore() as store:
        await store.put(SCOPE.current, "user:a", Memory(USER, "a", "b").to_store_value())
        with pytest.raises(ConfigurationError):
            await consolidate_facts(LLMMemoryManager(store), Model(), batch=batch)
