"""What an erasure of a user leaves in the store, and why."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from locus_memory._internal.running.paging import paged
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace

__all__ = ["Kept", "kept_places"]

Kept = tuple[Namespace, str]
"""A namespace that stays, and the reason."""

_BATCH: Final = 500
_USERS: Final = "users"
_DEEPEST: Final = 4
"""The most labels of a prefix under which the name of a user is looked for."""

_SHARED: Final = {
    "sources": "an index of documents that users share",
    "tree": "a tree of resources that users share",
}
"""What users share, by a label of its namespaces; both have chunks beside it."""

_NAMESAKE: Final = "a user of this name under another prefix, which has to be named"


async def kept_places(store: BaseStore, user_id: str, own: Collection[Namespace]) -> list[Kept]:
    """Return what stays of documents, of resources, and under other prefixes.

    Args:
        store: The store.
        user_id: The user.
        own: The namespaces that go as a whole.

    Raises:
        BackendError: The store failed.
    """
    kept: dict[Namespace, str] = {}
    for label, why in _SHARED.items():
        async for space in paged(partial(_ending, store, label)):
            root = space[:-1]
            # What is below another user is theirs alone.
            if _USERS not in root and await store.list_namespaces((*root, "chunks"), 1):
                kept[root] = why
    for depth in range(1, _DEEPEST + 1):
        pattern = (*["*"] * depth, _USERS, user_id)
        for space in await store.list_namespaces(pattern, _BATCH, max_depth=len(pattern)):
            # In a listing, the name "*" matches any other.
            if space[-2:] == pattern[-2:] and space not in own:
                kept[space] = _NAMESAKE
    return sorted(kept.items())


async def _ending(store: BaseStore, label: str, after: Namespace | None) -> list[Namespace]:
    return await store.list_namespaces(None, _BATCH, suffix=(label,), after=after)
