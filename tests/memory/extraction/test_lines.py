"""Answers in lines, for small models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import ConfigurationError, ModelAnswerError
from locus_memory.memory.extraction.distillate import parse_lines
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.layers.episodes import EpisodeBook
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message, ToolCall, ToolResult
from locus_memory.testing import FakeModel

SAID = "I am Ada, I keep bees in Graz, and walnuts make me ill, so please never suggest them to me."
TALK = [Message.user(SAID), Message.assistant("Noted.")]


def contents(text):
    return [each.content for each in parse_lines(text).changes]


@pytest.mark.parametrize(
    "text", ["NONE", " none.\n", "- NONE", "", "<think>Ada lives.</think>NONE"]
)
def test_none_alone_is_no_fact(text):
    assert contents(text) == []


def test_bullets_headings_thoughts_and_long_lines_are_left_out():
    text = f"""<think>The user lives in Paris.</think>
Here are the facts:
# Facts
- The user keeps bees.
2) The user's name is Ada.
\u2022 **The user lives in Graz.**
* {"very " * 80}long

Yes.
The user <b>paints</b> boats.
"""
    assert contents(text) == [
        "The user keeps bees.",
        "The user's name is Ada.",
        "The user lives in Graz.",
        "The user \u2039b\u203apaints\u2039/b\u203a boats.",
    ]


def test_only_the_beginning_of_a_line_is_a_bullet():
    text = "- The user was born in 1990. She sails - mostly alone."
    assert contents(text) == ["The user was born in 1990. She sails - mostly alone."]


def test_messages_that_are_repeated_are_no_facts():
    """As a small model does that takes the prompt for a text to go on with."""
    text = """1. (Friday 2026-11-27) user: I go to Rome.
2. assistant: Ok then.
(another conversation) (Friday 2026-11-27) user: I am allergic to nuts.
The user says: I sail (often).
"""
    assert contents(text) == ["The user says: I sail (often)."]


async def test_what_is_known_is_no_new_fact():
    text = """The user keeps  bees in Graz.
The user keeps no bees in Graz.
The user sails.
- the user sails.
The user sails!"""
    model = FakeModel([text])
    extractor = LLMExtractor(model, answer="lines")
    async with LLMMemoryManager(InMemoryStore(), extract_fn=extractor) as manager:
        await manager.save(Memory("user", "bees", "The user keeps bees in Graz."))
        await manager.add(TALK)
        assert sorted([each.content.casefold() async for each in manager.memories()]) == [
            "the user keeps bees in graz.",
            "the user keeps no bees in graz.",
            "the user sails!",
            "the user sails.",
        ]


@pytest.mark.slow
@given(st.lists(st.text(max_size=400), max_size=30).map("\n".join))
def test_any_answer_gives_at_most_ten_bounded_facts(text):
    found = parse_lines(text).changes
    assert len(found) <= 10
    for each in found:
        assert 0 < len(each.content) <= 300
        assert 0 < len(each.key) <= 64
        assert "\n" not in each.content
        assert (each.op, each.type) == ("add", MemoryType.USER)


async def test_a_run_is_extracted_by_one_short_prompt():
    model = FakeModel(
        ["- The user keeps bees in Graz.\n- My password is hunter2!x\n- The user sails."]
    )
    extractor = LLMExtractor(model, answer="lines", max_prompt_tokens=600)
    async with LLMMemoryManager(InMemoryStore(), extract_fn=extractor) as manager:
        await manager.add(TALK, thread_id="t")
        memories = {each.key: each async for each in manager.memories()}
    assert sorted(key.rpartition("-")[0] for key in memories) == [
        "user-keeps-bees-graz",
        "user-sails",
    ]
    bees = next(each for each in memories.values() if "bees" in each.key)
    assert (bees.metadata["extractor"], bees.metadata["thread_id"]) == ("fake", "t")
    assert len(bees.metadata["message_ids"]) == 1
    assert SAID in (model.calls[0][1].content or "")
    assert len(model.calls) == 1


async def test_a_fact_from_a_tool_is_marked():
    call = ToolCall(id="1", name="page")
    page = ToolResult(tool_call_id="1", name="page", content="Zorblax makes excellent honey jars.")
    said = [Message.user(SAID), Message.assistant(None, [call]), Message.tool(page), *TALK[1:]]
    model = FakeModel(["The user keeps bees.\nZorblax makes excellent honey jars."])
    extractor = LLMExtractor(model, answer="lines")
    async with LLMMemoryManager(InMemoryStore(), extract_fn=extractor) as manager:
        await manager.add(said)
        origins = {m.content[:7]: m.metadata.get("origin") async for m in manager.memories()}
    assert origins == {"The use": None, "Zorblax": "tool"}


async def test_a_session_becomes_facts_and_no_episode():
    store = InMemoryStore()
    model = FakeModel(["The user keeps bees in Graz."])
    extractor = LLMExtractor(model, answer="lines")
    async with LLMMemoryManager(store, extract_fn=extractor, extract_mode="session_end") as manager:
        await manager.add(TALK, thread_id="t")
        assert await manager.sync_now() == 0
        assert [m.content async for m in manager.memories()] == ["The user keeps bees in Graz."]
        assert await EpisodeBook(store).newest(Scope(manager.namespace), 5) == []
    assert len(model.calls) == 1


async def test_an_answer_that_is_full_of_json_is_an_error():
    extractor = LLMExtractor(FakeModel(['{"a' * 500] * 2), answer="lines")
    with pytest.raises(ModelAnswerError, match="not readable"):
        await extractor.extract(TALK, ())


def test_another_form_of_answers_is_refused():
    with pytest.raises(ConfigurationError, match="answer is 'json' or 'lines', not 'xml'"):
        LLMExtractor(FakeModel([]), answer="xml")
