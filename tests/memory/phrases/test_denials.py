"""Denials, confirmations, corrections, and requests to remember and to forget."""

from __future__ import annotations

import pytest

from locus_memory.memory.models import Memory, MemoryChange
from tests.memory.phrases.test_table import extract


def user(key, content):
    return Memory("user", key, content)


HOME = user("home", "The user lives in Rome.")
NAME = user("name", "The user's name is Lea.")
DIET = user("diet", "The user is vegetarian.")
BIRTHDAY = user("birthday", "The user's birthday is May 3.")
TEA = user("likes:tea", "The user prefers tea to coffee.")
JOB = user("job", "The user works as a nurse.")
EMOJIS = Memory("feedback", "rule:use emojis", "Never use emojis.")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I don't live in Rome", HOME),
        ("I don\u2019t live in Rome any more.", HOME),
        ("We no longer live in Rome.", HOME),
        ("I do not live in Rome anymore!", HOME),
        ("My name is not Lea", NAME),
        ("My name isn't Lea.", NAME),
        ("I'm not vegetarian any more.", DIET),
        ("I am no longer a vegetarian.", DIET),
        ("I'm not diabetic.", user("health:diabetic", "The user is diabetic.")),
        ("I no longer work at Siemens.", user("employer", "The user works at Siemens.")),
        ("I'm not a nurse.", JOB),
        ("I'm not allergic to nuts.", user("allergy:nuts", "The user is allergic to nuts.")),
        ("I'm not married any more.", user("marital status", "The user is married.")),
        ("I don't speak Dutch.", user("speaks:dutch", "The user speaks Dutch.")),
        ("Forget what I said about emojis.", EMOJIS),
        ("Forget that I live in Rome.", HOME),
        ("Please forget what I said about Rome.", HOME),
        ("Forget my home.", HOME),
        ("Forget everything I told you about tea.", TEA),
        ("forget that my car is blue", user("note:car is blue", "Blue.")),
    ],
)
async def test_a_denied_fact_is_retired(text, fact):
    others = [user("dog", "The user's dog is called Rex.")]
    assert await extract(text, memories=[fact, *others]) == (
        MemoryChange(op="delete", type=fact.type, key=fact.key, sources=(0,)),
    )
    assert await extract(text, memories=others) == ()


@pytest.mark.parametrize(
    "text",
    [
        "I don't live in Graz.",
        "My name is not Max.",
        "I'm not a doctor.",
        "I don't live in Rome, do I?",
        "He doesn't live in Rome.",
        "Forget it.",
        "Forget about it.",
        "Forget everything.",
        "Forget what I said.",
        "Forget what I said about Romeo.",
        "If I don't live in Rome, where do I live?",
        "I'm not vegetarian. Just kidding.",
    ],
)
async def test_what_denies_nothing_known(text):
    assert await extract(text, memories=[HOME, NAME, DIET, JOB]) == ()


async def test_everything_shown_is_forgotten():
    known = [HOME, TEA, EMOJIS]
    changes = await extract("Forget everything about me.", memories=known)
    assert {(each.op, each.key) for each in changes} == {("delete", each.key) for each in known}


@pytest.mark.parametrize(
    "text",
    ["I no longer live in Rome, I live in Graz.", "I don't live in Rome. I live in Graz."],
)
async def test_a_denial_and_what_is_true_instead(text):
    [change] = await extract(text, memories=[HOME])
    assert (change.op, change.content) == ("update", "The user lives in Graz.")


@pytest.mark.parametrize(
    ("text", "fact", "now"),
    [
        ("It's May 4, not May 3.", BIRTHDAY, "The user's birthday is May 4."),
        ("No, it's May 4, not May 3!", BIRTHDAY, "The user's birthday is May 4."),
        ("My birthday is not May 3, it's May 4", BIRTHDAY, "The user's birthday is May 4."),
        ("My birthday isn't May 3 but May 4.", BIRTHDAY, None),
        ("My name is not Lea, it's Lia.", NAME, "The user's name is Lia."),
        ("Graz, not Rome.", HOME, "The user lives in Graz."),
        ("I live in Graz, not in Rome.", HOME, "The user lives in Graz."),
        ("It's pasta, not Rome.", HOME, None),
        ("Graz, not Berlin.", HOME, None),
        ("It's Graz, not Roma.", HOME, None),
    ],
)
async def test_a_correction_changes_the_fact_with_the_old_value(text, fact, now):
    changes = await extract(text, memories=[fact, DIET])
    assert [(each.op, each.key, each.content) for each in changes] == (
        [] if now is None else [("update", fact.key, now)]
    )


async def test_a_correction_of_what_is_part_of_a_key():
    rex = user("pet:rex", "The user's dog is called Rex.")
    changes = await extract("It's Max, not Rex.", memories=[rex])
    assert [(each.op, each.key) for each in changes] == [("delete", "pet:rex"), ("add", "pet:max")]


async def test_a_correction_of_two_facts_is_left_alone():
    known = [HOME, user("employer", "The user works at Rome Tours.")]
    assert await extract("Graz, not Rome.", memories=known) == ()


@pytest.mark.parametrize(
    "yes", ["Yes.", "yes", "Yes, exactly.", "That's right.", "Correct!", "Yes, I do."]
)
@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        ("You live in Vienna, right?", "The user lives in Vienna."),
        ("So, you live in Vienna.", "The user lives in Vienna."),
        ("Got it. You live in Vienna. Right?", "The user lives in Vienna."),
        ("Do you live in Vienna?", "The user lives in Vienna."),
        ("You're vegetarian, aren't you?", "The user is vegetarian."),
        ("Is your name Ada?", "The user's name is Ada."),
        ("Your name is Ada, correct?", "The user's name is Ada."),
        ("Should I always answer in German?", "Always answer in German."),
    ],
)
async def test_a_statement_is_confirmed(asked, fact, yes):
    [change] = await extract("Hello", f"A: {asked}", yes)
    assert (change.content, change.sources) == (fact, (1, 2))


async def test_a_statement_is_denied_or_corrected():
    said = "A: You live in Rome, right?"
    for no in ("No.", "No, I don't.", "That's wrong."):
        [change] = await extract(said, no, memories=[HOME])
        assert (change.op, change.key) == ("delete", "home")
        assert await extract(said, no) == ()
    [change] = await extract(said, "No, I live in Graz.", memories=[HOME])
    assert (change.op, change.content) == ("update", "The user lives in Graz.")


REQUESTS = {
    "Remember that the spare key is under the mat.": "the spare key is under the mat",
    "Please remember: my car is blue.": "my car is blue",
    "Please note: the plumber comes at 10:30": "the plumber comes at 10:30",
    "Note to self: water the plants": "water the plants",
    "Hi! Remember that the bus leaves at 5 p.m. on Friday. Thanks!": (
        "the bus leaves at 5 p.m. on Friday"
    ),
    "Don't forget that my sister arrives on Friday!": "my sister arrives on Friday",
    "Keep in mind that we use tabs": "we use tabs",
    "remember my car is blue": "my car is blue",
    "Merke dir, dass ich gegen N\u00fcsse allergisch bin.": "ich gegen N\u00fcsse allergisch bin",
    "Bitte merk dir: mein Auto ist blau": "mein Auto ist blau",
    "Souviens-toi que j'habite \u00e0 Lyon.": "j'habite \u00e0 Lyon",
    "N'oublie pas que je suis v\u00e9g\u00e9tarien.": "je suis v\u00e9g\u00e9tarien",
    "Recuerda que vivo en Sevilla.": "vivo en Sevilla",
    "Por favor, recuerda: mi coche es azul": "mi coche es azul",
    "Ricordati che abito a Torino.": "abito a Torino",
    "Lembre-se de que moro em Lisboa.": "moro em Lisboa",
    "Onthoud dat ik in Utrecht woon.": "ik in Utrecht woon",
    "Запомни, что я живу в Москве.": "я живу в Москве",
    "Пожалуйста, запомните: моя машина синяя": "моя машина синяя",
    "تذكر أن سيارتي زرقاء": "سيارتي زرقاء",
    "تذكر أنني أعيش في القاهرة": "أنني أعيش في القاهرة",
    "याद रखो कि मैं दिल्ली में रहता हूँ": "मैं दिल्ली में रहता हूँ",
    "请记住我住在上海。": "我住在上海",
    "记住\uff1a我对花生过敏": "我对花生过敏",
    "私は東京に住んでいることを覚えておいて": "私は東京に住んでいる",
    "覚えておいてください。猫の名前はタマです。": "猫の名前はタマです",
}


@pytest.mark.parametrize("text", REQUESTS)
async def test_a_request_to_remember_is_kept_as_it_is(text):
    [change] = await extract(text)
    assert change.type == "user"
    assert change.content == f"The user asks to remember: {REQUESTS[text]}."
    assert change.key.startswith("note:")
    assert len(change.key) > len("note:")
    [again] = await extract(text, memories=[Memory("user", change.key, change.content)])
    assert (again.op, again.key, again.content) == ("update", change.key, change.content)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Remember that I live in Vienna.", "home"),
        ("Remember: I'm vegetarian", "diet"),
        ("Please remember to always answer in English.", "rule:answer in english"),
        ("Remember I'm allergic to nuts.", "allergy:nuts"),
    ],
)
async def test_of_a_request_that_the_table_has_its_fact_is_kept(text, key):
    [change] = await extract(text)
    assert change.key == key
    assert change.importance >= 0.8


@pytest.mark.parametrize(
    "text",
    [
        "Remember when we met?",
        "Remember that day we met",
        "Do you remember that I live in Vienna?",
        "I remember that the key is under the mat.",
        "Remember this.",
        "Remember that I hate mocks. Now write the test.",
        "Remember: tea",
        "Remember that it's never too late.",
        "Remember me!",
        "Note the time.",
        "Erinnerst du dich an Wien?",
        "记住",
        "Merke dir",
        ("Let's role play.", "Remember that the dragon is green."),
    ],
)
async def test_what_is_no_request_to_remember(text):
    assert await extract(*([text] if isinstance(text, str) else text)) == ()
