"""Changes of items: one that keeps a vector, and one that is made again if others were first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from locus_memory.errors import VersionConflictError
from locus_memory.retrieval.embedders.marks import mark_of, marked
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Put, StoreItem

__all__ = ["insisting", "rewritten"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_ATTEMPTS: Final = 100


def insisting(
    change: Callable[_Arguments, Awaitable[_Result]],
) -> Callable[_Arguments, Coroutine[Any, Any, _Result]]:
    """Return a change that reads and writes again if another writer was faster, up to 100 times.

    If others are faster each time, it raises the `VersionConflictError` of the last one.
    """

    @wraps(change)
    async def insistent(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        for _ in range(1, _ATTEMPTS):
            with suppress(VersionConflictError):
                return await change(*args, **kwargs)
        return await change(*args, **kwargs)

    return insistent


async def rewritten(
    store: BaseStore, item: StoreItem, text: str, value: dict[str, Any] | None = None
) -> Put:
    """Return the put that changes the search text of an item, and perhaps its value.

    The metadata and the vector stay. The put names the version of the item.

    Args:
        store: The store of the item.
        item: The item.
        text: The new search text.
        value: The new value; `None`: the present one.

    Raises:
        BackendError: The store failed.
    """
    from locus_memory.store.wrappers.embedding import EmbeddingStore  # noqa: PLC0415 - few rewrite

    put = Put(
        namespace=item.namespace,
        key=item.key,
        value=item.value if value is None else value,
        metadata=item.metadata,
        if_version=item.version,
        text=text,
    )
    # An `EmbeddingStore` embeds the text itself, and does so again.
    if isinstance(store, EmbeddingStore) or not await has_semantic_search(store):
        return put
    vector = await store.get_embedding(item.namespace, item.key)
    mark = mark_of(item.metadata)
    if mark is not None and mark.text is not None:
        put = replace(put, metadata=marked(item.metadata, replace(mark, text=text)))
    return replace(put, embedding=vector)
