"""The gate: which section of memory a message needs, if any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.memory.models import Memory
from locus_memory.memory.planning.decision import NOTHING, Decision
from locus_memory.memory.planning.evidence import evidence_of, is_near
from locus_memory.memory.planning.gate import Gate, Sight
from locus_memory.memory.planning.names import Names
from locus_memory.memory.recall.found import Fact
from locus_memory.store.text import tokens

GATE = Gate()

WORDED = {
    "transcript": [
        "What were my exact words?",
        "What exactly did I say about the wall?",
        "what did you say exactly?",
        "Give me that verbatim.",
        "Word for word, please: what did I tell you about Tekla?",
        "Quote me.",
        "Show me the message where I mentioned the roof",
    ],
    "identity": [
        "What's my name?",
        "What\u2019s my name?",
        "whats my name",
        "WHO AM I?",
        "What do you know about me?",
        "Where do I live?",
        "where do i work",
        "How old am I?",
        "Do you know who I am?",
        "What languages do I speak?",
    ],
    "pinned": [
        "Do you remember my preference for tea?",
        "My usual, please.",
        "What's my favourite colour?",
        "what is my favorite dish",
        "What do I prefer, tea or coffee?",
        "What do I like on pizza?",
        "Which foods do I avoid?",
        "Am I allergic to nuts?",
        "When is my birthday?",
        "What books have I read this year?",
        "How many bikes do I own?",
    ],
    "episode": [
        "What did we discuss on Monday?",
        "The plan we talked about, please.",
        "Remember when I broke my leg?",
        "What did we decide about the roof?",
        "We agreed on Friday, right?",
        "Last time, which one was cheaper?",
        "What did we do last week?",
        "Can you sum up our last session?",
        "Where were we?",
        "Did I tell you about the new job?",
        "Let's pick up where we left off.",
        "What did you recommend for the bridge?",
    ],
    "none": [
        "What is 17 times 23?",
        "Hello!",
        "Thanks, that helped a lot.",
        "What time is it?",
        "Is it safe to eat raw eggs?",
        "How do I boil an egg so it doesn't crack?",
        "When was the last time a comet passed?",
        "Translate this word for word: la vie est belle",
        "How do I reverse a list?",
        "Who am I kidding",
        "How much do I tip in a taxi?",
        "Why is the sky blue?",
        "",
        "   ",
        "?",
    ],
}


@pytest.mark.parametrize(
    ("section", "text"), [(section, each) for section, texts in WORDED.items() for each in texts]
)
def test_the_wording_of_a_message_names_the_section(section: str, text: str) -> None:
    assert GATE.decide(text, first_in_thread=True).section == section


@pytest.mark.parametrize("text", ["Did it work?", "Is she coming?", "Can you fix that?"])
def test_a_pronoun_without_antecedent_points_at_an_episode(text: str) -> None:
    assert GATE.decide(text, first_in_thread=True) == Decision("episode", "an open pronoun")
    assert GATE.decide(text, first_in_thread=False) is NOTHING


@pytest.mark.parametrize(
    "text",
    [
        'Is "it" a pronoun?',
        "Did Ada fix it?",
        "My bike is broken, can you fix it?",
        "Did it work after all of those many long days that the others spent on the bridge?",
    ],
)
def test_a_pronoun_with_an_antecedent_points_at_nothing(text: str) -> None:
    assert GATE.decide(text, first_in_thread=True).reason != "an open pronoun"


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("How is bosun?", True),
        ("Bosun's food", True),
        ("A trip to new york city", True),
        ("What is new in the city?", False),
        ("Nothing of that sort", False),
    ],
)
def test_a_known_name_opens_the_pinned_facts(text: str, *, fires: bool) -> None:
    decision = GATE.decide(text, first_in_thread=False, entities=["Bosun", "New York City"])
    assert (decision == Decision("pinned", "a known name")) is fires


@pytest.mark.parametrize(
    ("fact", "text", "known"),
    [
        ("The user's cat is called Bosun.", "Feed bosun", True),
        ("Ada lives in Graz.", "Weather in Graz?", True),
        ("Ada lives in Graz.", "Call ada", True),
        ("Prefers tea.", "She prefers coffee", False),
        ("Meets on Tuesdays in May.", "Is it Tuesday, May 3?", False),
        ("Speaks English.", "Translate into English", False),
        ("The user met Ada Lovelace.", "Ask Lovelace", True),
        ("\u5979\u4f4f\u5728\u7ef4\u4e5f\u7eb3", "\u4f60\u597d", False),
    ],
)
def test_names_of_facts(fact: str, text: str, *, known: bool) -> None:
    assert Names.of([], [fact]).are_in(text) is known


FACTS = [
    "The user is allergic to hazelnuts.",
    "The user plays the viola in an orchestra.",
    "The footbridge is built of timber.",
    *(f"The user noted the number {n} in a list." for n in range(60)),
]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Suggest a cake with hazelnuts.", "a rare word of a fact"),
        ("hazelnut praline recipe", "a rare word of a fact"),
        ("Vertr\u00e4gt man hazelnuts?", "a rare word of a fact"),
        ("Is viola or cello louder in an orchestra?", "two words of a fact"),
        ("What is the plural of hazelnut?", None),
        ("Note this number in a list.", None),
        ("Tell me a joke.", None),
    ],
)
def test_words_of_facts_are_evidence(text: str, reason: str | None) -> None:
    assert evidence_of(text, FACTS, len(FACTS)) == reason


GERMAN = [
    "Die Nutzerin ist m\u00fcde nach der Arbeit.",
    "Der Nutzer wohnt in Graz.",
    *(f"Der Nutzer hat die Zahl {n} auf einer Liste." for n in range(60)),
]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Was ist 17 mal 23?", None),
        ("Ist das m\u00fcde?", "a rare word of a fact"),
        ("Bist du m\u00fcde von der Arbeit?", "two words of a fact"),
    ],
)
def test_one_german_word_counts_once(text: str, reason: str | None) -> None:
    facts = [
        Fact(f"user:{n}", Memory("user", str(n), fact), stems=frozenset(tokens(fact)))
        for n, fact in enumerate(GERMAN)
    ]
    assert evidence_of(text, facts, len(facts)) == reason


async def test_evidence_opens_the_gate_where_no_rule_fires():
    async def look():
        return Sight(evidence="a rare word of a fact")

    open_gate, closed = Gate(), Gate(evidence=False)
    text = "Recommend a restaurant in Graz."
    decided = await open_gate.choose(text, look, first_in_thread=True)
    assert decided == Decision("pinned", "a rare word of a fact")
    assert await closed.choose(text, look, first_in_thread=True) is NOTHING
    assert (await open_gate.choose("Who am I?", look, first_in_thread=True)).section == "identity"


async def test_a_gate_that_is_off_never_looks():
    async def look():
        raise AssertionError

    decision = await Gate("off").choose("What is 2 + 2?", look, first_in_thread=True)
    assert decision.section == "pinned"


async def test_a_model_is_asked_only_where_no_rule_fires():
    asked = []

    async def look():
        return Sight()

    async def ask():
        asked.append(1)
        return Decision("episode", "the model") if len(asked) == 1 else None

    gate = Gate("llm")
    assert (
        await gate.choose("Who am I?", look, first_in_thread=True, ask=ask)
    ).section == "identity"
    assert asked == []
    assert (
        await gate.choose("The roof?", look, first_in_thread=True, ask=ask)
    ).section == "episode"
    assert await gate.choose("The roof?", look, first_in_thread=True, ask=ask) is NOTHING
    assert await Gate().choose("The roof?", look, first_in_thread=True, ask=ask) is NOTHING
    assert len(asked) == 2


@pytest.mark.slow
@given(
    text=st.text(st.characters())
    | st.lists(st.sampled_from(["who", "am", "i", "it's", "<>", "\ud800", "\x00", "last"])).map(
        " ".join
    ),
    first=st.booleans(),
    entities=st.lists(st.text(max_size=20), max_size=5),
)
def test_the_rules_never_raise(text: str, *, first: bool, entities: list[str]) -> None:
    whole = [each.encode("utf-8", "replace").decode() for each in entities]
    assert GATE.decide(text, first_in_thread=first, entities=whole).reason
    assert evidence_of(text, [text, *whole], 3) != ""


@pytest.mark.slow
@given(
    text=st.lists(st.sampled_from(["did i", "what do we do", "it", "Name7", "a" * 300]), min_size=9)
    .map(" ".join)
    .filter(lambda text: len(text) > 400),
    middle=st.text(),
    first=st.booleans(),
)
def test_the_rules_read_the_two_ends_of_a_long_message(text: str, middle: str, *, first: bool):
    """So that a message of any length takes the same time."""
    names = Names.of([f"Name{n}" for n in range(100)])
    longer = f"{text[:200]} {middle * 50} {text[-200:]}"
    decided = GATE.decide(text, first_in_thread=first, entities=names)
    assert GATE.decide(longer, first_in_thread=first, entities=names) == decided


@pytest.mark.parametrize(
    ("text", "nearness", "near"),
    [
        ("Propose a dinner for tonight.", (0.2, 0.55), True),
        ("Propose a dinner for tonight.", (0.2, 0.45), False),
        ("How are eggs boiled?", (0.55, None), False),
        ("How are eggs boiled?", (0.65, None), True),
        ("How are eggs boiled?", (None, None), False),
        ("How are eggs boiled?", (), False),
    ],
)
def test_a_near_vector_is_evidence(text: str, nearness: tuple[float | None, ...], *, near: bool):
    assert is_near(text, nearness) is near


WORDS = ["his", "hi", "being", "be", "hazelnuts", "hazelnut", "Graz", "walks", "in", "caf\u00e9"]


@pytest.mark.slow
@given(
    message=st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join),
    texts=st.lists(st.lists(st.sampled_from(WORDS), min_size=1).map(" ".join), max_size=12),
)
def test_known_stems_change_no_evidence(message: str, texts: list[str]) -> None:
    stems = [frozenset(tokens(text)) for text in texts]
    facts = [
        Fact(f"user:{n}", Memory("user", str(n), text), stems=stems[n])
        for n, text in enumerate(texts)
    ]
    for total in (len(texts), 50):
        assert evidence_of(message, facts, total) == evidence_of(message, texts, total)
