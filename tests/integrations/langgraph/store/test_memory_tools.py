"""The tools for memories: the arguments, the answers and the items of `langmem`."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

pytest.importorskip("langmem")

import langmem
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel
from typing_extensions import TypedDict

from locus_memory import get_store
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.integrations.langgraph import (
    LocusStore,
    create_manage_memory_tool,
    create_search_memory_tool,
)
from locus_memory.testing import FakeEmbedder

PLACE = ("memories", "ada")
IDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(3)]
CALLS = st.one_of(
    st.builds(
        lambda **given: ("manage", {key: each for key, each in given.items() if each is not None}),
        content=st.none() | st.text(max_size=5),
        action=st.sampled_from([None, "create", "update", "delete"]),
        id=st.none() | st.sampled_from(IDS),
    ),
    st.builds(
        lambda **given: ("search", given),
        query=st.just(""),
        limit=st.integers(1, 4),
        offset=st.integers(0, 2),
        filter=st.none() | st.builds(lambda text: {"content": text}, st.text(max_size=2)),
    ),
)
NEW = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def tools(module, store, **given):
    return {
        "manage": module.create_manage_memory_tool(PLACE, store=store, **given),
        "search": module.create_search_memory_tool(PLACE, store=store),
    }


class Ours:
    create_manage_memory_tool = staticmethod(create_manage_memory_tool)
    create_search_memory_tool = staticmethod(create_search_memory_tool)


async def told(tool, arguments, *, known):
    """Return the answer of a tool; ids made by chance are numbered, and times left out."""
    try:
        answer = await tool.ainvoke(arguments)
    except ValueError:
        return ValueError
    if answer.startswith("["):
        found = json.loads(answer)
        for each in found:
            del each["created_at"], each["updated_at"]
            each["key"] = known.setdefault(each["key"], len(known))
        return found
    return NEW.sub(lambda match: f"<{known.setdefault(match[0], len(known))}>", answer)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(calls=st.lists(CALLS, max_size=10), ours_is_theirs=st.booleans())
def test_they_answer_as_those_of_langmem(calls, ours_is_theirs):
    async def both():
        # `LocusStore` lists the newest update first, and theirs the oldest item.
        store = InMemoryStore() if ours_is_theirs else LocusStore("memory")
        other = InMemoryStore() if ours_is_theirs else LocusStore("memory")
        ours, theirs = tools(Ours, store), tools(langmem, other)
        mine, yours = {}, {}
        for name, arguments in calls:
            answer = await told(ours[name], arguments, known=mine)
            assert answer == await told(theirs[name], arguments, known=yours)

    asyncio.run(both())


class Profile(BaseModel):
    name: str
    age: int | None = None


@pytest.mark.parametrize(
    "given", [{}, {"actions_permitted": ("update",)}, {"schema": Profile}, {"schema": dict}]
)
def test_a_model_sees_the_same_arguments(given):
    ours, theirs = tools(Ours, None, **given), tools(langmem, None, **given)
    for name, tool in ours.items():
        assert tool.name == theirs[name].name
        schema = tool.tool_call_schema.model_json_schema()
        other = theirs[name].tool_call_schema.model_json_schema()
        assert schema["properties"] == other["properties"]
        assert schema.get("required") == other.get("required")
        assert tool.description


@pytest.mark.parametrize("kind", ["LangGraph", "store"])
def test_blocking_calls(kind):
    store = InMemoryStore() if kind == "LangGraph" else get_store("memory")
    ours = tools(Ours, store, schema=Profile)
    answer = ours["manage"].invoke({"content": {"name": "Ada", "age": 36}})
    assert re.fullmatch(r"created memory [0-9a-f-]{36}", answer)
    [found] = json.loads(ours["search"].invoke({"query": "Ada"}))
    assert found["value"] == {"content": {"name": "Ada", "age": 36}}
    assert found["namespace"] == list(PLACE)
    assert ours["manage"].invoke({"action": "delete", "id": found["key"]}) == (
        f"Deleted memory {found['key']}"
    )
    assert ours["search"].invoke({"query": "Ada"}) == "[]"


async def test_a_search_by_meaning_with_its_items():
    store = LocusStore("memory", index={"embed": FakeEmbedder(64), "fields": ["content"]})
    manage = create_manage_memory_tool(PLACE, store=store)
    for content in ("Likes cats.", "Lives in Lisbon."):
        await manage.ainvoke({"content": content})
    search = create_search_memory_tool(PLACE, store=store, response_format="content_and_artifact")
    call = {"type": "tool_call", "id": "1", "name": search.name, "args": {"query": "cat"}}
    message = await search.ainvoke(call)
    assert message.artifact[0].value == {"content": "Likes cats."}
    assert json.loads(message.content)[0]["value"] == {"content": "Likes cats."}


class Turn(TypedDict):
    said: str


async def test_the_namespace_and_the_store_are_those_of_the_run():
    manage = create_manage_memory_tool(("memories", "{user}"))

    async def remember(state: Turn):
        await manage.ainvoke({"content": state["said"]})

    store = LocusStore("memory")
    builder = StateGraph(Turn).add_node(remember).add_edge(START, "remember")
    graph = builder.compile(store=store)
    await graph.ainvoke({"said": "tea"}, {"configurable": {"user": "ada"}})
    assert [item.value for item in await store.asearch(("memories", "ada"))] == [{"content": "tea"}]
    with pytest.raises(ConfigurationError, match="'user'"):
        await graph.ainvoke({"said": "tea"})
    with pytest.raises(ConfigurationError, match="there is no store"):
        await create_manage_memory_tool("memories").ainvoke({"content": "tea"})


@pytest.mark.parametrize("wrong", [(), None, ("create", "forget")])
def test_actions_that_are_refused(wrong):
    with pytest.raises(InvalidArgumentError, match="actions_permitted"):
        create_manage_memory_tool("memories", actions_permitted=wrong)
