"""The consolidation of facts by a model: what it proposes is checked, and can be undone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.errors import ConfigurationError
from locus_memory.memory import consolidate_facts
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.ledger.ledger import Ledger, Statement
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType, Origin, origin_of
from locus_memory.memory.moments import read_moment
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.facts import batches, facts_prompt, read_proposal
from locus_memory.messages import Message
from locus_memory.store.base import BaseStore
from locus_memory.testing import FakeClock
from tests.memory.conftest import log_of

SCOPE = Scope(("locus_memory",))
USER, PROJECT = MemoryType.USER, MemoryType.PROJECT


class Model:
    """A model that answers what it is told to."""

    def __init__(self, *answers: Any, meanwhile: Sequence[Any] = ()) -> None:
        self.answers, self.meanwhile = list(answers), meanwhile
        self.asked: list[str] = []

    async def __call__(self, messages: Sequence[Message]) -> Message:
        self.asked.append(messages[-1].content or "")
        for change in self.meanwhile:
            await change
        answer = self.answers.pop(0) if self.answers else {"changes": []}
        return Message.assistant(answer if isinstance(answer, str) else json.dumps(answer))


def says(*changes: Any) -> dict[str, Any]:
    """Return an answer."""
    return {"changes": list(changes)}


def delete(key: str, *newer: int, **fields: Any) -> dict[str, Any]:
    """Return a change that retires a fact for newer ones, by their numbers."""
    return {"op": "delete", "type": "user", "key": key, "messages": [*newer], **fields}


def update(key: str, content: str, **fields: Any) -> dict[str, Any]:
    """Return a change that rewrites a fact."""
    return {"op": "update", "type": "user", "key": key, "content": content, **fields}


FACTS = [
    ("tea", "Ada likes green tea.", 0.6),
    ("tea2", "Ada likes tea a lot.", 0.4),
    ("home", "Ada lives in Lyon.", 0.5),
    ("home2", "Ada lives in Paris.", 0.5),
    ("nut", "Ada is allergic to walnuts.", 0.95),
    ("nut2", "Ada is allergic to nuts.", 0.5),
    ("cat", "The cat of Ada is named Mimi.", 0.5),
]
"""Three pairs that are alike, and one fact that is like no other; a model sees them as 1 to 7."""

ALL_TEA = "Ada likes green tea a lot."
TIDY = says(delete("tea", 2), update("tea2", ALL_TEA), delete("home", 4))


async def live(store: BaseStore, clock: FakeClock, **options: Any) -> LLMMemoryManager:
    """Return a manager with the facts, one a minute."""
    manager = LLMMemoryManager(store, clock=clock, **options)
    for key, content, importance in FACTS:
        await manager.save(Memory(USER, key, content, {"importance": importance}))
        clock.advance(60)
    return manager


async def current(manager: LLMMemoryManager) -> dict[str, str]:
    """Return the contents of the current facts."""
    return {each.key: each.content async for each in manager.memories()}


async def test_a_model_sees_all_facts(store: BaseStore, clock: FakeClock) -> None:
    """In one call, from old to new; an answer without changes changes nothing."""
    manager = await live(store, clock)
    before, model = await current(manager), Model()
    report = await consolidate_facts(manager, model)
    assert (report.asked, report.calls, report.changes, report.refused) == (7, 1, (), ())
    rows = model.asked[0].splitlines()[1:-1]
    assert [row.partition(" [")[0] for row in rows] == [
        f"{n}. user | {key} | {content}" for n, (key, content, _) in enumerate(FACTS, 1)
    ]
    assert await current(manager) == before
    assert [entry.kind for entry in await log_of(store, SCOPE)] == ["facts"]


async def test_accepted_changes_are_written_and_undone(store: BaseStore, clock: FakeClock) -> None:
    """A merge and a replacement are in the history; a dry run says the same and writes nothing."""
    manager = await live(store, clock)
    before = await current(manager)
    text = f"<think>{json.dumps(says())}</think>Here it is:\n```json\n{json.dumps(TIDY)}\n```"
    dry = await consolidate_facts(manager, Model(text), dry_run=True)
    assert await current(manager) == before
    assert dry.diff().splitlines() == [
        "- Ada likes tea a lot.",
        "- Ada likes green tea.",
        "+ Ada likes green tea a lot.",
        "- Ada lives in Lyon.",
        "  Ada lives in Paris.",
    ]
    report = await consolidate_facts(manager, Model(text))
    assert report.changes == dry.changes
    assert [(each.op, each.keys) for each in report.changes] == [
        ("merge", ("tea2", "tea")),
        ("supersede", ("home2", "home")),
    ]
    after = await current(manager)
    assert after == {
        **{key: content for key, content in before.items() if key not in ("tea", "home")},
        "tea2": ALL_TEA,
    }
    merged, told = await manager.history("tea2")
    assert merged.metadata["importance"] == 0.6
    assert [each["key"] for each in merged.metadata["merged_from"]] == ["tea2", "tea"]
    assert merged.metadata["consolidated_at"] > merged.metadata["valid_from"]
    assert merged.metadata["valid_from"] == told.metadata["valid_from"]
    assert (await manager.history("home"))[0].metadata["superseded_by"]["change"] == "delete"
    for key in ("tea2", "tea", "home"):
        await manager.undo(key)
    assert await current(manager) == before


LIES: list[Any] = [
    "I will not.",
    "{",
    says(*(delete(key, 7) for key, _, _ in FACTS)),
    says(*(delete(key, 7) for key, _, _ in FACTS[:3])),
    says(delete("tea"), update("tea2", ALL_TEA)),
    says(delete("tea", 1)),
    says(delete("tea", 99), delete("home", 0)),
    says(delete("dog", 7)),
    says(delete("tea", 2, type="project")),
    says(update("tea", "Ada hates tea.")),
    says(update("dog", "The dog of Ada is named Rex.", op="add")),
    says(update("tea2", "")),
    says({"op": "erase", "type": "user", "key": "tea"}, {"op": ["delete"]}, {}, 7),
    {"changes": "retire everything"},
    {"operations": [{"op": "retire", "which": 1}]},
    json.dumps(says(delete("tea", 2))) + json.dumps(says(delete("home", 4))),
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


@pytest.mark.parametrize(
    "lie",
    [
        says(delete("home2", 3)),
        says(delete("tea2", 1), update("tea", ALL_TEA)),
        says(delete("home", 4), delete("home2", 3)),
        says(delete("nut", 6)),
        says(delete("nut", 6), update("nut2", "Ada is allergic to nuts and walnuts.")),
        says(delete("home", 5), update("nut", "Ada lives in Lyon.")),
    ],
)
async def test_the_older_fact_never_wins(lie: Any, clock: FakeClock) -> None:
    """And an important one is not rewritten, nor lost to a lesser fact."""
    async with InMemoryStore(clock=clock) as store:
        manager = await live(store, clock)
        before = await current(manager)
        report = await consolidate_facts(manager, Model(lie))
        assert await current(manager) == before
        assert len(report.refused) == len(lie["changes"])


async def test_what_is_wrong_in_an_answer_spares_the_rest(clock: FakeClock) -> None:
    """Each change is read alone."""
    async with InMemoryStore(clock=clock) as store:
        manager = await live(store, clock)
        answer = says(delete("home", 4), update("cat", "The cat is gone."), {"op": "delete"})
        report = await consolidate_facts(manager, Model(answer))
        assert [each.keys for each in report.changes] == [("home2", "home")]
        assert len(report.refused) == 2


async def test_a_rewritten_fact_is_one_clean_line(clock: FakeClock) -> None:
    """Half a character, and what would close a fence, is no part of it."""
    async with InMemoryStore(clock=clock) as store:
        manager = await live(store, clock)
        answer = says(delete("tea", 2), update("tea2", "Ada\ud800 likes\ntea </memory>."))
        await consolidate_facts(manager, Model(answer))
        assert (await current(manager))["tea2"] == "Ada likes tea \u2039/memory\u203a."


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["op", "type", "key", "content", "messages"]), inner, max_size=5
        )
    ),
    max_leaves=12,
)
change = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "update", "delete"]),
        "type": st.sampled_from(["user", "project"]),
        "key": st.sampled_from([key for key, _, _ in FACTS]),
    },
    optional={
        "messages": st.lists(st.integers(-1, 9), max_size=4) | json_values,
        "content": st.sampled_from([content for _, content, _ in FACTS]) | st.text(max_size=9),
    },
)


@pytest.mark.slow
@given(
    stated=st.lists(change, max_size=8) | st.lists(json_values, max_size=4),
    days=st.lists(st.sampled_from([*range(1, 6), None]), min_size=7, max_size=7),
)
def test_no_answer_prefers_what_is_older(stated: list[Any], days: list[int | None]) -> None:
    """A fact goes for one that is newer and as important, and few go."""
    facts = [
        Memory(
            PROJECT if key == "cat" else USER,
            key,
            text,
            {"importance": weight} | ({} if day is None else {"valid_from": f"2026-01-0{day}"}),
        )
        for (key, text, weight), day in zip(FACTS, days, strict=True)
    ]
    known = {fact.key: fact for fact in facts}
    changes, _ = read_proposal(json.dumps({"changes": stated}), facts)
    touched = [key for each in changes for key in each.keys]
    assert len(touched) == len(set(touched)) <= len(changes) + 2
    for each in changes:
        stays, *gone = (known[key] for key in each.keys)
        assert {fact.type for fact in (stays, *gone)} == {each.type}
        assert each.before == tuple(fact.content for fact in (stays, *gone))
        for old in gone:
            older, newer = (moment(fact) for fact in (old, stays))
            if each.op == "supersede":
                assert each.after == stays.content
                assert older is not None
                assert newer is not None
                assert older < newer
            elif older is not None and newer is not None:
                assert older <= newer
            assert old.metadata["importance"] < 0.9
        assert each.op == "supersede" or stays.metadata["importance"] < 0.9


def moment(fact: Memory) -> datetime | None:
    """Return the moment of a fact."""
    return read_moment(fact.metadata.get("valid_from"))


def numbered(count: int, **metadata: Any) -> list[Memory]:
    """Return facts of one origin."""
    return [Memory(USER, f"k{n}", f"This is fact {n}.", metadata) for n in range(count)]


def test_prompts_are_bounded_and_all_facts_are_in_one() -> None:
    """Of many facts, too, and of long ones; those of a large scope meet in time."""
    facts = [*numbered(1_000), *(Memory(USER, f"long{n}", "界" * 1_000) for n in range(20))]
    together = 0
    for day in range(1, 31):
        made = batches(facts, f"2026-01-{day:02}")
        shown = [fact.key for batch in made for fact in batch]
        assert sorted(shown) == sorted(fact.key for fact in facts)
        assert all(len(batch) > 1 for batch in made)
        for batch in made:
            assert expected_tokens(facts_prompt(batch)[1].content or "") < 7_000
        together += any({"k1", "k2"} <= {fact.key for fact in batch} for batch in made)
    assert 0 < together < 30


def test_what_is_shown() -> None:
    """No fact that ends by itself, none that is too long, and none alone."""
    end = Memory(USER, "end", "Ada is in Rome.", {"expires_at": "2030-01-01"})
    long = Memory(USER, "long", "Ada likes tea. " * 100)
    (shown,) = batches([*numbered(2), end, long], "2026-01-01")
    assert {fact.key for fact in shown} == {"k0", "k1"}
    assert batches([*numbered(1), end, long], "2026-01-01") == []


async def test_what_a_tool_told_is_shown_apart(store: BaseStore, clock: FakeClock) -> None:
    """So it cannot ask to retire what the user said; each is tidied among its own."""
    manager = await live(store, clock)
    for key in ("web", "web2"):
        told = {"origin": "tool"}
        await manager.save(Memory(USER, key, f"Ada is from {key}.", told))
        clock.advance(60)
    model = Model(TIDY, says(delete("web", 2), delete("home", 2)), says(delete("web", 2)))
    report = await consolidate_facts(manager, model)
    assert report.asked == 9
    assert ["web" in asked for asked in model.asked] == [False, True]
    assert "home" not in model.asked[1]
    assert len(report.changes) == 2
    assert len(report.refused) == 1
    await consolidate_facts(manager, Model(says(), says(delete("web", 2))))
    left = await current(manager)
    assert "web" not in left
    assert left["home2"] == "Ada lives in Paris."


@pytest.mark.parametrize("other", ["user", "person"])
async def test_a_merged_fact_has_the_weaker_origin(clock: FakeClock, other: str) -> None:
    """What the assistant told in part, the user did not say."""
    async with InMemoryStore(clock=clock) as store:
        manager = LLMMemoryManager(store, clock=clock)
        for key, origin in (("tea", "assistant"), ("tea2", other), ("home", other)):
            await manager.save(Memory(USER, key, f"Ada likes {key}.", {"origin": origin}))
            clock.advance(60)
        answer = says(delete("tea", 2), update("tea2", ALL_TEA))
        await consolidate_facts(manager, Model(answer))
        found = {each.key: origin_of(each) async for each in manager.memories()}
        assert found == {"tea2": Origin.ASSISTANT, "home": Origin(other)}


async def test_facts_of_one_moment_become_one_only_with_a_new_content(clock: FakeClock) -> None:
    """Neither of them is newer, so neither may make the other one untrue."""
    async with InMemoryStore(clock=clock) as store:
        manager = LLMMemoryManager(store, clock=clock)
        facts = [Memory(USER, key, content) for key, content, _ in FACTS[:3]]
        await manager.save(facts)
        before, model = await current(manager), Model(says(delete("tea", 1, 2, 3)))
        assert (await consolidate_facts(manager, model)).changes == ()
        assert await current(manager) == before
        place = next(n for n, row in enumerate(model.asked[0].splitlines()) if "| tea2 |" in row)
        answer = says(delete("tea", place), update("tea2", ALL_TEA))
        (change,) = (await consolidate_facts(manager, Model(answer))).changes
        assert change.after == ALL_TEA
        assert await current(manager) == {"tea2": ALL_TEA, "home": "Ada lives in Lyon."}


async def test_a_fact_that_changes_meanwhile_stays(clock: FakeClock) -> None:
    """What is written while the model thinks is not overwritten, and nothing is retired for it."""
    async with InMemoryStore(clock=clock) as store:
        manager = await live(store, clock)
        said = (("tea2", "Ada hates tea."), ("home2", "Ada lives in Rome."))
        meanwhile = [manager.save(Memory(USER, *each)) for each in said]
        report = await consolidate_facts(manager, Model(TIDY, meanwhile=meanwhile))
        assert report.changes == ()
        left = await current(manager)
        assert left["tea"] == "Ada likes green tea."
        assert left["tea2"] == "Ada hates tea."
        assert left["home"] == "Ada lives in Lyon."


async def test_a_fact_that_would_go_and_changes_meanwhile_stays(clock: FakeClock) -> None:
    """Also if what it says now was said before the fact for which it would go."""
    async with InMemoryStore(clock=clock) as store:
        manager = await live(store, clock)
        (home,) = await manager.history("home")
        said_at = home.metadata["valid_from"].replace(".000000", ".000001")
        late = Statement(Memory(USER, "home", "Ada works in Lyon."), said_at)
        meanwhile = [Ledger(store, 10, clock=clock).apply(SCOPE, [late])]
        answer = says(delete("home", 4))
        await consolidate_facts(manager, Model(answer, meanwhile=meanwhile))
        assert (await current(manager))["home"] == "Ada works in Lyon."


async def test_a_fact_that_is_erased_meanwhile_stays_erased(clock: FakeClock) -> None:
    """A model that saw it brings nothing of it back."""
    async with InMemoryStore(clock=clock) as store:
        manager = await live(store, clock)
        model = Model(TIDY, meanwhile=[manager.forget("tea2")])
        report = await consolidate_facts(manager, model)
        assert [each.op for each in report.changes] == ["supersede"]
        assert "tea2" not in await current(manager)
        assert await manager.history("tea2") == []


async def test_a_consolidation_asks_the_model_at_most_once_a_day(
    clock: FakeClock, events: Any
) -> None:
    """The last step of a pass; a failing model is an event, and asked again the next time."""
    async with InMemoryStore(clock=clock) as store:
        model = Model("not JSON")
        manager = await live(store, clock, extract_fn=LLMExtractor(model))

        async def asked(hours: int) -> int:
            clock.advance(hours * 3_600)
            return sum(each.calls for each in (await manager.consolidate()).facts)

        assert [await asked(hours) for hours in (0, 1, 22, 2)] == [1, 0, 0, 1]
        # Where nothing is written, there is nothing new to find.
        assert [await asked(hours) for hours in (24, 24)] == [0, 0]
        await manager.save(Memory(USER, "dog", "Ada has a dog."))

        async def failing(_: Any) -> Message:
            raise ValueError("no")

        clock.advance(86_400)
        broken = LLMMemoryManager(store, extract_fn=LLMExtractor(failing), clock=clock)
        assert (await broken.consolidate()).facts == ()
        assert len(events.of("memory.facts_failed")) == 1
        assert await asked(0) == 1


async def test_a_pass_asks_three_times_about_a_large_scope(clock: FakeClock) -> None:
    """A model is shown the others another day, and all at once on demand."""
    async with InMemoryStore(clock=clock) as store:
        model = Model()
        manager = LLMMemoryManager(store, extract_fn=LLMExtractor(model), clock=clock)
        long = " and ".join(["tea"] * 110)
        await manager.save([Memory(USER, f"k{n}", f"{n} {long}") for n in range(200)])
        [report] = (await manager.consolidate()).facts
        assert report.calls == len(model.asked) == 3
        assert report.asked < 200
        whole = await consolidate_facts(manager, model)
        assert (whole.asked, whole.calls) == (200, len(model.asked) - 3)


async def test_a_model_is_a_function(clock: FakeClock) -> None:
    """A name is none."""
    async with InMemoryStore(clock=clock) as store:
        name: Any = "gpt"
        with pytest.raises(ConfigurationError):
            await consolidate_facts(LLMMemoryManager(store), name)
