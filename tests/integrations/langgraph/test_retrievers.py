"""Retrievers of LangChain over a hybrid search."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from locus_memory import HybridSearch, open_backend
from locus_memory.integrations.langgraph import LocusSearchRetriever
from locus_memory.store.wrappers import EmbeddingStore
from locus_memory.testing import FakeEmbedder

ADA = ("users", "ada")
FACTS = {"diet": "Ada is allergic to nuts.", "home": "Ada lives in Lisbon.", "work": "A luthier."}


@pytest.fixture
async def search(provider):
    url, options = provider
    async with open_backend(url, **options) as backend:
        embedder = FakeEmbedder(64)
        store = EmbeddingStore(backend.store, embedder)
        for key, text in FACTS.items():
            await store.put(ADA, key, {"text": text}, {"kind": "fact"})
        await store.put((*ADA, "old"), "home", {"text": "Ada lives in Porto."}, {"kind": "past"})
        yield HybridSearch(backend.store, embedder)


class TestRetriever:
    async def test_the_best_items_come_first(self, search):
        retriever = LocusSearchRetriever.over(search, ADA, top_k=2)
        assert isinstance(retriever, BaseRetriever)
        [first, _] = await retriever.ainvoke("Where does Ada live?")
        assert (first.page_content, first.id) == (FACTS["home"], "home")
        told = {name: first.metadata[name] for name in ("namespace", "key", "kind")}
        assert told == {"namespace": list(ADA), "key": "home", "kind": "fact"}
        assert 0 <= first.metadata["relevance"] <= 1
        assert set(first.metadata) == {*told, "score", "relevance"}

    async def test_its_options_are_those_of_the_search(self, search):
        retriever = LocusSearchRetriever.over(
            search, ADA, recursive=True, filter={"kind": "past"}, min_score=0.0
        )
        assert [each.page_content for each in await retriever.ainvoke("Ada lives")] == [
            "Ada lives in Porto."
        ]
        both = LocusSearchRetriever.over(search, [ADA, (*ADA, "old")], top_k=10)
        found = await both.ainvoke("Ada lives")
        assert {tuple(each.metadata["namespace"]) for each in found} == {ADA, (*ADA, "old")}

    async def test_it_is_a_part_of_a_chain(self, search):
        chain = LocusSearchRetriever.over(search, ADA, top_k=1) | RunnableLambda(
            lambda found: found[0].page_content
        )
        assert await chain.abatch(["nuts", "Lisbon"]) == [FACTS["diet"], FACTS["home"]]


def test_it_blocks_where_no_event_loop_runs(tmp_path):
    where = f"sqlite:{tmp_path / 'test.db'}"

    async def fill():
        async with open_backend(where) as backend:
            await backend.store.put(ADA, "home", {"text": FACTS["home"]})

    asyncio.run(fill())
    retriever = LocusSearchRetriever.over(HybridSearch(where), ADA)
    assert [each.id for each in retriever.invoke("Lisbon")] == ["home"]
    asyncio.run(retriever.search.close())
