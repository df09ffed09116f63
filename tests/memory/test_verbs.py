"""The verbs that a memory tool needs of a manager, and the fence around recalled text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.conversation.roles import BLOCK_CLOSE, BLOCK_OPENING
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.base import BaseMemoryManager, NoopMemoryManager
from locus_memory.memory.models import Memory, MemorySearchResult
from locus_memory.memory.providers.fence import cap, fence


@pytest.mark.parametrize("store", ["inmemory", "sqlite", "encrypted"], indirect=True)
async def test_search(make):
    manager = make()
    await manager.save([Memory("user", "tea", "Ada likes tea.", {"extractor": "llm"})])
    await manager.save([Memory("user", "dog", "The dog is called Bosun.")])
    [found, *_] = await manager.search("tea", 1)
    assert isinstance(found, MemorySearchResult)
    tea = await manager.get("user:tea")
    assert (found.id, found.content) == (tea.id, "Ada likes tea.")
    assert found.score > 0.9
    assert found.source == "llm"
    assert found.created_at


@pytest.mark.parametrize("query", [None, 5, ["tea"]])
async def test_what_is_no_text_is_no_query(make, query):
    with pytest.raises(InvalidArgumentError, match="a query is a text"):
        await make().search(query)


async def test_remember(make):
    manager = make()
    name = await manager.remember("Ada likes tea.")
    assert await manager.remember("Ada  likes tea.") == name
    assert [each.id for each in await manager.search("tea")] == [name]
    await manager.save([Memory("user", "dog", "The dog is called Bosun.")])
    assert await manager.remember("the dog is called bosun.") == (await manager.get("user:dog")).id
    assert await manager.remember("The dog is called Bosun!") not in (name, "user:dog")
    assert await manager.remember("Ada likes tea?") != name
    assert len([each async for each in manager.memories()]) == 4
    with pytest.raises(InvalidArgumentError):
        await manager.remember(" ")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The user lives in Graz.", "The user lives in Linz."),
        ("I live in Graz.", "The user lives in Linz."),
        ("The user's name is Ada.", "User's name is Bo."),
        ("The user works at Acme.", "The user works at Initech."),
    ],
)
async def test_a_fact_told_of_the_user_replaces_the_earlier_one(make, first, second):
    manager = make()
    assert await manager.remember(first) == await manager.remember(second)
    assert [each.content async for each in manager.memories()] == [second]


async def test_what_only_begins_like_a_fact_of_the_user_has_a_key_of_its_own(make):
    manager = make()
    await manager.remember("The user's laptop is old.")
    await manager.remember("The user lives for music.")
    assert len([each async for each in manager.memories()]) == 2


@pytest.mark.parametrize("content", ["\x00\x01", "\u200b", "\u202e \n", 5, None])
async def test_what_nobody_can_see_is_not_remembered(make, content):
    with pytest.raises(InvalidArgumentError):
        await make().remember(content)


async def test_the_defaults_of_a_manager():
    class Least(BaseMemoryManager):
        async def extract(self, messages):
            return []

        async def retrieve(self, query=None, limit=None):
            return [Memory("user", "tea", f"About {query}: tea.")]

        async def save(self, memories):
            self.saved = memories

    manager = Least()
    assert "\n- About tea: tea.\n" in await manager.prefetch("tea")
    assert await manager.remember("tea") == manager.saved[0].id
    assert await manager.reflect("tea") == ""
    assert await manager.for_run(object()) is manager
    await manager.queue_prefetch("tea")
    await manager.on_turn_complete("tea", "Yes.")
    await manager.on_pre_compact([])
    await manager.on_memory_write("remember", "1", "tea")
    await manager.shutdown()
    assert await NoopMemoryManager().prefetch("tea") == ""


LINES = st.lists(st.text(max_size=30), max_size=8)


@pytest.mark.slow
@given(LINES)
def test_a_fence_is_put_once_and_holds(lines):
    block = fence("\n".join(lines))
    assert fence(block) == block
    if block:
        assert block.startswith(BLOCK_OPENING)
        assert block.endswith("\n" + BLOCK_CLOSE)
        assert block.count("<") == 2


@pytest.mark.slow
@given(LINES, st.integers(0, 400))
def test_a_cap_cuts_whole_lines_and_no_fence(lines, most):
    block = fence("\n".join(lines))
    cut = cap(block, most)
    assert len(cut) <= most or cut == ""
    assert cap(cut, most) == cut
    if cut:
        assert cut.startswith(BLOCK_OPENING)
        assert cut.endswith("\n" + BLOCK_CLOSE)
        assert set(cut.split("\n")) <= set(block.split("\n"))
        kept = cut.count("\n")
        longer = "\n".join([*block.split("\n")[: kept + 1], BLOCK_CLOSE])
        assert cut == block or len(longer) > most


def test_text_without_a_fence_is_cut_as_well():
    assert cap("one\ntwo\nthree", 8) == "one\ntwo\n"
    assert cap("one", 2) == ""
