"""Sentences whose speaker replaces some of the words at once."""

import pytest

from locus_memory.memory.heuristic.clauses import repaired
from locus_memory.memory.heuristic.extractor import HeuristicExtractor
from locus_memory.messages import Message


async def facts(text):
    changes = await HeuristicExtractor().extract([Message.user(text)], [])
    return [change.content for change in changes]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I live in Graz, no wait, in Linz.", "The user lives in Linz."),
        ("I live in Graz, no, Linz.", "The user lives in Linz."),
        ("I live in Graz, sorry, Linz.", "The user lives in Linz."),
        ("I live in New York - no, Boston!", "The user lives in Boston."),
        ("My favourite colour is blue, no, green.", "The user's favourite colour: green."),
        ("I'm 34, no, 35.", "The user is 35 years old."),
        ("I work at Siemens, I mean Bosch.", "The user works at Bosch."),
        ("My name is Ada, or rather Eve.", "The user's name is Eve."),
        ("I work as a nurse, no, a doctor.", "The user works as a doctor."),
        ("We moved from Graz to Linz, make that Wels", "The user lives in Wels."),
        ("I like tea, wait, coffee", "The user likes coffee."),
        ("I like black tea, no, green tea", "The user likes green tea."),
        ("I live in Graz, no, I live in Linz.", "The user lives in Linz."),
    ],
)
async def test_the_last_words_count(text, fact):
    assert await facts(text) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "I live in Graz, no wait, that was before the big move of last year",
        "I like tea, scratch that, it makes me feel sick all day",
        "I hate mushrooms, no, love them",
    ],
)
async def test_what_is_taken_back_is_not_kept(text):
    assert await facts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I live in Graz, sorry.",
        "I like tea, I mean it makes me happy",
        "I eat no meat, no fish",
        "I live in Graz, near the river",
        "I like tea, sorry about that",
        "No, I live in Graz",
        "I live in Graz, no problem",
    ],
)
def test_other_sentences_stay_as_they_are(text):
    assert repaired(text) == text


@pytest.mark.parametrize("text", ["I live in Graz, no, really", "I live in Graz, no, seriously!"])
async def test_what_is_confirmed_is_kept(text):
    assert await facts(text) == ["The user lives in Graz."]
