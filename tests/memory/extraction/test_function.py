from __future__ import annotations

import functools
import threading
from types import SimpleNamespace

import pytest

from locus_memory.chat import ScriptedModel
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.memory.extraction.extractors import FunctionExtractor, LLMExtractor, as_extractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Extractor, Memory, MemoryChange, MemoryType
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.messages import Message
from locus_memory.testing.model import FakeModel
from tests.memory.extraction.test_extractors import MEMORIES, TALK

NOTE = Memory("user", "note", "Something.", {"importance": 0.4, "mine": True})
DROP = MemoryChange(op="delete", type=MemoryType.USER, key="old")


def of_messages(messages):
    return [NOTE] if messages else []


def of_both(messages, memories):
    return (NOTE, *memories)


def lazily(messages):
    yield NOTE
    yield DROP


async def in_the_loop(messages):
    return [NOTE, DROP]


class WithCall:
    async def __call__(self, messages, memories):
        return memories


@pytest.mark.parametrize(
    ("function", "expected", "name"),
    [
        (of_messages, (NOTE,), "of_messages"),
        (of_both, (NOTE, *MEMORIES), "of_both"),
        (lazily, (NOTE, DROP), "lazily"),
        (in_the_loop, (NOTE, DROP), "in_the_loop"),
        (WithCall(), tuple(MEMORIES), "WithCall"),
        (functools.partial(of_both, memories=[]), (NOTE,), "partial"),
        (lambda messages, limit=3: [NOTE][:limit], (NOTE,), "<lambda>"),
        (lambda messages: in_the_loop(messages[:1]), (NOTE, DROP), "<lambda>"),
        (lambda *given: given[1], tuple(MEMORIES), "<lambda>"),
        (lambda messages: None, (), "<lambda>"),
    ],
)
async def test_a_function_extracts(function, expected, name):
    extractor = as_extractor(function)
    assert isinstance(extractor, Extractor)
    assert extractor.name == name
    assert await extractor.extract(TALK, MEMORIES) == expected


async def test_a_sync_function_does_not_hold_up_the_loop():
    threads = []
    await as_extractor(lambda messages: threads.append(threading.get_ident())).extract(TALK, [])
    assert threads != [threading.get_ident()]


async def test_memories_of_another_library_are_taken():
    foreign = SimpleNamespace(type="project", key="k", content="c", metadata={"a": 1})
    [memory] = await FunctionExtractor(lambda messages: [foreign]).extract(TALK, [])
    assert memory == Memory("project", "k", "c", {"a": 1})


@pytest.mark.parametrize("returned", [3, ["text"], "text", [None], [{"key": "k"}]])
async def test_a_function_that_returns_something_else_is_reported(returned):
    with pytest.raises(InvalidArgumentError, match="not a"):
        await FunctionExtractor(lambda messages: returned).extract(TALK, [])


async def test_a_function_that_runs_dry_does_not_hang():
    with pytest.raises(RuntimeError, match="StopIteration"):
        await FunctionExtractor(lambda messages: next(iter(()))).extract(TALK, [])


async def test_what_a_function_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        await FunctionExtractor(lambda messages: 1 / 0).extract(TALK, [])


def test_what_can_be_an_extractor():
    extractor = LLMExtractor(FakeModel())
    assert as_extractor(extractor) is extractor
    assert isinstance(as_extractor(None), HeuristicExtractor)
    for wrong in (3, "llm", "openai", HeuristicExtractor, FakeModel):
        with pytest.raises(ConfigurationError):
            as_extractor(wrong)
        with pytest.raises(ConfigurationError):
            LLMMemoryManager("memory", extract_fn=wrong)


async def annotated(messages) -> Message:
    return Message.assistant("[]")


@pytest.mark.parametrize("model", [FakeModel(), annotated])
def test_a_model_is_one_for_an_extractor(model):
    extractor = as_extractor(model)
    assert isinstance(extractor, LLMExtractor)
    assert extractor.model is model


@pytest.mark.parametrize("model", [ScriptedModel(), "scripted"])
def test_a_model_that_follows_no_instructions_is_not_asked(model):
    assert isinstance(as_extractor(model), HeuristicExtractor)
