"""Recall at an earlier moment: the memories that were current then, ranked as they are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from locus_memory.memory.blend import Blend
from locus_memory.memory.ledger.ledger import Ledger, vectors_of
from locus_memory.memory.ledger.revision import current_put
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import Scope
from locus_memory.registry import get_store
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import embedded_put
from locus_memory.store.item import Put

__all__ = ["find_at"]


async def find_at(
    moment: datetime,
    limit: int,
    query: str | None = None,
    *,
    ledger: Ledger,
    embedder: Embedder | None,
    scope: Scope,
    selection: Selection,
    blend: Blend | None = None,
) -> list[Memory]:
    """Return memories that were current at a moment, the best first; as `Recall.find`.

    A store searches current memories only. So those of the moment are copied to a store in memory,
    each with the search text that it had, and that store is searched.

    Ages and expiry are those of the moment. The trust of then is not known: it is that of a new
    memory.

    Args:
        moment: The moment, in UTC.
        limit: At most this many.
        query: The subject of the memories.
        ledger: The ledger of the memories.
        embedder: Adds vector search; each search then embeds the memories of the moment.
        scope: The scope of the memories.
        selection: The memories that count.
        blend: The order of the hits of a query; `None`: that of the search.

    Raises:
        InvalidArgumentError: As for `Recall.find`.
        BackendError: The store failed.
    """
    found = [
        each
        for kind in ([selection.type] if selection.type else MemoryType)
        async for each in ledger.memories_at(scope, kind, moment)
    ]
    # The newest of them are the last ones that are put.
    found.sort(key=lambda each: str(each[0].metadata.get("valid_from")))
    puts = [current_put(scope, memory, text) for memory, text in found]
    embedder = embedder if query else None
    if embedder is not None:
        vectors = await vectors_of(embedder, [memory.content for memory, _ in found])
        puts = [_with_vector(put, vectors, embedder) for put in puts]
    async with get_store("memory") as store:
        await store.put_batch(puts)
        recall = Recall(store, embedder, clock=moment.timestamp)
        return await recall.find(scope, limit, query, strict=True, selection=selection, blend=blend)


def _with_vector(put: Put, vectors: Mapping[str, Sequence[float]], embedder: Embedder) -> Put:
    content = put.value["content"]
    vector = vectors.get(content)
    return put if vector is None else embedded_put(put, vector, embedder, source=content)
