from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.memory.heuristic.extractor import HeuristicExtractor
from locus_memory.memory.inject import inject
from locus_memory.memory.models import Extractor, Memory, MemoryChange
from locus_memory.memory.secrets.detection import looks_secret
from locus_memory.messages import Message, ToolResult

BERLIN = Memory("user", "home", "The user lives in Berlin.")


async def extract(*texts, memories=()):
    messages = [text if isinstance(text, Message) else Message.user(text) for text in texts]
    return await HeuristicExtractor().extract(messages, memories)


FACTS = {
    "My name is Ada Lovelace.": ("user", "name", "The user's name is Ada Lovelace."),
    "my name is ada": ("user", "name", "The user's name is ada."),
    "Please call me Bob": ("user", "name", "The user's name is Bob."),
    "Hi, I'm Ada!": ("user", "name", "The user's name is Ada."),
    "I\u2019m 34 years old": ("user", "age", "The user is 34 years old."),
    "My birthday is on May 5": ("user", "birthday", "The user's birthday is May 5."),
    "I moved to New York City last year.": ("user", "home", "The user lives in New York City."),
    "Well, we live in Berlin these days": ("user", "home", "The user lives in Berlin."),
    "I'm originally from Sweden": ("user", "origin", "The user is from Sweden."),
    "I work as a data engineer": ("user", "job", "The user works as a data engineer."),
    "I work at Siemens Energy, you know": ("user", "employer", "The user works at Siemens Energy."),
    "My wife is called Maria": ("user", "family:wife", "The user's wife is called Maria."),
    "My brother Tom cooks": ("user", "family:brother:tom", "The user's brother is called Tom."),
    "We adopted a puppy named Ned": ("user", "pet:ned", "The user has a puppy called Ned."),
    "We have three children": ("user", "count:children", "The user has three children."),
    "I'm allergic to peanuts.": ("user", "allergy:peanuts", "The user is allergic to peanuts."),
    "I have a nut allergy": ("user", "allergy:nut", "The user has a nut allergy."),
    "I have an allergy to bees.": ("user", "allergy:bees", "The user is allergic to bees."),
    "I have a really severe allergy to hazelnuts!": (
        "user",
        "allergy:hazelnuts",
        "The user is allergic to hazelnuts.",
    ),
    "I have a severe nut allergy": ("user", "allergy:nut", "The user has a nut allergy."),
    "I'm a strict vegan": ("user", "diet", "The user is vegan."),
    "I don't eat pork": ("user", "diet:no pork", "The user does not eat or drink pork."),
    "I like tea": ("user", "likes:tea", "The user likes tea."),
    "I love to read": ("user", "likes:read", "The user likes to read."),
    "I can't stand mornings": ("user", "likes:mornings", "The user dislikes mornings."),
    "I prefer dark mode over light mode": (
        "user",
        "likes:dark mode",
        "The user prefers dark mode over light mode.",
    ),
    "My favorite color is blue": ("user", "favourite:colour", "The user's favourite color: blue."),
    "I'm learning Spanish": ("user", "learns:spanish", "The user is learning Spanish."),
    "I play the piano": ("user", "hobby:piano", "A hobby of the user: piano."),
    "Remember that the spare key is under the mat.": (
        "user",
        "note:spare key is under the mat",
        "The user asks to remember: the spare key is under the mat.",
    ),
    "Can you remember that my car is blue?": (
        "user",
        "note:car is blue",
        "The user asks to remember: their car is blue.",
    ),
    "remember that I live in Berlin": ("user", "home", "The user lives in Berlin."),
    "Please always answer in German.": (
        "feedback",
        "rule:answer in german",
        "Always answer in German.",
    ),
    "never deploy on Fridays": ("feedback", "rule:deploy on fridays", "Never deploy on Fridays."),
    "Don't ever use emojis": ("feedback", "rule:use emojis", "Never use emojis."),
    "From now on, keep it short": ("feedback", "rule:keep it short", "From now on: keep it short."),
    "We decided to use Postgres": (
        "project",
        "decision:use postgres",
        "The user decided: use Postgres.",
    ),
    "The deadline is March 3.": ("project", "deadline", "The deadline is March 3."),
    "The deadline for the API is Friday, March 6": (
        "project",
        "deadline for the api",
        "The deadline for the API is Friday, March 6.",
    ),
    "I'm working on a compiler": (
        "project",
        "working on:compiler",
        "The user is working on a compiler.",
    ),
    "My goal is to run a marathon": ("project", "goal", "The user's goal: run a marathon."),
    "The docs are at https://example.com/d?x=1.": (
        "reference",
        "where:docs",
        "The docs: https://example.com/d?x=1.",
    ),
    "Our logs live in /var/log/app": ("reference", "where:logs", "The user's logs: /var/log/app."),
    "We track bugs in Linear": ("reference", "where:bugs", "Bugs: Linear."),
}


@pytest.mark.parametrize("text", FACTS)
async def test_a_fact_and_its_slot(text):
    [change] = await extract("Hm.", text)
    assert (change.op, change.sources) == ("add", (1,))
    assert (change.type, change.key, change.content) == FACTS[text]
    assert 0 < change.importance <= 1


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I'm allergic to nuts, which is annoying.", ["nuts"]),
        ("I am allergic to bees, unfortunately.", ["bees"]),
        ("I'm allergic to nuts, by the way.", ["nuts"]),
        ("I'm allergic to nuts, especially walnuts.", ["nuts", "walnuts"]),
        ("I'm allergic to nuts, sadly, and to milk.", ["nuts", "milk"]),
        ("I've got an allergy to nuts, and to milk as well.", ["nuts", "milk"]),
        ("I have a severe allergy to nuts and jelly, honestly.", ["nuts", "jelly"]),
        ("I'm allergic to thatch, whey and etchings.", ["thatch", "whey", "etchings"]),
        ("I'm allergic to nuts, whatever I say.", ["nuts"]),
    ],
)
async def test_an_aside_in_a_list_is_no_thing_of_it(said, kept):
    contents = [change.content for change in await extract(said)]
    assert contents == [f"The user is allergic to {thing}." for thing in kept]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I'm allergic to nuts, except almonds and cashews.", ["allergy:nuts"]),
        ("I'm allergic to cats, not dogs.", ["allergy:cats"]),
        ("I don't eat meat, except fish.", ["diet:no meat"]),
        ("I don't eat meat, only fish and eggs.", ["diet:no meat"]),
        ("I don't eat meat, apart from chicken.", ["diet:no meat"]),
        ("I don't eat pork, beef is fine.", ["diet:no pork"]),
    ],
)
async def test_an_exception_of_a_list_is_no_thing_of_it(said, kept):
    assert [change.key for change in await extract(said)] == kept


async def test_several_facts_of_one_sentence():
    changes = await extract("My name is Ada and I live in Berlin, but I'm from Sweden.")
    assert {change.key for change in changes} == {"name", "home", "origin"}
    changes = await extract("I'm allergic to penicillin, peanuts and cats.")
    assert [change.key for change in changes] == [
        "allergy:penicillin",
        "allergy:peanuts",
        "allergy:cats",
    ]
    changes = await extract("I speak German, French and English.")
    assert [change.key for change in changes] == [
        "speaks:german",
        "speaks:french",
        "speaks:english",
    ]
    changes = await extract("I work as a nurse at Charity Hospital.")
    assert {change.key for change in changes} == {"job", "employer"}


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Berlin?",
        "If I lived in Paris, I would be happy",
        "Maybe I live in a simulation, I live in Berlin",
        "Imagine I live in Paris",
        "I used to live in Rome",
        "I don't live in Rome",
        "I live in fear",
        "I moved to Python",
        "I love it",
        "I like how you wrote that",
        "I like your idea",
        "Call me later",
        "Call me when you can",
        "I'm tired.",
        "I'm working on it",
        "He said my name is Bob",
        "My friend said: I live in Paris.",
        "Bob told me: my name is Ada",
        "The customer says, I live in Paris",
        "> I live in Berlin",
        "```\nI live in Berlin\n```",
        "`I live in Berlin`",
        'She shouted "oh dear, I live in Berlin now" at me',
        "Translate this to French: My name is Bob. I live in Paris.",
        "Please summarise the following text:\nI live in Paris.\nI like tea.",
        "Write a story about a dog. My name is Bob.",
        "Remember when we met?",
        "Remember that day we met",
        "Remember that block in the finals?",
        "Never mind",
        "Never give up!",
        "Always nice to see you",
        "forget it",
        "Ich wohne in Berlin",
        "I joined Bob for lunch.",
        "I joined Ana for a quick coffee",
        "I have a dog called Rex but he died.",
        "I live in Rome is what I told him.",
        "Write an email: My name is Bob.",
        "x" * 5000,
        "",
    ],
)
async def test_what_is_no_statement_of_the_user(text):
    assert await extract(text) == ()


async def test_only_users_are_heard():
    said = "My name is Ada."
    tool = Message.tool(ToolResult(tool_call_id="1", name="t", content=said))
    assert await extract(Message.system(said), Message.assistant(said), tool) == ()
    injected = inject([], f"<memory>\n{said}\n</memory>")
    assert await extract(*injected) == ()
    assert await extract(injected[0].model_copy(update={"role": "user"})) == ()


@pytest.mark.parametrize("lead", ["As I said, ", "I've told you: ", "I already said, "])
async def test_what_users_say_of_what_they_said(lead):
    [change] = await extract(f"{lead}I live in Berlin.")
    assert change.key == "home"


async def test_only_the_beginning_of_a_long_message_is_read():
    filler = "Well, so it goes. " * 220
    cut = f"I like tea. {filler}I live in New York City in the north. Bye."
    assert cut[:4000].endswith("I live in New York City in t")
    [change] = await extract(cut)
    assert change.key == "likes:tea"
    whole = await extract(f"I like tea. {filler}I live in Rome.")
    assert [change.key for change in whole] == ["likes:tea", "home"]


@pytest.mark.slow
async def test_the_loop_runs_on_while_much_is_read():
    turns = 0

    async def count():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await extract(*["I like tea. I live in Berlin. So it goes."] * 200)
    counting.cancel()
    assert turns > 50


async def test_a_changed_fact_replaces_the_old_one():
    [change] = await extract("I moved to Paris last week.", memories=[BERLIN])
    assert (change.op, change.key, change.content) == ("update", "home", "The user lives in Paris.")
    changes = await extract("I live in Berlin.", "We live in Paris now.")
    assert [(change.op, change.content, change.sources) for change in changes] == [
        ("add", "The user lives in Paris.", (1,))
    ]


async def test_what_is_remembered_is_no_news():
    assert await extract("I live in Berlin!", memories=[BERLIN]) == ()
    assert await extract("I moved to Rome.", "I live in Berlin.", memories=[BERLIN]) == ()


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("I don't live in Berlin any more.", BERLIN),
        ("I no longer live in Berlin", BERLIN),
        ("We no longer live in Berlin.", BERLIN),
        ("We don't live in Berlin any more.", BERLIN),
        ("I'm no longer pregnant.", Memory("user", "health:pregnant", "The user is pregnant.")),
        ("I'm not married any more.", Memory("user", "marital status", "The user is married.")),
        (
            "My favourite colour is no longer blue.",
            Memory("user", "favourite:colour", "The user's favourite colour: blue."),
        ),
        ("Forget that I live in Berlin.", BERLIN),
        ("please forget my home", BERLIN),
        ("I quit my job!", Memory("user", "job", "The user works as a nurse.")),
        ("I no longer work at Siemens", Memory("user", "employer", "The user works at Siemens.")),
        ("I don't like tea any more", Memory("user", "likes:tea", "The user likes tea.")),
        ("I'm no longer allergic to cats", Memory("user", "allergy:cats", "Allergic to cats.")),
        ("I'm not vegan anymore", Memory("user", "diet", "The user is vegan.")),
        ("forget that my car is blue", Memory("user", "note:car is blue", "Blue car.")),
        ("I'm not a nurse any more.", Memory("user", "job", "The user is a nurse.")),
        ("I'm no longer a nurse", Memory("user", "job", "The user works as a nurse.")),
        ("I am not a nurse!", Memory("user", "job", "The user is a nurse.")),
        ("I'm not a vegetarian any longer", Memory("user", "diet", "The user is vegetarian.")),
        ("Forget what I said about tea.", Memory("user", "likes:tea", "The user likes tea.")),
        ("Please forget everything about my tea", Memory("user", "likes:tea", "Likes tea.")),
    ],
)
async def test_a_fact_is_taken_back(text, memory):
    assert await extract(text, memories=[memory]) == (
        MemoryChange(op="delete", type=memory.type, key=memory.key, sources=(0,)),
    )
    assert await extract(text) == ()


async def test_only_what_is_remembered_is_taken_back():
    assert await extract("I don't live in Rome any more", memories=[BERLIN]) == ()
    nurse = Memory("user", "job", "The user is a nurse.")
    for text in ("I'm not a doctor", "I'm not a nurse, am I?", "I'm not an urse any more"):
        assert await extract(text, memories=[nurse]) == ()
    assert await extract("Forget about tea.", memories=[Memory("user", "likes:tea", "Tea.")]) == ()
    assert await extract("I like tea.", "Forget that I like tea.") == ()
    [change] = await extract(
        "I don't live in Berlin any more.", "I live in Rome.", memories=[BERLIN]
    )
    assert (change.op, change.content) == ("update", "The user lives in Rome.")


@pytest.mark.parametrize(
    "texts",
    [
        ["My password is hunter2"],
        ["Remember that my password is hunter2."],
        ["Remember that the PIN is 4711 please"],
        ["remember: sk-abcDEF0123456789abcd"],
        ["Remember that my card is 4111 1111 1111 1111"],
        ["My favourite password is swordfish"],
        ["The database is at postgresql://ada:hunter2@db/app"],
        ["Note: my password is", "remember: hunter2"],
        ["Remember that my password is\nremember: hunter2"],
        ["Remember: sk-abcDEF01\n23456789abcd"],
        [Message.assistant("What is your password?"), "Remember that it's hunter"],
        [Message.assistant(f"{'Well. ' * 5000}Your password?"), "I live in Hunter"],
        [Message.assistant("Please give me the API key."), "My name is abc."],
        ["My cat is called Fluffy1999, which is also my password."],
        ["My name is hunter2 and that is my password."],
        ["My dog's name is Rex. That is my password everywhere."],
        ["I like hunter2, it is my password.", "I use it everywhere."],
        ["Always log in with hunter2."],
        ["Use hunter2 to log in from now on."],
        ["Please remember that my login is ada and hunter2."],
        ["Please remember that their login is ada and hunter2."],
        ["Remember: passphrase correct horse battery staple."],
        ["Remember that the secret is swordfish."],
        ["Remember that swordfish unlocks the laptop."],
        ["Remember that the wifi is called Foo and hunter2 opens it."],
        ["Remember the credentials.", "Remember that it's ada and hunter2."],
        ["I sign in every day. My name is hunter2."],
        ["Remember: hunter2."],
    ],
)
async def test_no_secret_is_kept(texts):
    assert await extract(*texts) == ()


async def test_beside_a_secret_the_rest_is_kept():
    changes = await extract(
        "My name is Ada. I like tea. My password is hunter2. I like hunter3. I live in Berlin."
    )
    assert [change.key for change in changes] == ["name", "home"]


def test_it_is_an_extractor():
    extractor = HeuristicExtractor()
    assert isinstance(extractor, Extractor)
    assert extractor.name == "heuristic"


SENTENCES = st.one_of(
    st.sampled_from([*FACTS, "My password is hunter2.", "forget that I like tea", "Is it?", "```"]),
    st.text(max_size=60),
)


@pytest.mark.slow
@given(
    st.lists(SENTENCES, max_size=8).map(" ".join),
    st.lists(st.sampled_from(list(FACTS)), max_size=4),
)
@settings(deadline=None, max_examples=150)
async def test_any_text_gives_clean_changes(text, before):
    memories = [
        Memory(change.type, change.key, change.content) for change in await extract(*before)
    ]
    changes = await extract(text, memories=memories)
    known = {(memory.type, memory.key) for memory in memories}
    assert len({(change.type, change.key) for change in changes}) == len(changes)
    for change in changes:
        assert (change.op == "add") == ((change.type, change.key) not in known)
        assert len(change.content) <= 300
        assert len(change.key) <= 120
        assert not looks_secret(change.content)
