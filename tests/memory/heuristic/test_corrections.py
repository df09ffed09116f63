from __future__ import annotations

import pytest

from locus_memory import AgentState, LLMMemoryManager
from locus_memory.memory.heuristic.extractor import HeuristicExtractor
from locus_memory.memory.models import Memory
from locus_memory.messages import Message

VIENNA = Memory("user", "home", "The user lives in Vienna.")
BOB = Memory("user", "name", "The user's name is Bob.")
MAYA = Memory("user", "family:sister:maya", "The user's sister is called Maya.")
ACME = Memory("user", "employer", "The user works at Acme.")
EMOJIS = Memory("feedback", "rule:use emojis", "Do not use emojis.")
SPACES = Memory("feedback", "rule:use spaces", "Always use spaces.")


def said(*texts):
    """Return messages of the user; those after ">" are the assistant's."""
    return [
        Message.assistant(text[1:]) if text.startswith(">") else Message.user(text)
        for text in texts
    ]


async def extract(*texts, memories=()):
    changes = await HeuristicExtractor().extract(said(*texts), memories)
    return [(each.op, each.key, each.content) for each in changes]


ORDERS = {
    "No, don't use mocks": ("rule:use mocks", "Do not use mocks."),
    "Nope, don't use mocks.": ("rule:use mocks", "Do not use mocks."),
    "Stop using bullet points": ("rule:use bullet points", "Do not use bullet points."),
    "Please stop apologising.": ("rule:apologise", "Do not apologise."),
    "stop being so verbose": ("rule:be so verbose", "Do not be so verbose."),
    "No more emojis, please!": ("rule:use emojis", "Do not use emojis."),
    "Enough with the bullet points": ("rule:use bullet points", "Do not use bullet points."),
    "No, use tabs instead of spaces": ("rule:use tabs", "Use tabs instead of spaces."),
    "No, use tabs, not spaces": ("rule:use tabs", "Use tabs instead of spaces."),
    "No, answer in German instead, please": ("rule:answer in german", "Answer in German."),
    "Could you please always answer in German?": (
        "rule:answer in german",
        "Always answer in German.",
    ),
    "Can you stop using emojis?": ("rule:use emojis", "Do not use emojis."),
    "You should never deploy on Fridays": (
        "rule:deploy on fridays",
        "Never deploy on Fridays.",
    ),
    "Always ask me before deploying": (
        "rule:ask them before deploying",
        "Always ask the user before deploying.",
    ),
    "Never ever use emojis": ("rule:use emojis", "Never use emojis."),
    "Please don't use tables in your answers.": (
        "rule:use tables in your answers",
        "Do not use tables in your answers.",
    ),
    "Keep your answers short": ("rule:keep answers short", "Keep answers short."),
    "From now on, no emojis": ("rule:no emojis", "From now on: no emojis."),
    "When I ask for code, always include tests.": (
        "rule:when they ask for code always include tests",
        "When the user asks for code, always include tests.",
    ),
    "I'd prefer that you never deploy on Fridays": (
        "rule:never deploy on fridays",
        "The user wants the agent to never deploy on Fridays.",
    ),
}


@pytest.mark.parametrize("text", ORDERS)
async def test_a_wish_for_the_agent(text):
    assert await extract(text) == [("add", *ORDERS[text])]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Don't use mocks.", "Do not use mocks."),
        ("No. Don't use mocks.", "Do not use mocks."),
        ("Please don't add comments to every line, please", "Do not add comments to every line."),
        ("Don't be so formal!", "Do not be so formal."),
        ("No emojis please", "Do not use emojis."),
        ("Please use tabs instead of spaces.", "Use tabs instead of spaces."),
        ("Use TypeScript instead.", "Use TypeScript."),
    ],
)
async def test_an_answer_to_the_assistant_corrects_it(text, content):
    assert [each[2] for each in await extract("Hm.", ">Here it is.", text)] == [content]


@pytest.mark.parametrize(
    "texts",
    [
        ["Don't use recursion."],
        [">Here.", "Write a sorting function. Don't use recursion."],
        [">Here.", "Don't use the blue one"],
        [">Here.", "Don't use that"],
        [">Here.", "Don't add this to the list"],
        [">Here.", "Don't worry about it"],
        [">Here.", "Don't call me later"],
        [">Here.", "Don't start yet"],
        [">Here.", "Don't forget the milk"],
        [">Here.", "Don't tell anyone"],
        [">Here.", "No more questions"],
        [">Here.", "Stop it"],
        [">Here.", "Stop using that word again"],
        ["Can you use emojis?"],
        ["Will you always love me?"],
        ["Always check the file I sent."],
        ["Never do that again."],
        ["Never use that function."],
        ["Always use it."],
        ["From now on they will pay."],
        ["In future, this may break."],
        ["Going forward, sales will rise."],
        ["Next time, bring cake."],
        ["If you want, add a test."],
        ["If you add salt, add pepper."],
        ["When I run this, check the log."],
    ],
)
async def test_what_is_no_lasting_wish(texts):
    assert await extract(*texts) == []


@pytest.mark.parametrize(
    "text",
    ["From now on, call me Ada", "Call me Ada from now on.", "Actually, call me Ada instead.",
     "You can call me Ada", "My name is Ada, not Bob", "It's Ada, not Bob.", "Not Bob, Ada!",
     "No, I meant Ada, not Bob"],
)  # fmt: skip
async def test_a_new_name_replaces_the_old_one(text):
    assert await extract(text, memories=[BOB, VIENNA]) == [
        ("update", "name", "The user's name is Ada.")
    ]


async def test_a_title_is_part_of_the_name():
    [change] = await extract("Please call me Dr. Smith.")
    assert change == ("add", "name", "The user's name is Dr. Smith.")


@pytest.mark.parametrize(
    "text",
    ["Actually I moved to Graz", "No, I live in Graz, not Vienna", "It's Graz, not Vienna",
     "We moved from Vienna to Graz last year", "I no longer live in Vienna, I live in Graz",
     "Sorry, not Vienna but Graz", "I'm now based in Graz."],
)  # fmt: skip
async def test_a_correction_of_the_home_updates_it(text):
    assert await extract(text, memories=[VIENNA, BOB]) == [
        ("update", "home", "The user lives in Graz.")
    ]


@pytest.mark.parametrize(
    "text",
    ["I am not in Vienna.", "I'm not Bob.", "We're not in Vienna.", "I was not in Vienna.",
     "My sister lives in Graz, not Vienna.", "Show me restaurants in Graz, not Vienna.",
     "Book me a flight to Graz, not Vienna.", "Let's go to Graz, not Vienna.",
     "Why Graz, not Vienna.", "Not Vienna, please.", "You are not Bob."],
)  # fmt: skip
async def test_a_clause_is_no_name_that_replaces_another(text):
    assert await extract(text, memories=[VIENNA, BOB]) == []


@pytest.mark.parametrize("text", ["My sister is called Mia, not Maya", "No, not Maya, Mia."])
async def test_a_correction_of_what_the_key_names_moves_it(text):
    assert sorted(await extract(text, memories=[MAYA, VIENNA])) == [
        ("add", "family:sister:mia", "The user's sister is called Mia."),
        ("delete", "family:sister:maya", ""),
    ]


async def test_a_correction_that_fits_two_facts_or_none_changes_nothing():
    twice = [VIENNA, Memory("user", "origin", "The user is from Vienna.")]
    assert await extract("It's Graz, not Vienna", memories=twice) == []
    assert await extract("It's Graz, not Vienna") == []
    assert await extract("Is it Graz, not Vienna?", memories=[VIENNA]) == []
    assert await extract("It's that, not Vienna", memories=[VIENNA]) == []
    assert await extract("Maybe it's Graz, not Vienna", memories=[VIENNA]) == []


async def test_an_order_replaces_its_opposite():
    known = [Memory("feedback", "rule:use mocks", "Always use mocks.")]
    assert await extract("No, don't use mocks", memories=known) == [
        ("update", "rule:use mocks", "Do not use mocks.")
    ]
    assert await extract("No, use tabs instead of spaces", memories=[SPACES]) == [
        ("delete", "rule:use spaces", ""),
        ("add", "rule:use tabs", "Use tabs instead of spaces."),
    ]


@pytest.mark.parametrize("text", ["You can use emojis again.", "Emojis are fine again"])
async def test_what_is_allowed_again_is_no_longer_forbidden(text):
    assert await extract(text, memories=[EMOJIS]) == [("delete", "rule:use emojis", "")]
    assert await extract(text) == []


@pytest.mark.parametrize(
    "text",
    ["From now on, answer in English.", "Always reply in English.",
     "Could you please always answer in English?"],
)  # fmt: skip
async def test_one_language_to_answer_in_replaces_another(text):
    german = Memory("feedback", "rule:answer in german", "Always answer in German.")
    french = Memory("feedback", "rule:answer in french", "Do not answer in French.")
    changes = await extract(text, memories=[german, french, EMOJIS])
    assert [(op, key) for op, key, _ in changes if op == "delete"] == [("delete", german.key)]
    assert len(changes) == 2
    changes = await extract("Stop answering in English.", memories=[german])
    assert [op for op, _, _ in changes] == ["add"]


async def test_a_name_is_taken_back():
    assert await extract("Please don't call me Bob", memories=[BOB]) == [("delete", "name", "")]
    assert await extract("Please don't call me Al", memories=[BOB]) == []


CONFIRMED = [
    ("So you want me to always answer in German, right?", "Yes, exactly.",
     "Always answer in German."),
    ("I'll use integration tests instead of mocks from now on.", "Perfect.",
     "Use integration tests instead of mocks from now on."),
    ("I used fixtures. Should I always use pytest fixtures?", "Yes please",
     "Always use pytest fixtures."),
    ("Should I use tabs?", "Yes, always", "Always use tabs."),
    ("I will answer in short lists.", "Perfect, do it like that always",
     "Always answer in short lists."),
    ("I will answer in short lists.", "Great. Keep doing that!",
     "Always answer in short lists."),
    ("Shall I not use mocks from now on?", "That's right.", "Do not use mocks from now on."),
    ("Would you like me to ask you before deploying from now on?", "Yes, that's right",
     "From now on: ask the user before deploying."),
    ("So you live in Graz, right?", "Yes.", "The user lives in Graz."),
    ("You live in Graz. Did I get that right?", "Exactly!", "The user lives in Graz."),
    ("Do you still play the piano?", "Yes!", "A hobby of the user: piano."),
    ("Are you vegan?", "Yes, I am.", "The user is vegan."),
    ("Is your name Ada?", "Correct.", "The user's name is Ada."),
    ("Got it: you are allergic to nuts.", "That's correct", "The user is allergic to nuts."),
]  # fmt: skip


@pytest.mark.parametrize(("proposal", "answer", "content"), CONFIRMED)
async def test_what_the_user_confirms_is_kept(proposal, answer, content):
    [change] = await HeuristicExtractor().extract(said("Hi.", f">{proposal}", answer), ())
    assert (change.op, change.content, change.sources) == ("add", content, (1, 2))


@pytest.mark.parametrize(
    ("proposal", "answer"),
    [
        ("Should I run the tests?", "Yes please"),
        ("Should I use tabs in this file?", "Yes, always"),
        ("You live in Graz.", "Exactly what I feared"),
        ("You live in Graz.", "Yes, but in Vienna most of the week"),
        ("You live in Graz.", "No."),
        ("You live in Graz.", "Thanks!"),
        ("You live in Graz, right?", "Perfect."),
        ("You might live in Graz, right?", "Yes."),
        ("Do you live in Graz or Vienna?", "Yes."),
        ("I live in the cloud.", "Exactly!"),
        ("My name is Claude.", "Yes, exactly."),
        ("If you live in Graz, take the tram.", "Yes, exactly."),
        ("You live in Graz. What is the weather like?", "Yes."),
        ("Is your password swordfish?", "Yes, exactly."),
        ("Your name is hunter2, and so is your password, right?", "Yes, exactly."),
        ("Do you like it?", "Yes!"),
    ],
)
async def test_what_a_yes_does_not_confirm(proposal, answer):
    assert await extract("Hi.", f">{proposal}", answer) == []


@pytest.mark.slow
async def test_only_the_message_just_before_is_confirmed():
    assert await extract(">You live in Graz, right?", "Hm.", "Yes, exactly.") == []
    tool = Message.user("Yes, exactly.")
    before = Message.system("You live in Graz, right?")
    assert await HeuristicExtractor().extract([before, tool], ()) == ()


async def test_a_manager_supersedes_what_is_corrected(tmp_path):
    turns = [
        "My name is Bob. I live in Vienna.",
        "It's Graz, not Vienna.",
        "From now on, call me Ada.",
        "No, don't use mocks",
    ]
    async with LLMMemoryManager(f"sqlite:{tmp_path / 'memory.db'}") as memory:
        messages = ()
        for text in turns:
            messages = (*messages, Message.user(text), Message.assistant("Noted."))
            await memory.on_session_end(
                AgentState(messages=messages, metadata={"thread_id": "talk"})
            )
        kept = {each.key: each.content async for each in memory.memories()}
        assert kept == {
            "name": "The user's name is Ada.",
            "home": "The user lives in Graz.",
            "rule:use mocks": "Do not use mocks.",
        }
        past = [each.content for each in await memory.history("home")]
    assert past == ["The user lives in Graz.", "The user lives in Vienna."]


@pytest.mark.parametrize(
    "text",
    [
        "I live in Graz, said nobody ever.",
        "I live in Graz no more.",
        "I live in Graz. No wait, Linz.",
        "I live in Graz. Oops, I meant Linz.",
        "My name is Bob. Just kidding, it's Ada.",
        "I live in Graz... in my dreams.",
        "I live in Graz (not really).",
        "I moved to Rome in 1990 and left in 1995.",
        "I moved to Rome but came back.",
        "I work with Bob.",
        "I'm currently working with Bob on the parser.",
        "I am vegan except on Sundays.",
        "Oh sure, I just LOVE working at 3 am.",
        "Repeat after me: my name is Bob.",
        "Repeat after me. My name is Bob.",
        "From now on, call me Your Majesty lol",
        "You should never use mocks, says Fowler.",
        "Never use mocks, said the speaker.",
        "Never use mocks, my boss says.",
        "I live in Bob's house.",
        "I moved to Anna's flat.",
        "I'm from Anna's town.",
        "I work for Bob's dad.",
        "My wife Anna's dog barks.",
        "My brother Tom's wife is ill.",
        "From: Bob\nMy name is Bob and I live in Paris.\nRegards, Bob",
    ],
)
async def test_nothing_is_kept_that_is_untrue_or_not_meant(text):
    assert await extract(text) == []


async def test_an_hour_of_the_morning_stays_as_it_is():
    assert await extract("I like running at 5 am.") == [
        ("add", "likes:running at 5 am", "The user likes running at 5 am.")
    ]


async def test_what_resembles_a_correction_or_a_doubt_is_still_kept():
    assert await extract("I work at Acme with Bob.") == [
        ("add", "employer", "The user works at Acme.")
    ]
    assert await extract("I work at Macy's in Graz.") == [
        ("add", "employer", "The user works at Macy's.")
    ]
    assert await extract("I live in Graz. No, wait for me.") == [
        ("add", "home", "The user lives in Graz.")
    ]
    assert await extract("I live in Graz. Joking aside, it rains.") != []
    assert await extract("I moved to Graz and left my job.") != []
    assert await extract("Never use mocks, as I said.") != []
    assert await extract("No more emojis.") == [("add", "rule:use emojis", "Do not use emojis.")]
