"""The question to a model, where no rule says which section a message needs."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.conversation.tokens import count_tokens, estimate_tokens
from locus_memory.errors import ConfigurationError
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.layers.log import read_log
from locus_memory.memory.planning import asking
from locus_memory.memory.planning.asking import PROMPT_TOKENS, gate_prompt
from locus_memory.messages import Message

TEXT = "The roof again?"


def model_of(answer, asked):
    async def model(messages):
        asked.append(messages)
        if isinstance(answer, BaseException):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return Message.assistant(answer)

    return model


@pytest.mark.parametrize(
    ("answer", "section"),
    [
        ("episode", "episode"),
        ("Episode.", "episode"),
        ("<think>identity or pinned?</think>\npinned", "pinned"),
        ("none", "none"),
        ("episode or pinned", "none"),
        ("I cannot say.", "none"),
        (ValueError("no"), "none"),
    ],
)
async def test_the_model_decides_where_no_rule_fires(make_world, events, answer, section):
    asked = []
    extractor = LLMExtractor(model_of(answer, asked))
    world = make_world(gate_mode="llm", extract_fn=extractor)
    assert (await world.manager.plan("Who am I?")).section == "identity"
    assert asked == []
    assert (await world.manager.plan(TEXT)).section == section
    assert len(asked) == 1
    await world.manager.drain()
    (entry,) = [entry async for entry in read_log(world.store, world.scope)]
    failed = isinstance(answer, ValueError)
    assert (entry.kind, entry.ok) == ("gate", not failed)
    assert entry.error == ("ValueError" if failed else None)
    assert ("memory.gate_failed" in events.names) is failed


async def test_a_model_that_does_not_answer_is_not_waited_for(make_world, events, monkeypatch):
    monkeypatch.setattr(asking, "_SECONDS", 0.01)
    world = make_world(gate_mode="llm", extract_fn=LLMExtractor(model_of(None, [])))
    assert (await world.manager.plan(TEXT)).section == "none"
    (failed,) = events.of("memory.gate_failed")
    assert isinstance(failed.error, TimeoutError)
    await world.manager.drain()
    (entry,) = [entry async for entry in read_log(world.store, world.scope)]
    assert entry.error == "TimeoutError"


def test_without_a_model_the_mode_is_an_error(make_world):
    with pytest.raises(ConfigurationError, match="LLMExtractor"):
        make_world(gate_mode="llm")


@pytest.mark.parametrize("text", [TEXT, "roof " * 5_000, "\u5c4b\u9876" * 5_000])
def test_the_prompt_is_short(text):
    prompt = gate_prompt(text, estimate_tokens)
    assert count_tokens(prompt) <= PROMPT_TOKENS
    assert prompt[1].content[:8] == text[:8]
