"""A memory from a sentence, and from its four parts."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory import InMemoryStore, LLMMemoryManager, Memory, MemoryType
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.base import NoopMemoryManager

TEA = "I like tea"


def test_a_sentence_is_enough():
    memory = Memory(TEA)
    assert memory == Memory(content=TEA) == Memory("user", content=TEA)
    assert (memory.type, memory.content, memory.metadata) == (MemoryType.USER, TEA, {})
    assert memory.key.startswith("like-tea-")
    assert Memory(TEA, metadata={"importance": 1}).metadata == {"importance": 1}
    assert Memory("project", content=TEA).key == memory.key
    assert Memory(content=TEA, key="drink").key == "drink"


def test_the_four_parts_are_as_they_were():
    memory = Memory("project", "due", "It is due.", {"a": 1})
    assert memory == Memory(type="project", key="due", content="It is due.", metadata={"a": 1})
    assert memory.to_store_value() == {
        "type": "project",
        "key": "due",
        "content": "It is due.",
        "metadata": {"a": 1},
    }
    assert replace(memory, content="It was.") == Memory("project", "due", "It was.", {"a": 1})
    for again in (copy.copy(memory), copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
        assert again == memory


@pytest.mark.parametrize(
    ("given_", "named"),
    [
        ((), {}),
        (("user",), {}),
        ((MemoryType.FEEDBACK,), {}),
        (("user", "key"), {}),
        (("home", "Lives in Rome."), {}),
        ((TEA,), {"key": "drink"}),
        (("  ",), {}),
        ((5,), {}),
        (("user", "", TEA), {}),
        (("user", None, TEA), {}),
        (("user", "key", None), {}),
        (("fact", "key", TEA), {}),
        (("user", "key", TEA, []), {}),
    ],
)
def test_what_is_no_memory_is_refused(given_, named):
    with pytest.raises(InvalidArgumentError, match="a memory's"):
        Memory(*given_, **named)


@pytest.mark.parametrize("name", ["type", "key", "content"])
def test_a_stored_value_has_all_its_parts(name):
    stored = Memory(TEA).to_store_value()
    for broken in ({**stored, name: None}, {key: stored[key] for key in stored if key != name}):
        with pytest.raises(InvalidArgumentError, match="not a memory"):
            Memory.from_store_value(broken)


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=80))
def test_every_sentence_has_a_key_of_its_own(text):
    if not text.strip() or text in tuple(MemoryType):
        return
    memory = Memory(text)
    assert memory.content == text
    assert memory.key.strip()
    assert memory.key == Memory(f" {text}\n").key
    assert memory.key != Memory(f"{text} not").key
    assert Memory.from_store_value(memory.to_store_value()) == memory


async def test_what_is_remembered_has_the_same_key_everywhere():
    manager = LLMMemoryManager(InMemoryStore())
    assert await manager.remember("Tea is at five.") == Memory("Tea is at five.").id
    assert await NoopMemoryManager().remember("Tea is at five.") == Memory("Tea is at five.").id
    assert await manager.save(Memory("Tea  is at five.")) == []
