"""Recall at an earlier moment: the memories that were current then, ranked as they are now."""

from __future__ import annotations

from datetime import datetime

from locus_memory.events import emit
from locus_memory.memory.blend import Blend
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.ledger.revision import current_put
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import Scope
from locus_memory.registry import get_store
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import embedded_put
from locus_memory.retrieval.embedding import embed
from locus_memory.store.item import Put

__all__ = ["RecallAt"]


class RecallAt:
    """A search among the memories that were current at a moment, whatever the store can search.

    A store searches current memories only. So those of the moment are copied to a store in memory,
    each with the search text that it had, and that store is searched.

    Args:
        ledger: The ledger of the memories.
        embedder: Adds vector search; each search then embeds the memories of the moment.
    """

    def __init__(self, ledger: Ledger, embedder: Embedder | None = None) -> None:
        self._ledger = ledger
        self._embedder = embedder

    async def find(
        self,
        scope: Scope,
        moment: datetime,
        limit: int,
        query: str | None = None,
        *,
        selection: Selection,
        blend: Blend | None = None,
    ) -> list[Memory]:
        """Return memories that were current at a moment, the best first; as `Recall.find`.

        Ages and expiry are those of the moment. The trust of then is not known: it is that of a
        new memory.

        Args:
            scope: The scope of the memories.
            moment: The moment, in UTC.
            limit: At most this many.
            query: The subject of the memories.
            selection: The memories that count.
            blend: The order of the hits of a query; `None`: that of the search.

        Raises:
            InvalidArgumentError: As for `Recall.find`.
            BackendError: The store failed.
        """
        puts = await self._puts(scope, selection.type, moment)
        embedder = self._embedder if query else None
        if embedder is not None:
            puts = await _with_vectors(puts, embedder)
        async with get_store("memory") as store:
            await store.put_batch(puts)
            recall = Recall(store, embedder, clock=moment.timestamp)
            return await recall.find(
                scope, limit, query, strict=True, selection=selection, blend=blend
            )

    async def _puts(self, scope: Scope, kind: MemoryType | None, moment: datetime) -> list[Put]:
        """Return the puts of the memories of a moment, the oldest first."""
        found = [
            each
            for one in ([kind] if kind else MemoryType)
            async for each in self._ledger.worded_at(scope, one, moment)
        ]
        found.sort(key=lambda each: str(each[0].metadata.get("valid_from")))
        return [current_put(scope, memory, text) for memory, text in found]


async def _with_vectors(puts: list[Put], embedder: Embedder) -> list[Put]:
    """Return the puts with vectors of their contents; without, if the embedder fails."""
    contents = [put.value["content"] for put in puts]
    try:
        vectors = await embed(embedder, contents, "document")
    except Exception as error:  # noqa: BLE001 - reported; words must do
        emit("memory.embed_failed", error=error, texts=len(contents))
        return puts
    return [
        embedded_put(put, vector, embedder, source=content)
        for put, vector, content in zip(puts, vectors, contents, strict=True)
    ]
