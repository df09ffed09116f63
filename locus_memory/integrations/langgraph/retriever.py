"""`LocusRetriever`: an index of documents as a retriever of LangChain."""

from __future__ import annotations

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
from locus_memory.sync import Bridge

__all__ = ["LocusRetriever"]


class LocusRetriever(BaseRetriever):
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
    _bridge: Bridge = PrivateAttr(default_factory=Bridge)

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

    async def _found(self, query: str) -> list[Document]:
        found: list[RetrievalResult] = await self.index.retrieve(
            query, top_k=self.top_k, min_score=self.min_score, filter=self.condition
        )
        return [
            Document(page_content=each.content, metadata={**each.metadata, "score": each.score})
            for each in found
        ]
