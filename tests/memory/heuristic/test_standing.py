from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.memory.heuristic.extractor import HeuristicExtractor
from locus_memory.memory.models import Memory
from locus_memory.messages import Message


async def extract(*texts, memories=()):
    messages = [text if isinstance(text, Message) else Message.user(text) for text in texts]
    return [each.content for each in await HeuristicExtractor().extract(messages, memories)]


WRONG = {
    "suppositions": [
        "If I lived in Paris, I'd be happy.",
        "I like tea if it's cold.",
        "Unless I live in Rome, I pay taxes.",
        "Once I live in Rome, I'll learn Italian.",
        "I live in Rome, assuming the contract holds.",
        "In this scenario, I work at Acme.",
        "For example, I live in Berlin.",
        "I like tea or coffee, depending.",
    ],
    "other people's words": [
        "My brother says he is allergic to nuts.",
        "My mum thinks I'm allergic to cats.",
        "According to my mum, I am allergic to cats.",
        "My doctor believes I'm allergic to nuts.",
        "Bob: I live in Rome. I like tea.",
        "[12:01] Bob: I live in Rome. I like tea.",
        "User: I live in Rome",
        'The character says "I live in Rome".',
    ],
    "denials": [
        "I'm not allergic to nuts.",
        "I never said I like tea.",
        "I don't think I like tea.",
        "It's not true that I live in Paris.",
        "I lied, I live in Rome.",
    ],
    "jokes": [
        "I'm allergic to Mondays.",
        "I have an allergy to Mondays.",
        "I have a severe allergy.",
        "I have a mild allergy to it.",
        "I'm allergic to tests lol",
        "I like spiders, just kidding.",
        "I like spiders. Just kidding!",
        "I live in Rome. Not!",
        "I'm from Mars \U0001f602",
    ],
    "the past": [
        "I used to play the piano.",
        "As a kid, I loved trains, I like trains as a child.",
        "Back then I worked at Siemens.",
        "My dog Rex died last year.",
    ],
    "roles": [
        "You are a pirate. My name is Jack.",
        "Act as a customer: my name is Bob.",
        "Let's role-play. I'm Bob and I live in Rome.",
        "Let's play a game. My name is Zorg.",
        "My character is allergic to nuts. I'm allergic to nuts in the game.",
    ],
    "pasted texts": [
        "Here is an email: Dear Ann, my name is Bob. I live in Paris.",
        "Fix the grammar: I is live in Paris. My name is Bob.",
        "Check this text. My name is Bob and I live in Paris.",
        "Dear Ann,\nMy name is Bob. I live in Rome.\nKind regards,\nBob",
        "Subject: Hello\n\nI live in Rome.",
        "def f():\n    # my name is Bob\n    return 1",
    ],
    "what was said elsewhere": [
        "I like that too.",
        "I like my new one.",
        "I prefer the second one.",
        "I prefer option B.",
        "I like Anna's idea.",
        "I love escaping to that world.",
        "We decided to use this money for food.",
        "We have decided to move in together.",
        "We have settled on two hundred.",
        "I decided that was enough.",
        "We agreed on the price.",
        "I'm working on a fix.",
        "I'm studying the logs.",
        "Remember that he likes tea.",
        "Remember that this is important.",
        "I like activities such as climbing.",
        "I like to think that I know a lot.",
    ],
    "moments without a day": [
        "My deadline is tomorrow.",
        "The deadline is Friday.",
        "The report is due next week.",
        "The launch is on Monday.",
        "My birthday is in 3 days.",
        "We decided to meet tomorrow.",
        "My goal is to finish the report today.",
        "Remember that the meeting is tomorrow.",
    ],
    "other meanings": [
        "My job is hard.",
        "My job is killing me.",
        "My job is stable but not exciting.",
        "I work for a company.",
        "I work at Night.",
        "I'm mostly vegetarian.",
        "I've lived in Rome.",
        "Remember my words.",
        "Remember my first day?",
        "I'm a bit of a teacher.",
        "The docs are in Rome.",
        "I keep my money in Switzerland.",
        "Call me ASAP",
        "I'm American.",
        "I'm Home!",
        "This is Great",
        "I moved to Slack.",
        "We moved to Postgres last year.",
        "I was born in March.",
        "I got engaged in a discussion.",
        "I'm blind to that.",
        "I'm deaf to criticism.",
        "I can't eat any more.",
        "I don't drink and drive.",
        "I never drink on Mondays.",
        "I'm learning German Shepherd training.",
        "My favorite time is now.",
        "My name is too long for the field.",
        "My name is misspelled.",
        "Mine is my favourite car.",
    ],
}


@pytest.mark.parametrize("text", [text for texts in WRONG.values() for text in texts])
async def test_what_is_no_statement_that_stands_alone(text):
    assert await extract(text) == []


async def test_what_the_assistant_says_of_the_user_is_not_kept():
    said = Message.assistant("You live in Graz. You like tea. Your name is Ada.")
    assert await extract("Hi.", said, "I see.") == []


async def test_a_game_of_roles_ends():
    texts = ["Let's role-play, you are a waiter.", "I'm allergic to nuts."]
    assert await extract(*texts) == []
    assert await extract(*texts, "Stop the role-play.", "I'm allergic to fish.") == [
        "The user is allergic to fish."
    ]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("I love music, too.", "The user likes music."),
        ("I enjoy taking photos sometimes.", "The user likes taking photos."),
        ("I love games that test me.", "The user likes games that test them."),
        ("I love books about people and their pets.",
         "The user likes books about people and their pets."),
        ("Note: my name is Ada.", "The user's name is Ada."),
        ("You are a hero! I live in Graz.", "The user lives in Graz."),
        ("The deadline is Friday, March 6.", "The deadline is Friday, March 6."),
        ("I've lived in Graz for ten years.", "The user lives in Graz."),
        ("Remember I'm allergic to bees.", "The user is allergic to bees."),
        ("Please remember my birthday is on 3 May.", "The user's birthday is 3 May."),
        ("I work as a nurse in Leeds.", "The user works as a nurse in Leeds."),
        ("I'm a teacher by training but I work as a baker.", "The user works as a baker."),
        ("I prefer short answers.", "The user prefers short answers."),
        ("I am Vegan.", "The user is Vegan."),
        ("I joined Siemens.", "The user works at Siemens."),
        ("I live near Graz.", "The user lives near Graz."),
        ("I can't have walnuts any more.", "The user does not eat or drink walnuts."),
        ("My job title is data engineer.", "The user's job: data engineer."),
        ("Never deploy on Fridays.", "Never deploy on Fridays."),
    ],
)  # fmt: skip
async def test_what_stands_alone_is_kept(text, content):
    assert await extract(text) == [content]


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), st.text(max_size=200)), max_size=5))
@settings(deadline=None, max_examples=150)
async def test_no_text_raises(turns):
    messages = [
        Message.model_construct(role=role, content=text)
        for users, text in turns
        for role in ["user" if users else "assistant"]
    ]
    known = [Memory("user", "home", "The user lives in Vienna.")]
    for change in await HeuristicExtractor().extract(messages, known):
        assert change.key.strip()


PIECES = ["I ", "'", '"', "`", "```", "my ", "not ", ", ", "> ", "\n", "Dear A,\n", "I like ", "a-",
          "and I ", "http://", "ha", "{\n", "A: ", "no, ", "\ud800", "\x00", "the ", "from now on ",
          "use x instead of ", "\u0130", "? ", "call me "]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
async def test_a_huge_message_is_read_in_part(piece):
    huge = (piece * 200_000)[:200_000]
    read = [Message.model_construct(role="user", content=text) for text in (huge, huge[:4001])]
    both = [await HeuristicExtractor().extract([each], ()) for each in read]
    assert both[0] == both[1]
    answer = Message.model_construct(role="assistant", content=huge)
    await HeuristicExtractor().extract([answer, Message.user("Yes, exactly.")], ())
