"""LangGraph's store over ours, inside a graph."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from langgraph.config import get_store as store_of_the_graph
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from typing_extensions import TypedDict

from locus_memory import get_store
from locus_memory.integrations.langgraph.store import LocusStore
from locus_memory.testing import FakeEmbedder


class Turn(TypedDict, total=False):
    said: str
    recalled: list[str]


def where(name, request, tmp_path):
    if name == "postgresql":
        url = request.getfixturevalue("postgresql_server").url
        schema_of = request.getfixturevalue("schema_of")
        return get_store(name, database=url, schema=schema_of(tmp_path))
    if name == "redis":
        mark = "t_" + blake2b(bytes(tmp_path), digest_size=8).hexdigest()
        url = request.getfixturevalue("redis_server").url
        return get_store(name, url=url, key_prefix=mark)
    return get_store(name, **({"path": tmp_path / "a.db"} if name == "sqlite" else {}))


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis"])
async def store(request, tmp_path):
    index = {"embed": FakeEmbedder(), "fields": ["text", "words[*]"]}
    async with where(request.param, request, tmp_path) as ours:
        yield LocusStore(ours, index=index)


def compiled(node, store):
    builder = StateGraph(Turn)
    builder.add_node("remember", node)
    builder.add_edge(START, "remember")
    builder.add_edge("remember", END)
    return builder.compile(store=store)


async def test_a_node_has_it_in_its_runtime(store):
    async def remember(state: Turn, runtime: Runtime) -> Turn:
        found = await runtime.store.asearch(("users", "ada"), query=state["said"], limit=1)
        value = {"text": state["said"], "words": state["said"].split()}
        await runtime.store.aput(("users", "ada"), state["said"], value)
        return {"recalled": [hit.key for hit in found]}

    graph = compiled(remember, store)
    for said in ("I like oolong tea", "my cat is called Mia", "я люблю чай"):
        await graph.ainvoke({"said": said})
    for said, recalled in (("tea", "I like oolong tea"), ("cat", "my cat is called Mia")):
        assert (await graph.ainvoke({"said": said}))["recalled"] == [recalled]
        await store.adelete(("users", "ada"), said)
    assert (await graph.ainvoke({"said": "чай"}))["recalled"] == ["я люблю чай"]


async def test_a_node_asks_for_it(store):
    async def remember(state: Turn) -> Turn:
        await store_of_the_graph().aput(("seen",), state["said"], {"text": state["said"]})
        return {"recalled": [hit.key for hit in await store_of_the_graph().asearch(("seen",))]}

    graph = compiled(remember, store)
    assert (await graph.ainvoke({"said": "tea"}))["recalled"] == ["tea"]


async def test_a_blocking_node_of_an_asynchronous_graph(store):
    """LangGraph runs it in a thread of its own, where a call may block."""

    def remember(state: Turn, *, store: BaseStore) -> Turn:
        store.put(("seen",), state["said"], {"text": state["said"]})
        return {"recalled": [hit.key for hit in store.search(("seen",), query="tea")]}

    assert (await compiled(remember, store).ainvoke({"said": "tea"}))["recalled"] == ["tea"]


def test_a_blocking_graph(tmp_path):
    def remember(state: Turn, runtime: Runtime) -> Turn:
        runtime.store.put(("seen",), state["said"], {"text": state["said"]})
        return {"recalled": [hit.key for hit in runtime.store.search(("seen",))]}

    with LocusStore(f"sqlite:{tmp_path / 'a.db'}") as store:
        graph = compiled(remember, store)
        graph.invoke({"said": "tea"})
        assert graph.invoke({"said": "mate"})["recalled"] == ["mate", "tea"]
