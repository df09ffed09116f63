"""Nothing is merged, dropped or evicted because it resembles another, or because there is much."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory._internal.neutral import neutralise
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.ledger.likeness import folded
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryChange, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.store.wrappers import StoreWrapper
from locus_memory.testing import FakeClock, FakeModel
from tests.memory.sessions.conftest import Distiller as Answering

USER = MemoryType.USER
LONG = "We sat in the garden for the whole afternoon, and talked about whatever came to our minds."

# ruff: noqa: RUF001 - the languages are their own

PAIRS = [
    ("The user takes the pill before lunch.", "The user takes the pill after lunch."),
    ("The user drinks tea with sugar.", "The user drinks tea without sugar."),
    ("The user must work on Fridays.", "The user can work on Fridays."),
    ("The user likes tea.", "The user does not like tea."),
    ("The user likes tea.", "The user doesn't like tea."),
    ("The user never eats meat.", "The user always eats meat."),
    ("The user eats meat.", "The user hardly eats meat."),
    ("The user moved from Oslo to Rome.", "The user moved to Oslo from Rome."),
    ("Ana likes Bob.", "Bob likes Ana."),
    ("The user has few friends.", "The user has a few friends."),
    ("The user is cold.", "The user has a cold."),
    ("The user is a teacher.", "The user was a teacher."),
    ("The user will be a teacher.", "The user would be a teacher."),
    ("The user has 2 cats.", "The user has 3 cats."),
    ("Page when the load is > 5.", "Page when the load is < 5."),
    ("The limit is 5.", "The limit is -5."),
    ("The shop opens at 7 am.", "The shop opens at 7 pm."),
    ("The user knows C.", "The user knows C++."),
    ("The user is over 18.", "The user is under 18."),
    ("The door is on the left.", "The door is on the right."),
    ("The user sleeps on the train.", "The user sleeps off the train."),
    ("The user can swim.", "The user cannot swim."),
    ("The user may be late.", "The user may not be late."),
    ("The user lends Bob money.", "The user borrows Bob's money."),
    ("All of the team agree.", "Some of the team agree."),
    ("The user prefers tea to coffee.", "The user prefers coffee to tea."),
    ("The user is happy.", "The user is unhappy."),
    ("The deadline is 4 May.", "The deadline is 5 May."),
    ("The user isst gern Fisch.", "The user isst nicht gern Fisch."),
    ("Trinkt Kaffee mit Milch.", "Trinkt Kaffee ohne Milch."),
    ("Il aime le poisson.", "Il n'aime pas le poisson."),
    ("Le gusta el pescado.", "No le gusta el pescado."),
    ("Gli piace il pesce.", "Non gli piace il pesce."),
    ("Gosta de peixe.", "Não gosta de peixe."),
    ("Houdt van vis.", "Houdt niet van vis."),
    ("Любит рыбу.", "Не любит рыбу."),
    ("Lubi ryby.", "Nie lubi ryb."),
    ("喜欢吃鱼。", "不喜欢吃鱼。"),
    ("魚が好きです。", "魚が好きではありません。"),
    ("생선을 좋아한다.", "생선을 안 좋아한다."),
    ("يحب السمك.", "لا يحب السمك."),
    ("उसे मछली पसंद है।", "उसे मछली पसंद नहीं है।"),
    ("Balık sever.", "Balık sevmez."),
    ("Ser glad ut.", "Ser inte glad ut."),
    ("Nimmt die Tablette vor dem Essen.", "Nimmt die Tablette nach dem Essen."),
    ("Muss freitags arbeiten.", "Kann freitags arbeiten."),
    ("Prend le comprimé avant le repas.", "Prend le comprimé après le repas."),
    ("Boit son thé avec du sucre.", "Boit son thé sans sucre."),
    ("Toma la pastilla antes de comer.", "Toma la pastilla después de comer."),
    ("Bebe el té con azúcar.", "Bebe el té sin azúcar."),
    ("Prende la pillola prima di cena.", "Prende la pillola dopo cena."),
    ("Deve lavorare il venerdì.", "Può lavorare il venerdì."),
    ("Toma o comprimido antes do almoço.", "Toma o comprimido depois do almoço."),
    ("Bebe o chá com açúcar.", "Bebe o chá sem açúcar."),
    ("Neemt de pil voor het eten.", "Neemt de pil na het eten."),
    ("Moet op vrijdag werken.", "Mag op vrijdag werken."),
    ("Bierze lek przed obiadem.", "Bierze lek po obiedzie."),
    ("Pije herbatę z cukrem.", "Pije herbatę bez cukru."),
    ("Пьёт таблетку до обеда.", "Пьёт таблетку после обеда."),
    ("Пьёт чай с сахаром.", "Пьёт чай без сахара."),
    ("Hapı yemekten önce alır.", "Hapı yemekten sonra alır."),
    ("Çayı şekerli içer.", "Çayı şekersiz içer."),
    ("饭前吃药。", "饭后吃药。"),
    ("周五必须上班。", "周五可以上班。"),
    ("食前に薬を飲む。", "食後に薬を飲む。"),
    ("砂糖を入れて飲む。", "砂糖を入れずに飲む。"),
    ("식사 전에 약을 먹는다.", "식사 후에 약을 먹는다."),
    ("설탕을 넣어 마신다.", "설탕을 안 넣어 마신다."),
    ("يأخذ الدواء قبل الأكل.", "يأخذ الدواء بعد الأكل."),
    ("يشرب الشاي بسكر.", "يشرب الشاي بلا سكر."),
    ("दवा खाने से पहले लेता है।", "दवा खाने के बाद लेता है।"),
    ("चाय चीनी के साथ पीता है।", "चाय चीनी के बिना पीता है।"),
    ("Tar medicinen före maten.", "Tar medicinen efter maten."),
    ("П'є чай із цукром.", "П'є чай без цукру."),
    ("Παίρνει το χάπι πριν το φαγητό.", "Παίρνει το χάπι μετά το φαγητό."),
    ("אוהב דגים.", "לא אוהב דגים."),
    ("Thích ăn cá.", "Không thích ăn cá."),
    ("ชอบกินปลา", "ไม่ชอบกินปลา"),
    ("I like tea", "She likes tea"),
    ("Negation is written !debug.", "Negation is written debug."),
    ("The project uses .NET.", "The project uses net."),
    ("Is 6' tall", 'Is 6" tall'),
    ("likes green tea.", "likes green tea"),
    ("the end", "end"),
    ("A\u00f1o nuevo", "Ano nuevo"),
    ("\u30cf\u30cf", "\u30d1\u30d1"),
    ("lives in Graz", "is living in Graz"),
    ("\U0001f600", "\U0001f622"),
    ("Oui.", "Non."),
    ("\U0001f44d", "\U0001f44e"),
]
CONTENTS = list(dict.fromkeys(content for pair in PAIRS for content in pair))


def facts(contents=CONTENTS):
    return [Memory(USER, f"k{number:03}", content) for number, content in enumerate(contents)]


def changes(contents):
    return [
        MemoryChange(op="add", type=USER, key=m.key, content=m.content) for m in facts(contents)
    ]


class Teller:
    """An extractor that tells all contents: those of one list in each session."""

    name = "teller"

    def __init__(self, *answers):
        self.answers = list(answers)

    async def extract(self, messages, memories):
        return self.answers.pop(0) if self.answers else []


class Distiller(Teller):
    async def distill(self, messages, memories):
        notes = (NoteDraft("They talked in the garden."),)
        return Distillate(changes=tuple(await self.extract(messages, memories)), notes=notes)


def said(text, thread="t"):
    return AgentState(messages=(Message.user(text),), metadata={"thread_id": thread})


async def save(store, clock):
    async with LLMMemoryManager(store, clock=clock) as manager:
        await manager.save(facts())


async def save_one_by_one(store, clock):
    async with LLMMemoryManager(store, clock=clock, max_memories=1) as manager:
        for memory in facts():
            assert len(await manager.save(memory)) == 1


async def extract(store, clock):
    halves = [changes(CONTENTS)[0::2], changes(CONTENTS)[1::2]]
    async with LLMMemoryManager(store, extract_fn=Teller(*halves), clock=clock) as manager:
        for thread in "ab":
            await manager.on_session_end(said(LONG, thread))


async def distill(store, clock):
    halves = [changes(CONTENTS)[0::2], changes(CONTENTS)[1::2]]
    options = {"extract_fn": Distiller(*halves), "clock": clock, "extract_mode": "session_end"}
    async with LLMMemoryManager(store, **options) as manager:
        for thread in "ab":
            await manager.on_session_end(said(LONG, thread))
            await manager.sync_now()


async def ingest(store, clock):
    options = {"extract_fn": Distiller(changes(CONTENTS)), "extract_mode": "session_end"}
    async with LLMMemoryManager(store, clock=clock, **options) as manager:
        await manager.ingest("agent", "c", [{"user": LONG, "assistant": "Yes."}])


async def import_facts(store, clock):
    told = [
        {"id": f"{number:032x}", "content": content, "created_ts": number + 1}
        for number, content in enumerate(CONTENTS)
    ]
    async with LLMMemoryManager(store, clock=clock) as manager:
        await manager.import_facts(told)


WAYS = [save, save_one_by_one, extract, distill, ingest, import_facts]


async def known(store):
    async with LLMMemoryManager(store) as manager:
        return [memory.content async for memory in manager.memories()]


@pytest.fixture
def place(clock):
    return InMemoryStore(clock=clock)


@pytest.mark.parametrize("way", WAYS)
async def test_what_differs_by_one_word_stays_two(place, clock, way):
    """On every way of writing, and after years of consolidations by rules."""
    await way(place, clock)
    assert sorted(await known(place)) == sorted(CONTENTS)
    async with LLMMemoryManager(place, clock=clock, extract_mode="session_end") as manager:
        for _ in range(3):
            clock.advance(400 * 86_400)
            await manager.consolidate()
    assert sorted(await known(place)) == sorted(CONTENTS)


async def test_notes_that_differ_stay(place, clock):
    """Forty a session, in an order that sets the two of a pair into different sessions."""
    mixed = CONTENTS[0::2] + CONTENTS[1::2]
    parts = [mixed[start : start + 40] for start in range(0, len(mixed), 40)]
    answers = [Distillate(notes=tuple(map(NoteDraft, part))) for part in parts]
    options = {"extract_fn": Answering(*answers), "clock": clock, "extract_mode": "session_end"}
    async with LLMMemoryManager(place, **options) as manager:
        for thread in range(len(parts)):
            await manager.on_session_end(said(LONG, f"t{thread}"))
            await manager.sync_now()
        await manager.consolidate()
        notes = [note.text for each in await manager.episodes() for note in each.notes]
        assert sorted(notes) == sorted(map(neutralise, CONTENTS))


async def test_a_sentence_without_a_key_replaces_no_other(place, clock):
    """Those that no rule has a slot for, such as a home."""
    told = [each for each in CONTENTS if not each.startswith(("The user", "The deadline"))]
    async with LLMMemoryManager(place, clock=clock) as manager:
        names = [await manager.remember(content) for content in told]
    assert len(set(names)) == len(names) > 40
    assert sorted(await known(place)) == sorted(told)


async def test_a_small_model_takes_no_fact_for_another(place, clock):
    """Its answers are lines, without keys."""
    told = [
        each
        for each in CONTENTS
        if each.isascii() and len(each.split()) > 3 and "<" not in each and ">" not in each
    ]
    answers = ["\n".join(told[start : start + 10]) for start in range(0, len(told), 10)]
    extractor = LLMExtractor(FakeModel(answers), answer="lines")
    async with LLMMemoryManager(place, extract_fn=extractor, clock=clock) as manager:
        for number in range(len(answers)):
            await manager.on_session_end(said(LONG, f"t{number}"))
    assert sorted(await known(place)) == sorted(told)


async def test_sessions_of_the_same_summary_stay_two(place, clock):
    options = {"extract_fn": Distiller(), "clock": clock, "extract_mode": "session_end"}
    async with LLMMemoryManager(place, **options) as manager:
        for thread in "abc":
            await manager.on_session_end(said(LONG, thread))
            await manager.sync_now()
        await manager.consolidate()
        assert {each.session_id for each in await manager.episodes()} == set("abc")


async def test_five_hundred_facts_are_all_known_and_found(place, clock):
    contents = [f"The harbour berth of {word}{number} is free." for number in range(125)
                for word in ("gull", "tern", "heron", "crane")]  # fmt: skip
    async with LLMMemoryManager(place, clock=clock) as manager:
        await manager.save(facts(contents))
        assert sorted(await known(place)) == sorted(contents)
        assert len(await manager.retrieve(limit=1_000)) == 50
        for content in contents[::7]:
            assert content == (await manager.search(content, 1))[0].content
            assert content == (await manager.retrieve(content, 1))[0].content


class Reading(StoreWrapper):
    """A store that counts the items that it returns."""

    read = 0

    async def scan(self, *args, **options):
        found = await super().scan(*args, **options)
        self.read += len(found)
        return found

    async def search(self, *args, **options):
        found = await super().search(*args, **options)
        self.read += len(found)
        return found


@pytest.mark.parametrize("content", ["The crane of pier 77 is new.", "The gull3 berth is free."])
async def test_saving_one_reads_no_more_where_there_are_many(place, clock, content):
    store = Reading(place)
    async with LLMMemoryManager(store, clock=clock) as manager:
        await manager.save(facts([f"The gull{number} berth is free." for number in range(400)]))
        store.read = 0
        await manager.save(Memory(USER, "other", content))
    assert store.read <= 8


async def test_a_search_that_fails_loses_nothing(clock, failing_store, events):
    async with LLMMemoryManager(failing_store, clock=clock) as manager:
        await manager.save(Memory(USER, "a", "The gull is grey."))
        failing_store.failing = {"search"}
        await manager.save([Memory(USER, "b", "the gull is grey."), Memory(USER, "c", "No gull.")])
    assert await known(failing_store) == ["The gull is grey.", "No gull."]
    (event,) = events.of("memory.duplicate_dropped")
    assert (event.attributes["key"], event.attributes["duplicate_of"]) == ("b", "a")


async def test_a_fact_that_was_not_written_swallows_no_other(clock):
    """The first is older than the deletion of its key; the second says the same."""
    said_before = {"id": "0" * 32, "content": "Ada sails.", "key": "a", "created_ts": 1}
    async with LLMMemoryManager(InMemoryStore(clock=clock), clock=clock) as manager:
        await manager.save(Memory(USER, "a", "Ada rows."))
        await manager.delete("user:a")
        other = {"id": "1" * 32, "content": "Ada sails.", "key": "b"}
        await manager.import_facts([said_before, other])
        assert [memory.key async for memory in manager.memories()] == ["b"]


WORDS = [
    "tea",
    "Tea",
    "no",
    "not",
    "with",
    "\u7121",
    "caf\u00e9",
    "cafe",
    "5",
    "-5",
    "?",
    "stra\u00dfe",
]
lines = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12),
).filter(str.strip)
same = st.sampled_from([str, str.upper, str.swapcase, lambda text: f" {text}\t", lambda text: text])


@settings(deadline=None, max_examples=60)
@given(
    told=st.lists(st.tuples(lines, same).map(lambda pair: pair[1](pair[0])), max_size=25),
    at_once=st.integers(1, 12),
    cap=st.integers(1, 60),
)
def test_all_that_differs_is_there(told, at_once, cap):
    """Whatever is saved under distinct keys, and in whatever portions."""

    async def run():
        async with LLMMemoryManager(
            InMemoryStore(), max_memories=cap, clock=FakeClock()
        ) as manager:
            for start in range(0, len(told), at_once):
                await manager.save(facts(told)[start : start + at_once])
            current = [memory.content async for memory in manager.memories()]
            assert {folded(each) for each in current} == {folded(each) for each in told}
            listed = await manager.retrieve(limit=100)
            assert len(listed) == min(cap, len(current))

    asyncio.run(run())


@pytest.mark.parametrize("name", ["agent_id", "run_id"])
async def test_the_same_words_of_another_agent_or_run_are_another_memory(name):
    told = [Memory(USER, f"k{number}", "Tea.", {name: number % 2}) for number in range(4)]
    async with LLMMemoryManager("memory") as manager:
        written = await manager.save([*told, Memory(USER, "k", "tea.")])
    assert [each.key for each in written] == ["k0", "k1", "k"]
