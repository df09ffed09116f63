"""The spans and durations of memory operations."""

from __future__ import annotations

import inspect

import pytest
from opentelemetry.trace import SpanKind

from locus_memory import AgentState, LLMMemoryManager, Memory, Message
from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.base import BaseMemoryManager
from locus_memory.memory.extraction.extraction import Extraction
from locus_memory.observability.memories import EXTRACTION_VERBS, MEMORY_OPERATIONS

TEA = Memory("user", "tea", "Ada likes green tea.")
DOG = Memory("user", "dog", "Ada has a dog named Rex.")
STORE = "locus_memory/users/ada"


@pytest.fixture
def manager():
    return LLMMemoryManager(InMemoryStore()).for_user("ada")


def of_memories(recorded):
    return [span for span in recorded.spans if "gen_ai.operation.name" in span.attributes]


def test_every_verb_exists():
    for verb in MEMORY_OPERATIONS:
        assert inspect.iscoroutinefunction(getattr(LLMMemoryManager, verb)), verb
    for verb in EXTRACTION_VERBS:
        assert inspect.iscoroutinefunction(getattr(Extraction, verb)), verb


async def test_the_life_of_memories(instrumented, manager):
    await manager.save([TEA, DOG])
    await manager.retrieve("tea", 5)
    await manager.search("green tea")
    await manager.update(TEA.id, "Ada likes black tea.")
    await manager.delete(DOG.id)
    await manager.forget("tea")
    name = await manager.remember("Ada lives in Oslo.")
    found = [
        (span.name, span.attributes.get("gen_ai.memory.record.count"))
        for span in of_memories(instrumented)
    ]
    assert [each[0] for each in found] == [
        "upsert_memory",
        "search_memory",
        "search_memory",
        "update_memory",
        "delete_memory",
        "delete_memory",
        "upsert_memory",
    ]
    assert found[0][1] == 2
    assert found[3][1] == found[4][1] == 1
    save, retrieve, search, update, delete, forget, remember = of_memories(instrumented)
    assert save.kind == SpanKind.INTERNAL
    assert set(save.attributes["locus_memory.memory.record.ids"]) == {TEA.id, DOG.id}
    assert retrieve.attributes["gen_ai.memory.record.count"] == 2
    assert search.attributes["gen_ai.memory.record.id"] == TEA.id
    assert update.attributes["gen_ai.memory.record.id"] == TEA.id
    assert delete.attributes["gen_ai.memory.record.id"] == DOG.id
    assert forget.attributes["gen_ai.memory.record.count"] >= 1
    assert remember.attributes["gen_ai.memory.record.id"] == name
    assert {span.attributes["gen_ai.memory.store.id"] for span in of_memories(instrumented)} == {
        STORE
    }
    points = instrumented.points("gen_ai.client.operation.duration")
    assert {dict(key)["gen_ai.operation.name"]: each.count for key, each in points.items()} == {
        "upsert_memory": 2,
        "search_memory": 2,
        "update_memory": 1,
        "delete_memory": 2,
    }


async def test_no_text_is_recorded(instrumented, manager):
    await manager.save([TEA])
    await manager.retrieve("what does Ada drink?")
    await manager.retrieve(query="what does Ada drink?")
    await manager.on_session_start(AgentState().with_message(Message.user("a drink, please")))
    for span in instrumented.spans:
        assert "drink" not in str(span.attributes)
        assert "green" not in str(span.attributes)


async def test_the_query_is_recorded_when_asked(recorded, manager):
    undo = recorded.instrument(query_text=True)
    await manager.retrieve("what does Ada drink?", 3)
    await manager.retrieve(3, "tea")
    await manager.search(query="dog")
    await manager.save([TEA])
    undo()
    queries = [span.attributes.get("gen_ai.memory.query.text") for span in of_memories(recorded)]
    assert queries == ["what does Ada drink?", "tea", "dog", None]


async def test_a_run_is_one_search(instrumented):
    manager = LLMMemoryManager(InMemoryStore())
    state = AgentState().with_message(Message.user("hello")).with_metadata(user_id="ada")
    await manager.on_session_start(state)
    assert [span.name for span in of_memories(instrumented)] == ["search_memory"]


async def test_an_extraction_is_a_span_with_the_number_of_changes(instrumented):
    manager = LLMMemoryManager(InMemoryStore(), extract_mode="inline")
    state = AgentState().with_message(Message.user("My name is Ada. I live in Oslo."))
    state = state.with_message(Message.assistant("Hello Ada!")).with_metadata(user_id="ada")
    await manager.on_session_end(state)
    [span] = [each for each in of_memories(instrumented) if each.name == "extract_memory"]
    assert span.attributes["gen_ai.memory.store.id"] == STORE
    assert span.attributes["gen_ai.memory.record.count"] >= 2
    assert instrumented.value("locus_memory.extractions", outcome="done") == 1
    assert instrumented.value("locus_memory.extraction.memories") >= 2


async def test_a_failure_is_named(instrumented, manager):
    with pytest.raises(InvalidArgumentError):
        await manager.remember("")
    [span] = of_memories(instrumented)
    assert span.attributes["error.type"] == "InvalidArgumentError"


async def test_the_database_is_below_the_operation(instrumented, manager):
    await manager.save([TEA])
    [save] = of_memories(instrumented)
    below = [span for span in instrumented.spans if span is not save]
    assert below
    assert {span.parent.span_id for span in below} == {save.context.span_id}


async def test_a_manager_of_another_library_is_recorded(instrumented):
    class Theirs(BaseMemoryManager):
        async def extract(self, messages):
            return []

        async def retrieve(self, query=None, limit=None):
            return [TEA]

        async def save(self, memories):
            return None

    await Theirs().search("tea")
    [span] = of_memories(instrumented)
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.memory.record.count": 1,
        "gen_ai.memory.record.id": TEA.id,
    }
