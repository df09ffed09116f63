"""Removal of erased words from search texts: text search finds a memory by superseded ones too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from locus_memory.errors import VersionConflictError
from locus_memory.memory.batch import rewritten
from locus_memory.memory.ledger.revision import Shelf, text_without
from locus_memory.memory.models import MemoryType
from locus_memory.memory.scope import Scope, current_key
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Namespace

__all__ = ["take_out_words"]

_ATTEMPTS: Final = 100


async def take_out_words(
    store: BaseStore, scope: Scope, past: Iterable[tuple[Namespace, str]]
) -> None:
    """Change the search texts of current memories so that erased past versions do not match.

    Args:
        store: The store of the memories.
        scope: Their scope.
        past: The names of the history items to erase.

    Raises:
        VersionConflictError: Another writer changes a memory without pause.
        BackendError: The store failed.
    """
    gone: dict[tuple[MemoryType, str], set[str]] = {}
    for namespace, name in past:
        gone.setdefault((MemoryType(namespace[-2]), namespace[-1]), set()).add(name)
    for (kind, key), names in gone.items():
        await _insist(partial(_reword, store, scope, kind, key, names))


async def _insist(write: Callable[[], Awaitable[None]]) -> None:
    """Write, and retry while another writer is faster."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(VersionConflictError):
            return await write()
    return await write()


async def _reword(
    store: BaseStore, scope: Scope, kind: MemoryType, key: str, names: Collection[str]
) -> None:
    item = await store.get_item(scope.current, current_key(kind, key))
    if item is None:
        return
    records = [each async for each in scan_all(store, scope.history(kind, key))]
    gone = {int(name) for name in names if name.isdecimal()}
    text = text_without(Shelf(kind, key, item, tuple(records)), gone)
    if text is not None:
        await store.put_batch([await rewritten(store, item, text)])
