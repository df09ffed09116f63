"""Recall at an earlier moment: what was known or true then, searched as what is current is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from locus_memory.memory.layers.episodes import EpisodeBook, episode_put
from locus_memory.memory.ledger.ledger import Ledger, vectors_of
from locus_memory.memory.ledger.revision import current_put
from locus_memory.memory.models import MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.memory.validity import Then, said_at
from locus_memory.registry import get_store
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import embedded_put
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put, StoreItem

__all__ = ["copied", "said_then"]

_EVERY = 2**31


@asynccontextmanager
async def copied(
    then: Then,
    *,
    ledger: Ledger,
    embedder: Embedder | None,
    scope: Scope,
    type: MemoryType | None = None,  # noqa: A002 - the field's word
    further: Iterable[Put] = (),
) -> AsyncGenerator[BaseStore]:
    """Yield a store in memory that has the memories of a scope as they were at a moment.

    A store searches current memories only. So those of the moment are copied, each with the search
    text that it had. The trust of then is not known: it is that of a new memory.

    Args:
        then: The moment.
        ledger: The ledger of the memories.
        embedder: Adds vector search: the memories are embedded again.
        scope: The scope of the memories.
        type: Only memories of this type.
        further: What else the store has.

    Raises:
        BackendError: The store failed.
    """
    found = [
        each
        for kind in ([type] if type else MemoryType)
        async for each in ledger.memories_at(scope, kind, then)
    ]
    # The newest of them are the last ones that are put.
    found.sort(key=lambda each: said_at(each[0]))
    puts = [current_put(scope, memory, text) for memory, text in found]
    if embedder is not None:
        vectors = await vectors_of(embedder, [memory.content for memory, _ in found])
        puts = [_with_vector(put, vectors, embedder) for put in puts]
    async with get_store("memory") as store:
        await store.put_batch([*puts, *further])
        yield store


async def said_then(
    store: BaseStore, scope: Scope, then: Then, turns: Iterable[StoreItem]
) -> list[Put]:
    """Return the puts of the notes of a moment, and those of recorded turns.

    Raises:
        BackendError: The store failed.
    """
    episodes = await EpisodeBook(store).newest(scope, _EVERY, then=then)
    notes = [episode_put(scope, each) for each in reversed(episodes)]
    said = {
        (each.namespace, each.key): Put(
            namespace=each.namespace, key=each.key, value=each.value, metadata=each.metadata
        )
        for each in turns
    }
    return [*notes, *said.values()]


def _with_vector(put: Put, vectors: Mapping[str, Sequence[float]], embedder: Embedder) -> Put:
    content = put.value["content"]
    vector = vectors.get(content)
    return put if vector is None else embedded_put(put, vector, embedder, source=content)
