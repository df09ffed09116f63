"""The options of a manager: in values, by name, and handed in by mistake."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.memory import ExtractionOptions, MemoryOptions, RecallOptions, TendingOptions
from locus_memory.memory.blend import Blend
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.options import MemoryKeywords, read_options
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.testing import FakeEmbedder

TEA = Memory(MemoryType.USER, "tea", "Likes tea")


OPTIONS = {
    "memory_budget_tokens": 200,
    "token_counter": len,
    "recall_timeout": 1.5,
    "extract_mode": "background",
    "session_idle": 2.5,
    "extract_timeout": 3.5,
    "drain_timeout": 4.5,
    "allow_secrets": True,
}


def test_the_value_and_the_names_mean_the_same():
    options = MemoryOptions(**OPTIONS)
    in_value = LLMMemoryManager("memory", options=options)
    assert in_value._options == options == LLMMemoryManager("memory", **OPTIONS)._options
    assert (in_value.token_budget, in_value.recall_timeout) == (200, 1.5)
    assert LLMMemoryManager("memory")._options == MemoryOptions()


SESSION = {"extract_mode": "session_end"}
OLD = [
    ({"token_budget": 200}, {"memory_budget_tokens": 200}),
    ({"batch_quiet": 5}, {"session_idle": 5}),
    ({"batch_messages": 20}, {"extract_mode": "session_end"}),
    ({"batch_messages": 0}, {}),
    ({"recall": RecallOptions(recall_timeout=1)}, {"recall_timeout": 1}),
    ({"extraction": ExtractionOptions(max_attempts=2, drain_timeout=1)}, {"drain_timeout": 1}),
    ({"tending": TendingOptions()}, {"extract_mode": "session_end"}),
    ({"tending": TendingOptions(enabled=False)}, {}),
    ({"tending": TendingOptions(extraction_mode="manual")}, {"extract_mode": "manual"}),
    (
        {
            "extraction": ExtractionOptions(extract_mode="background"),
            "tending": TendingOptions(gate_mode="llm", cache_idle_seconds=5),
        },
        {"extract_mode": "session_end", "gate": "model", "cache_idle": 5},
    ),
    (
        {"tending": TendingOptions(passive=False, summary_debounce_seconds=20)},
        {
            "extract_mode": "session_end",
            "transcript": False,
            "memory_budget_tokens": 0,
            "session_idle": 20,
        },
    ),
    (
        {"tending": TendingOptions(episode_retention_days=9, salience_floor=0.1)},
        SESSION | {"retention": 9},
    ),
    (
        {"blend": "trust", "half_life_days": 7},
        {"blend": Blend(name="trust", half_life_days=7)},
    ),
]


@pytest.mark.parametrize(("old", "new"), OLD)
def test_the_names_of_earlier_versions_are_read(old, new):
    """Each with a warning, alone and in the values that held them."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert read_options(old) == new
    assert {each.category for each in told} <= {DeprecationWarning}
    assert told
    MemoryOptions(**new)


def test_a_place_is_named_once():
    told = pytest.warns(DeprecationWarning, match="namespace_resolver")
    with told, pytest.raises(ConfigurationError, match="name one"):
        LLMMemoryManager(
            "memory", namespace_prefix=lambda _: ("x",), namespace_resolver=lambda _: ("y",)
        )


def test_a_manager_has_eight_parameters():
    parameters = inspect.signature(LLMMemoryManager).parameters
    assert len([each for each in parameters if each != "keywords"]) == 8
    assert set(MemoryKeywords.__annotations__) == {each.name for each in fields(MemoryOptions)}


def test_a_manager_reads_them_too():
    with pytest.warns(DeprecationWarning, match="the option token_budget is now memory_budget_tok"):
        assert LLMMemoryManager("memory", token_budget=200).token_budget == 200
    with pytest.raises(ConfigurationError, match="tending is a part of MemoryOptions"):
        LLMMemoryManager("memory", tending=True)


async def test_a_value_decides_how_a_run_is_extracted():
    later = MemoryOptions(extract_mode="manual")
    said = Message.user("I live in Vienna. I am allergic to nuts.")
    async with LLMMemoryManager("memory", retrieve_limit=1, options=later) as manager:
        await manager.on_session_end(AgentState(run_id="r", messages=(said,)))
        assert await manager.retrieve() == []
        await manager.sync_now()
        assert len(await manager.retrieve()) == 1
        assert len(await manager.retrieve(limit=5)) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("embedder", "bge"),
        ("embedder", FakeEmbedder),
        ("clock", 5),
        ("clock", None),
        ("max_memories", 1.5),
        ("max_memories", "50"),
        ("max_memories", True),
        ("retrieve_limit", 2.5),
        ("history_limit", 1.5),
        ("history_limit", float("inf")),
        ("memory_budget_tokens", 100.5),
        ("memory_budget_tokens", True),
        ("session_idle", "60"),
        ("blend", "age"),
        ("transcript", 1),
        ("timezone", "Mars/Olympus"),
        ("timezone", 5),
        ("timezone", "../../etc/passwd"),
        ("extract_timeout", float("nan")),
        ("drain_timeout", None),
        ("recall_timeout", -1),
        ("recall_timeout", True),
        ("max_memories", 0),
        ("retrieve_limit", -1),
        ("history_limit", -1),
        ("extract_mode", "later"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_by_name(name, value):
    with pytest.raises(ConfigurationError, match=name):
        LLMMemoryManager(InMemoryStore(), **{name: value})


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


@pytest.mark.parametrize("metadata", ["x", [], 5, (("a", 1),)])
def test_metadata_that_is_no_object_is_refused(metadata):
    with pytest.raises(InvalidArgumentError, match="metadata"):
        Memory("user", "tea", "Likes tea", metadata)


RANGES = {
    "memory_budget_tokens": (100, 200_000),
    "cache_idle": (0, 86_400),
    "session_idle": (0, 86_400),
    "pending_max_age": (60, 2_592_000),
    "retention": (0, 3_650),
}


@given(name=st.sampled_from(sorted(RANGES)), value=st.integers(-10, 3_000_000) | st.floats())
def test_each_option_accepts_its_range_and_nothing_else(name: str, value: Any) -> None:
    least, most = RANGES[name]
    is_budget = name == "memory_budget_tokens"
    fits = (least <= value <= most and (type(value) is int or not is_budget)) or (
        is_budget and value == 0
    )
    if fits:
        assert getattr(MemoryOptions(**{name: value}), name) == value
    else:
        with pytest.raises(ConfigurationError, match=f"^{name} is"):
            MemoryOptions(**{name: value})


def test_the_ends_of_the_ranges_and_the_defaults() -> None:
    for name, ends in RANGES.items():
        for end in ends:
            assert getattr(MemoryOptions(**{name: end}), name) == end
        for other in (True, "1", None):
            with pytest.raises(ConfigurationError):
                MemoryOptions(**{name: other})
    assert len(fields(MemoryOptions)) <= 16
    assert MemoryOptions() == MemoryOptions(
        memory_budget_tokens=4_000,
        cache_idle=300,
        gate="off",
        transcript=True,
        retention=365,
        extract_mode="inline",
        session_idle=60,
        pending_max_age=86_400,
        extract_timeout=60,
        drain_timeout=30,
    )
