"""What is taken of a user's sentences without a model, and what is left alone."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.memory.inject import inject
from locus_memory.memory.models import Memory
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.messages import Message, ToolResult
from tests.memory.phrases.everyday import CLAIMLESS, TRUE


def messages_of(said):
    """The messages of a text, or of several; those of the assistant begin with "A: "."""
    texts = (said,) if isinstance(said, (str, Message)) else said
    return [
        each
        if isinstance(each, Message)
        else Message.assistant(each[3:])
        if each.startswith("A: ")
        else Message.user(each)
        for each in texts
    ]


async def extract(*said, memories=()):
    extractor, messages = HeuristicExtractor(), messages_of(said)
    changes = await extractor.extract(messages, memories)
    # Whoever asks before the memories are read misses nothing.
    assert extractor.may_state(messages) or not changes
    return changes


CLAIMS = [(kind, said) for kind, listed in CLAIMLESS.items() for said in listed]


@pytest.mark.parametrize("kind", CLAIMLESS)
async def test_everyday_messages_are_no_claims(kind):
    made = {said: await extract(*messages_of(said)) for said in CLAIMLESS[kind]}
    assert {said: changes for said, changes in made.items() if changes} == {}


@pytest.mark.parametrize("before", ["Hm.", "A: Hello!"])
async def test_short_true_statements_are_kept(before):
    kept = 0
    for text, key in TRUE.items():
        changes = await extract(before, text)
        assert {change.key for change in changes} <= {key}
        assert all(change.op == "add" and change.sources == (1,) for change in changes)
        kept += len(changes)
    assert kept >= 40


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My name is Ada and I live in Berlin.", {"name": "Ada", "home": "Berlin"}),
        ("I'm Swiss. I live in Bern.", {}),
        ("Thanks! I live in Bern.", {"home": "Bern"}),
        ("My name is Ada. I'm 34.", {"name": "Ada", "age": "34"}),
        ("I'm 34. I'm vegan. I live in Bern.", {}),
        ("I work as a nurse at General Hospital.", {"job": "nurse", "employer": "General"}),
        ("I'm allergic to milk, nuts and penicillin.", {
            "allergy:milk": "milk", "allergy:nuts": "nuts", "allergy:penicillin": "penicillin",
        }),
        ("I'm allergic to milk and drama.", {}),
        ("I have a severe nut allergy.", {"allergy:nut": "a nut allergy"}),
        ("I live in Bern. Book a train to Graz.", {"home": "Bern"}),
        ("I'm allergic to nuts. Please suggest a cake!", {"allergy:nuts": "nuts"}),
        ("Book a train to Graz. I live in Bern.", {}),
        ("I live in Bern. Find the mistake.", {}),
        ("I live in Bern. Tell me that in French.", {}),
        ("I live near St. Gallen.", {"home": "near St. Gallen"}),
        ("Please remember this. I'm vegan.", {"diet": "vegan"}),
        ("I'm Zo\u00eb.", {}),
        ("I LIVE IN FEAR OF SPIDERS", {}),
        ("I live in the US.", {"home": "the US"}),
        ("I work at IBM.", {"employer": "IBM"}),
        ("I work at Slack.", {"employer": "Slack"}),
        ("I live in Slack.", {}),
        ("My favourite book is Emma.", {"favourite:book": "Emma"}),
        ("My favourite book is overdue.", {}),
        ("my name is \u738b\u4f1f", {"name": "\u738b\u4f1f"}),
        ("My pronouns are they/them.", {"pronouns": "they/them"}),
        ("My time zone is Europe/Vienna.", {"time zone": "Europe/Vienna"}),
        ("Please don't use emojis any more.", {"rule:use emojis": "Do not use emojis any more."}),
        ("Always answer politely, please.", {"rule:answer politely": "Always"}),
        ("Ich wohne in Berlin.", {}),
        ("x" * 5000, {}),
        ("", {}),
    ],
)  # fmt: skip
async def test_hard_statements(text, facts):
    changes = await extract(text)
    assert {change.key for change in changes} == set(facts)
    assert all(facts[change.key] in change.content for change in changes)


async def test_a_role_is_given_in_any_message_of_the_thread():
    assert await extract("I live in Rome.", "A: Nice.", "Pretend to be a pirate.") == ()
    assert [each.key for each in await extract("I live in Rome.", "Go on.")] == ["home"]


async def test_only_users_are_heard():
    said = "My name is Ada."
    tool = Message.tool(ToolResult(tool_call_id="1", name="t", content=said))
    assert await extract(Message.system(said), Message.assistant(said), tool) == ()
    injected = inject([], f"<memory>\n{said}\n</memory>")
    assert await extract(*injected) == ()
    assert await extract(injected[0].model_copy(update={"role": "user"})) == ()
    system = Message.system("You are a helpful assistant.")
    assert [each.key for each in await extract(system, said)] == ["name"]


async def test_a_later_statement_supersedes():
    home = Memory("user", "home", "The user lives in Rome.")
    [change] = await extract("I live in Graz.", "We live in Linz.", memories=[home])
    assert (change.op, change.content, change.sources) == (
        "update",
        "The user lives in Linz.",
        (1,),
    )
    [again] = await extract("I live in rome.", "I live in Rome!", memories=[home])
    assert (again.op, again.content) == ("update", home.content)


async def test_there_is_one_language_to_answer_in():
    rule = Memory("feedback", "rule:answer in german", "Always answer in German.")
    changes = await extract("Always reply in English.", memories=[rule])
    assert [(each.op, each.key) for each in changes] == [
        ("delete", "rule:answer in german"),
        ("add", "rule:reply in english"),
    ]
    never = Memory("feedback", "rule:answer in latin", "Never answer in Latin.")
    assert len(await extract("Always reply in English.", memories=[never])) == 1


@pytest.mark.parametrize(
    "said",
    [
        ("My name is Hunter. It is my password.",),
        ("My name is Hunter.", "That is my password everywhere."),
        ("A: What is your password?", "My name is Bluebird."),
        ("A: Please give me the API key.", "I live in Rome."),
        ("Remember that my password is hunter2.",),
        ("Remember that the PIN is 4711 please",),
        ("remember: sk-abcDEF0123456789abcd",),
        ("Merke dir, dass mein Passwort hunter2 ist.",),
        ("Remember that swordfish unlocks the laptop.",),
        ("Note: my password is", "remember: hunter2 it is"),
        ("Remember: hunter2.",),
    ],
)
async def test_no_secret_is_kept(said):
    assert await extract(*said) == ()


async def test_the_loop_runs_on_while_much_is_read():
    turns = 0

    async def count():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await extract(*["I live in Berlin."] * 200)
    counting.cancel()
    assert turns >= 40


@pytest.mark.parametrize(
    "text",
    [
        "write a " * 50_000,
        "I am allergic to " + "nuts, " * 50_000,
        "I live in " + "A " * 150,
        "my name is " + "A" * 300,
        "Remember that " + "that " * 50_000,
        "".join(["I am not ", "not, it is " * 30]),
        "No, " * 90 + "not A",
        "a: " * 50_000,
        "forget " * 50_000,
        "覚えて" * 50_000,
        "So, " * 99 + "\n",
        "A" * 80 + ", not " * 60,
    ],
)
async def test_hostile_texts_take_bounded_time(text):
    known = [Memory("user", "x", text[:1000])]
    await extract("Hm.", memories=known)
    begin = time.process_time()
    await extract(text, f"A: {text}", "Yes.", memories=known)
    assert time.process_time() - begin < 0.25


TEXTS = st.one_of(
    st.sampled_from([*TRUE, "I don't live in Rome.", "Forget that I like tea", "No.", "Yes."]),
    st.text(max_size=60),
    st.text("IiAam'no t,.?:live in R\n", max_size=60),
)


@given(
    st.lists(st.one_of(TEXTS, TEXTS.map("A: {}".format)), max_size=5),
    st.lists(st.sampled_from(list(TRUE)), max_size=3),
)
@settings(deadline=None)
async def test_any_text_gives_clean_changes(said, before):
    memories = [Memory(each.type, each.key, each.content) for each in await extract(*before)]
    changes = await extract(*said, memories=memories)
    known = {(memory.type, memory.key) for memory in memories}
    assert len({(each.type, each.key) for each in changes}) == len(changes)
    for each in changes:
        assert (each.op == "add") == ((each.type, each.key) not in known)
        assert all(0 <= place < len(said) for place in each.sources)
        assert find_secret(each.content) is None


@pytest.mark.parametrize(
    ("said", "is_read"),
    [
        (["Convert this list to Go."], False),
        (["Thanks!"], False),
        (["Yes."], False),
        (["Ich wohne in Graz."], False),
        (["A: You live in Graz, right?", "Yes."], True),
        (["I live in Graz."], True),
        (["I don't live in Rome."], True),
        (["Graz, not Rome."], True),
        (["Forget everything about me."], True),
        (["Bitte merk dir: der Code der Garage h\u00e4ngt am Brett."], True),
    ],
)
def test_what_may_change_a_memory_is_known_before_any_is_read(said, is_read):
    assert HeuristicExtractor().may_state(messages_of(said)) is is_read


_PARTS = st.sampled_from(
    [
        *TRUE,
        *(text for _, text in CLAIMS if isinstance(text, str)),
        "Yes.",
        "No.",
        "Graz, not Rome.",
        "I don't live in Rome.",
        "I no longer work at Siemens.",
        "Forget my home.",
        "A: You live in Rome?",
        "Forget what I said about Siemens.",
        "A: Is your name Ada?",
        "It's May 4, not May 3.",
    ]
)
_KNOWN = [
    Memory("user", "home", "The user lives in Rome."),
    Memory("user", "employer", "The user works at Siemens."),
    Memory("user", "birthday", "The user's birthday is May 3."),
    Memory("feedback", "language", "Always answer in German."),
]


@given(st.lists(_PARTS, min_size=1, max_size=4), st.sets(st.sampled_from(range(4))))
def test_whatever_is_known_nothing_that_is_said_is_passed(said, known):
    asyncio.run(extract(*said, memories=[_KNOWN[place] for place in known]))
