"""The options of a manager: in values, by name, and handed in by mistake."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import ConfigurationError, InvalidArgumentError, LocusMemoryError
from locus_memory.memory import ExtractionOptions, RecallOptions, TendingOptions
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.testing import FakeEmbedder

TEA = Memory(MemoryType.USER, "tea", "Likes tea")


RECALL = {
    "retrieve_limit": 3,
    "token_budget": 200,
    "token_counter": len,
    "recall_timeout": 1.5,
}
EXTRACTION = {
    "extract_mode": "background",
    "batch_messages": 4,
    "batch_quiet": 2.5,
    "extract_timeout": 3.5,
    "max_attempts": 2,
    "drain_timeout": 4.5,
    "allow_secrets": True,
}


def settings(manager):
    """Return what the parts of a manager were told."""
    return {
        "retrieve_limit": manager.retrieve_limit,
        "token_budget": manager.token_budget,
        "token_counter": manager.token_counter,
        "recall_timeout": manager.recall_timeout,
        "drain_timeout": manager._drain_timeout,
        "inline": manager._inline,
        "extraction": manager._extraction._options,
        "worker": manager._worker._options,
    }


def test_the_values_and_the_names_mean_the_same():
    extraction = ExtractionOptions(**EXTRACTION)
    told = settings(
        LLMMemoryManager("memory", recall=RecallOptions(**RECALL), extraction=extraction)
    )
    assert told == settings(LLMMemoryManager("memory", **RECALL, **EXTRACTION))
    assert told == {
        **RECALL,
        "drain_timeout": 4.5,
        "inline": False,
        "extraction": extraction,
        "worker": extraction,
    }
    mixed = LLMMemoryManager("memory", recall=RecallOptions(**RECALL), **EXTRACTION)
    assert settings(mixed) == told


def test_without_a_value_the_defaults_hold():
    default = settings(LLMMemoryManager("memory"))
    values = {"recall": RecallOptions(), "extraction": ExtractionOptions()}
    assert settings(LLMMemoryManager("memory", **values)) == default
    assert (default["retrieve_limit"], default["token_budget"]) == (20, 4_000)
    assert (default["recall_timeout"], default["drain_timeout"]) == (5.0, 30.0)
    assert default["worker"] == ExtractionOptions(
        extract_mode="inline",
        batch_messages=0,
        batch_quiet=60.0,
        extract_timeout=60.0,
        max_attempts=5,
        allow_secrets=False,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retrieve_limit", -1),
        ("token_budget", 1.5),
        ("token_counter", "gpt"),
        ("recall_timeout", float("nan")),
        ("extract_mode", "later"),
        ("batch_messages", True),
        ("batch_quiet", -1),
        ("extract_timeout", "60"),
        ("max_attempts", 0),
        ("drain_timeout", None),
    ],
)
def test_a_value_refuses_what_the_manager_refuses_in_the_same_words(name, value):
    kind = RecallOptions if name in RECALL else ExtractionOptions
    with pytest.raises(LocusMemoryError) as of_value:
        kind(**{name: value})
    with pytest.raises(type(of_value.value)) as of_manager:
        LLMMemoryManager("memory", **{name: value})
    assert str(of_value.value) == str(of_manager.value)


async def test_a_value_decides_how_a_run_is_extracted_and_recalled():
    later = ExtractionOptions(extract_mode="background", batch_messages=5)
    few = RecallOptions(retrieve_limit=1)
    said = Message.user("I live in Vienna, and I am allergic to nuts.")
    async with LLMMemoryManager("memory", recall=few, extraction=later) as manager:
        await manager.on_session_end(AgentState(run_id="r", messages=(said,)))
        assert await manager.retrieve() == []
        await manager.drain()
        assert len(await manager.retrieve()) == 1
        assert len(await manager.retrieve(limit=5)) == 2


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gate_mode": "on"}, "gate_mode is 'off', 'heuristic' or 'llm', not 'on'"),
        ({"extraction_mode": "turn"}, "extraction_mode is 'session_end' or 'manual'"),
        ({"enabled": 1}, "enabled is True or False, not 1"),
        ({"memory_budget_tokens": 99}, "memory_budget_tokens is an integer of at least 100"),
        ({"memory_budget_tokens": 200_001}, "memory_budget_tokens is at most 200,000"),
        ({"cache_idle_seconds": -1}, "cache_idle_seconds is a number of at least 0"),
        ({"summary_debounce_seconds": 9.9}, "summary_debounce_seconds is a number of at least 10"),
        ({"consolidation_interval_hours": 169}, "consolidation_interval_hours is at most 168"),
        ({"salience_floor": float("nan")}, "salience_floor is a number of at least 0"),
        ({"episode_retention_days": 3651}, "episode_retention_days is at most 3,650"),
    ],
)
def test_options_of_tending_are_in_their_ranges(options: dict[str, Any], message: str) -> None:
    """An option out of its range is a configuration error that names the range."""
    with pytest.raises(ConfigurationError, match=message):
        TendingOptions(**options)


def test_tending_is_an_options_value() -> None:
    """Anything else is refused before the store is opened."""
    with pytest.raises(ConfigurationError, match="tending is TendingOptions"):
        LLMMemoryManager("memory", tending={"enabled": True})  # type: ignore[arg-type]


RANGES = {
    "memory_budget_tokens": (100, 200_000),
    "cache_idle_seconds": (0, 86_400),
    "summary_debounce_seconds": (10, 3_600),
    "consolidation_interval_hours": (1, 168),
    "salience_floor": (0, 1),
    "episode_retention_days": (0, 3_650),
}


@given(name=st.sampled_from(sorted(RANGES)), value=st.integers(-10, 300_000) | st.floats())
def test_each_option_of_tending_accepts_its_range_and_nothing_else(name: str, value: Any) -> None:
    least, most = RANGES[name]
    fits = least <= value <= most and (type(value) is int or name != "memory_budget_tokens")
    if fits:
        assert getattr(TendingOptions(**{name: value}), name) == value
    else:
        with pytest.raises(ConfigurationError, match=f"^{name} is"):
            TendingOptions(**{name: value})


def test_the_ends_of_the_ranges_and_the_defaults_of_tending() -> None:
    for name, ends in RANGES.items():
        for end in ends:
            assert getattr(TendingOptions(**{name: end}), name) == end
        for other in (True, "1", None):
            with pytest.raises(ConfigurationError):
                TendingOptions(**{name: other})
    assert TendingOptions() == TendingOptions(
        enabled=True,
        passive=True,
        extraction_mode="session_end",
        gate_mode="off",
        memory_budget_tokens=4_000,
        cache_idle_seconds=300,
        summary_debounce_seconds=60,
        consolidation_interval_hours=24,
        salience_floor=0.2,
        episode_retention_days=365,
    )
