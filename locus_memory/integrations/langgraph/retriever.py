"""`LocusRetriever` and `LocusSearchRetriever`: documents or items, as retrievers of LangChain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr
from typing_extensions import override

from locus_memory.documents.fusion import Retriever
from locus_memory.documents.values import RetrievalResult
from locus_memory.retrieval.embedders.marks import unmarked
from locus_memory.retrieval.hybrid import Hit, HybridSearch, SearchResult
from locus_memory.store.item import Namespace
from locus_memory.sync import Bridge

__all__ = ["LocusRetriever", "LocusSearchRetriever"]


class _Bridged(BaseRetriever, ABC):
    """A retriever with one asynchronous method, of which the blocking one is made."""

    _bridge: Bridge = PrivateAttr(default_factory=Bridge)

    @abstractmethod
    async def _found(self, query: str) -> list[Document]:
        """Return the documents that fit a query, the best first."""

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        return await self._found(query)

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        return self._bridge.run(self._found(query))


class LocusRetriever(_Bridged):
    """A retriever over a `DocumentIndex`, for chains and for LangGraph's graphs.

    A document's metadata is that of its chunk, with its `score`, from 0 to 1. `ainvoke` needs
    nothing more; `invoke` runs the index on a thread of its own, so use an index that no running
    event loop has opened.

    Attributes:
        index: The index, which the caller closes.
        top_k: At most this many chunks.
        min_score: Chunks with a lower score are left out.
        condition: Only matching chunks are found, as `filter` of `DocumentIndex.retrieve`.
    """

    index: Any
    top_k: int = 5
    min_score: float | None = None
    condition: Mapping[str, Any] | None = None

    @classmethod
    def over(
        cls,
        index: Retriever,
        *,
        top_k: int = 5,
        min_score: float | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
    ) -> LocusRetriever:
        """Return a retriever over an index."""
        return cls(index=index, top_k=top_k, min_score=min_score, condition=filter)

    @override
    async def _found(self, query: str) -> list[Document]:
        found: list[RetrievalResult] = await self.index.retrieve(
            query, top_k=self.top_k, min_score=self.min_score, filter=self.condition
        )
        return [
            Document(page_content=each.content, metadata={**each.metadata, "score": each.score})
            for each in found
        ]


class LocusSearchRetriever(_Bridged):
    """A retriever over a `HybridSearch`: the items of a store, such as memories or turns.

    The content of a document is the text of its item, and its id the item's key. Its metadata is
    that of the item, with its `namespace`, `key`, `score` and `relevance`. For `invoke` see
    `LocusRetriever`.

    Attributes:
        search: The search, which the caller closes.
        namespace: The namespace to search; a list of namespaces is searched as one.
        top_k: At most this many items.
        min_score: Items with a lower relevance, from 0 to 1, are left out.
        condition: Only matching items are found, as `filter` of `HybridSearch.search`.
        recursive: Whether the descendants of the namespace are searched as well.
    """

    search: Any
    namespace: tuple[str, ...] | list[tuple[str, ...]]
    top_k: int = 5
    min_score: float | None = None
    condition: Mapping[str, Any] | None = None
    recursive: bool = False

    @classmethod
    def over(
        cls,
        search: HybridSearch,
        namespace: Namespace | list[Namespace],
        *,
        top_k: int = 5,
        min_score: float | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
        recursive: bool = False,
    ) -> LocusSearchRetriever:
        """Return a retriever over a search."""
        return cls(
            search=search,
            namespace=namespace,
            top_k=top_k,
            min_score=min_score,
            condition=filter,
            recursive=recursive,
        )

    @override
    async def _found(self, query: str) -> list[Document]:
        hits: SearchResult = await self.search.search(
            self.namespace,
            query,
            self.top_k,
            filter=self.condition,
            recursive=self.recursive,
            min_score=self.min_score,
        )
        return [_document(hit) for hit in hits]


def _document(hit: Hit) -> Document:
    told = {
        "namespace": list(hit.item.namespace),
        "key": hit.item.key,
        "score": hit.score,
        "relevance": hit.relevance,
    }
    return Document(
        page_content=hit.text, id=hit.item.key, metadata={**unmarked(hit.item.metadata), **told}
    )
