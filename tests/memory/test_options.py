"""What a newcomer hands in by mistake."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.testing import FakeEmbedder

TEA = Memory(MemoryType.USER, "tea", "Likes tea")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("embedder", "bge"),
        ("embedder", FakeEmbedder),
        ("namespace_resolver", ("a",)),
        ("clock", 5),
        ("clock", None),
        ("max_memories", 1.5),
        ("max_memories", "50"),
        ("max_memories", True),
        ("retrieve_limit", 2.5),
        ("history_limit", 1.5),
        ("history_limit", float("inf")),
        ("token_budget", 10.5),
        ("batch_messages", 1.5),
        ("max_attempts", 1.5),
        ("batch_quiet", "60"),
        ("extract_timeout", float("nan")),
        ("drain_timeout", None),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_by_name(name, value):
    with pytest.raises(ConfigurationError, match=name):
        LLMMemoryManager(InMemoryStore(), **{name: value})


async def test_one_memory_is_saved_as_a_list_of_one_is(make):
    manager = make()
    assert [memory.key for memory in await manager.save(TEA)] == ["tea"]
    assert [memory.content for memory in await manager.retrieve()] == ["Likes tea"]


async def test_one_memory_of_another_library_is_saved(make):
    class Foreign(BaseModel):
        type: str = "user"
        key: str = "tea"
        content: str = "Likes tea"
        metadata: None = None

    manager = make()
    await manager.save(Foreign())
    assert [memory.content for memory in await manager.retrieve()] == ["Likes tea"]


@pytest.mark.parametrize("memories", ["Likes tea", {"tea": "Likes tea"}, 5, None])
async def test_what_is_no_list_of_memories_is_refused(make, memories):
    manager = make()
    with pytest.raises(InvalidArgumentError, match="Memory"):
        await manager.save(memories)


@pytest.mark.parametrize("metadata", ["x", None, [], 5, (("a", 1),)])
def test_metadata_that_is_no_object_is_refused(metadata):
    with pytest.raises(InvalidArgumentError, match="metadata"):
        Memory("user", "tea", "Likes tea", metadata)
