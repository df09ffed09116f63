"""The tail: what answers the message, in front of it, and nothing twice."""

# ruff: noqa: RUF001 - texts in many scripts

from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.memory.inject import strip
from locus_memory.messages import Message
from locus_memory.store.wrappers.base import StoreWrapper
from tests.memory.conftest import PlainStore
from tests.memory.reading.conftest import Told

MANY = [f"Ada saw the bird number {n} in a very large and green park." for n in range(300)]


async def filled(world):
    """Fill the stable part with what nobody asks about."""
    await world.knows(*MANY)


async def test_words_of_other_threads_are_quoted_old_to_new(world):
    await world.said("one", "I moved to Lisbon.", "Nice!", moment="2026-03-02T10:00:00+00:00")
    await world.said("two", "We lived in Lisbon as well.", "I see.")
    _, tail = await world.shown("What do you know about Lisbon?")
    assert "2026-03-01, the user:\n- We lived in Lisbon as well.\n" in tail
    assert "2026-03-02, the user:\n- I moved to Lisbon.\n" in tail
    assert tail.index("We lived") < tail.index("I moved")


async def test_words_of_the_assistant_are_quoted_as_such(world):
    await world.said("one", "Which wine?", "I recommend a dry Riesling.")
    _, tail = await world.shown("What about the Riesling?")
    assert "2026-03-01, the assistant:\n- I recommend a dry Riesling.\n" in tail


async def test_it_stands_before_the_latest_message_and_nowhere_else(world):
    await world.said("one", "I moved to Lisbon.")
    seen = await world.seen("Hi!", "Hello!", "How big is Lisbon?")
    assert [each.content for each in seen[:2]] == ["Hi!", "Hello!"]
    assert seen[2].content.endswith("\n\nHow big is Lisbon?")
    assert [each.content for each in strip(seen)] == ["Hi!", "Hello!", "How big is Lisbon?"]


async def test_the_words_of_the_thread_itself_are_not_repeated(world):
    await world.said("now", "I moved to Lisbon.", "Nice!")
    assert await world.shown("I moved to Lisbon.", "Nice!", "How big is Lisbon?") == ("", "")


async def test_facts_that_found_no_room_are_shown_when_they_answer(world):
    await world.knows("Ada keeps bees in Porto.")
    await filled(world)
    stable, tail = await world.shown("How are the bees?")
    assert "bees" not in stable
    assert "- Ada keeps bees in Porto." in tail
    assert "bees" not in (await world.shown("What is 17 times 23?", thread="b"))[1]


async def test_nothing_is_in_both_parts(world):
    await world.knows("Ada keeps bees in Porto.")
    await world.said("one", "My bees are in Porto.")
    stable, tail = await world.shown("How are the bees in Porto?")
    assert "- Ada keeps bees in Porto." in stable
    assert "Ada keeps" not in tail
    assert tail.count("My bees are in Porto.") == 1


async def test_both_parts_stay_within_the_budget(make_world):
    world = make_world(memory_budget_tokens=1_000)
    await filled(world)
    for number in range(50):
        await world.said(
            f"t{number}", f"I saw bird {number} in the park " + "again and again " * 60
        )
    stable, tail = await world.shown("Which bird did I see in the park?")
    assert 800 < expected_tokens(stable) + expected_tokens(tail) <= 1_000


@pytest.mark.parametrize("mode", ["off", "rules"])
async def test_the_gate_keeps_the_tail_back(make_world, mode):
    world = make_world(gate=mode)
    await world.knows("Ada lives in Graz.")
    await world.said("one", "I moved to Lisbon with two cats.")
    stable, tail = await world.shown("How big is Lisbon?")
    assert "Graz" in stable
    assert ("Lisbon" in tail) is (mode == "off")
    assert "cats" in (await world.shown("Were my cats in Lisbon?", thread="b"))[1]


ANSWERS = [
    ("yes", True),
    ("No.", False),
    ("maybe", False),
    ("<think>no, or</think>\nYes.", True),
    ('{"answer": "yes"}', True),
    ('<think>{"answer": "no"}</think>```json\n[{"needed": "Yes"}]\n```', True),
    ('{"answer": "no"}', False),
    ("<think>yes, or yes</think> no", False),
    ("<thinking>yes", False),
    (RuntimeError("out of order"), False),
]


class Gate(Told):
    """An extractor whose model answers as it is told to, and keeps what it was sent."""

    def __init__(self, answer):
        self.answer, self.seen = answer, []

    async def model(self, messages):
        self.seen.extend(each.content for each in messages)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Message.assistant(self.answer)


@pytest.mark.parametrize(("answer", "opens"), ANSWERS)
async def test_a_model_decides_where_the_rules_keep_it_back(make_world, events, answer, opens):
    world = make_world(gate="model", extract_fn=Gate(answer))
    await world.said("one", "I moved to Lisbon with two cats.")
    assert ("Lisbon" in (await world.shown("How big is Lisbon?"))[1]) is opens
    assert ("memory.gate_failed" in events.names) is isinstance(answer, Exception)


@pytest.mark.parametrize(
    "text", ["How big is it? ", "里斯本有多大。", "ما حجم لشبونة؟ ", "\U0001f1f5"]
)
async def test_the_model_sees_both_ends_of_a_long_message(make_world, text):
    """In any script, the prompt is short."""
    gate = Gate("no")
    world = make_world(gate="model", extract_fn=gate)
    await world.said("one", "Lisbon is cold.")
    await world.shown(f"Lisbon first. {text * 500} Or last?")
    task, shown = gate.seen
    assert shown.startswith("Lisbon first.")
    assert shown.endswith("Or last?")
    assert len(shown.encode()) <= 1_005
    assert "one word" in task


STORIES = [
    ("Which antibiotics must I avoid?", "I am allergic to antibiotics with penicillin."),
    ("Welche Antibiotika darf ich nicht nehmen?", "Gegen Antibiotika mit Penicillin allergisch."),
    ("我不能用哪种抗生素？", "我对青霉素类抗生素过敏。"),
    ("避けるべき抗生物質は何ですか。", "私はペニシリン系の抗生物質にアレルギーがあります。"),
    ("ฉันต้องหลีกเลี่ยงยาปฏิชีวนะชนิดใด", "ฉันแพ้ยาปฏิชีวนะเพนิซิลลิน"),
    ("Какие антибиотики мне нельзя?", "У меня аллергия на антибиотики пенициллин."),
    ("ما المضادات الحيوية التي أتجنبها؟", "عندي حساسية من المضادات الحيوية."),
]
AROUND = {
    "a story": "Hello again. The weather was grey, and the boats stayed in all day. ",
    "code": "for number in range(10):\n    print(number * width, end=separator)\n",
    "log": "2026-05-01T10:00:00Z INFO worker=3 took=120ms status=ok ",
    "no spaces": "海边的天气很阴沉，船整天都没有出海。",
    "one word": "x" * 300,
}


@pytest.mark.parametrize(
    ("question", "fact", "around"),
    [
        (*STORIES[place % len(STORIES)], around)
        for place, around in enumerate([*AROUND, *AROUND, *AROUND])
    ],
)
async def test_a_question_is_found_wherever_it_stands_in_a_long_message(
    make_world, question, fact, around
):
    """A greeting, a story or code around a request does not hide what answers it."""
    world = make_world(memory_budget_tokens=300)
    await world.said("one", fact)
    for number in range(60):
        await world.said(f"t{number}", f"Page {number} is about sailing near island {number}.")
    text = AROUND[around] * (1 + 1_200 // len(AROUND[around]))
    for message in (f"{question}\n{text}", f"{text}\n{question}\n{text}", f"{text}\n{question}"):
        stable, tail = await world.shown(message)
        assert fact not in stable
        assert fact in tail, message[:50]


async def test_a_store_without_search_shows_what_fits(make_world, clock):
    world = make_world()
    plain = make_world(PlainStore(world.store))
    await plain.knows("Ada lives in Graz.")
    assert "- Ada lives in Graz." in (await plain.shown("Where do I live?"))[0]


async def test_one_text_has_both_parts_for_a_caller_with_one_place(world):
    await world.knows("Ada lives in Graz.")
    await world.said("one", "I moved to Lisbon.")
    block = await world.manager.prefetch("How big is Lisbon?", session_id="now")
    assert block.count("<memory>") == block.count("</memory>") == 1
    assert "- Ada lives in Graz." in block
    assert "- I moved to Lisbon." in block


async def test_a_plan_tells_the_place_of_each_line(make_world):
    world = make_world(memory_budget_tokens=400)
    await world.always("Be brief.")
    await world.knows(*MANY[:60])
    await world.said("one", "I moved to Lisbon.")
    plan = await world.manager.plan("How big is Lisbon?", explain=True)
    places = {(each.kind, each.outcome) for each in plan.lines}
    assert {
        ("override", "stable"),
        ("fact", "stable"),
        ("quote", "tail"),
        ("fact", "budget"),
    } <= places
    assert plan.tokens <= 400
    shown = [each for each in plan.lines if each.outcome in ("stable", "tail")]
    assert plan.items == len(shown)
    assert all(each.text in plan.block for each in shown)
    assert all(each.tokens == expected_tokens(f"{each.text}\n") for each in plan.lines)
    assert await world.store.list_keys(world.scope.blocks) == []


class Asked(StoreWrapper):
    """A store that notes the namespaces in which words are looked for."""

    def __init__(self, store):
        super().__init__(store)
        self.searched = []

    async def search(self, namespace, query=None, *args, **options):
        if query is not None:
            self.searched.append(namespace)
        return await super().search(namespace, query, *args, **options)


async def test_a_scope_without_facts_is_not_searched_for_them(make_world, clock):
    """Until there is one, also in the middle of a thread whose stable part knows none."""
    world = make_world(store=Asked(InMemoryStore(clock=clock)))
    await world.said("one", "I moved to Lisbon.")
    for _ in range(2):
        assert "I moved to Lisbon." in (await world.shown("How big is Lisbon?"))[1]
    assert world.scope.transcripts in world.store.searched
    assert world.scope.current not in world.store.searched
    await world.knows("Ada keeps bees in Lisbon.", origin="tool")
    assert "bees" in (await world.shown("How big is Lisbon?"))[1]
    await world.manager.delete("user:Ada keeps bees in Lisbon.")
    assert "bees" not in (await world.shown("How big is Lisbon?"))[1]


async def test_a_note_that_was_written_since_stands_in_the_tail(world):
    """The stable part does not change, although it has everything that was known before."""
    await world.session(1, "Ada planned a trip to Lyon.")
    before, _ = await world.shown("Hello.")
    await world.session(2, "Ada cancelled the trip to Lyon.")
    stable, tail = await world.shown("What about the trip to Lyon?")
    assert stable == before
    assert "cancelled" in tail
    assert "planned" not in tail
