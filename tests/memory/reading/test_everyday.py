"""What was said is found by a question about it, without a model: words are all there is."""

from __future__ import annotations

import random
import re

import pytest

from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Message
from locus_memory.registry import get_store
from locus_memory.store.text import query_words
from locus_memory.store.words.languages import STOP_WORDS
from tests.memory.phrases.test_table import extract
from tests.memory.reading.questions import ASKED
from tests.memory.sessions.conftest import run_of

STARTS = (
    "Can you check whether",
    "Remind me why",
    "My colleague asked me when",
    "I read somewhere that",
    "Last week it turned out that",
    "Nobody believes that",
)
WHO = (
    "my neighbour",
    "the doctor",
    "my sister's bakery",
    "the landlord",
    "the train to Vienna",
    "the captain",
    "my brother",
    "the customer",
    "the hero of that book",
    "the boss",
    "our flat in Rome",
)
WHAT = (
    "needs another name",
    "lives on coffee",
    "works better at night",
    "is allergic to change",
    "speaks about music all day",
    "lost the key",
    "has three children",
    "is older than it looks",
    "plays the piano",
    "cannot be reached by phone",
    "sounds like a joke",
)
WHEN = ("before the weekend", "in the rain", "for no reason", "near the harbour", "at home")


def other(chance):
    """Return a turn about what most of the sentences are about, too."""
    said = " ".join(map(chance.choice, (STARTS, WHO, WHAT, WHEN)))
    return f"{said}, as of page {chance.randrange(10_000)}."


def words_of(text):
    return re.findall(r"\w+", text)


async def told(manager, threads):
    """Let each message of a user be answered, thread by thread."""
    for name, messages in threads:
        said = []
        for message in messages:
            answer = [Message.assistant("All right.")] if message.role == "user" else []
            said += [message, *answer]
        await manager.on_session_end(run_of(said, name))


async def found(manager):
    """Return the share of the sentences that a model sees, of whose words a line consists."""
    count = 0
    for number, (said, question) in enumerate(ASKED.items()):
        asked = run_of([Message.user(question)], f"asked {number}")
        seen = (await manager.on_session_start(asked)).messages
        shown = "\n".join(each.content for each in seen).removesuffix(question)
        count += words_of(said) in map(words_of, shown.splitlines())
    return count / len(ASKED)


def test_a_question_has_few_words_of_its_sentence():
    """But for function words, at most two."""
    for said, question in ASKED.items():
        shared = {*query_words(question)} & {*query_words(said)}
        assert len(shared - STOP_WORDS) <= 2, question


async def test_further_everyday_sentences_are_no_claims():
    assert [said for said in ASKED if await extract(said)] == []


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "others"), [("memory", 0), ("sqlite", 2_000)])
async def test_the_words_are_found_by_a_question(tmp_path, kind, others):
    """Alone all fit as quotes; among many, those that have words of the question are shown."""
    chance = random.Random(5)
    threads = [(f"said {n}", [Message.user(said)]) for n, said in enumerate(ASKED)]
    turns = [Message.user(other(chance)) for _ in range(others)]
    threads += [(f"other {n}", turns[n : n + 8]) for n in range(0, others, 8)]
    chance.shuffle(threads)
    url = "memory" if kind == "memory" else f"sqlite:{tmp_path / 'memory.db'}"
    async with get_store(url) as store, LLMMemoryManager(store) as manager:
        await told(manager, threads)
        share = await found(manager)
        assert share >= (0.9 if others else 0.99)
        assert [each async for each in manager.memories()] == []
