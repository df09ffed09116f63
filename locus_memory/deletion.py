"""Proof of deletion: a search for words in every place of a database.

`audit_deletion` looks at each item and each checkpoint that is there, and then at the bytes of the
database: files with their free pages and logs, or raw values. The report names every place, how it
was looked at, and the places that cannot be looked at from here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from locus_memory._internal.running.paging import paged
from locus_memory.backends.base import Backend
from locus_memory.backends.remains import ByteSearch, Place
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.store.base import BaseStore, all_namespaces, scan_all

__all__ = ["DeletionAudit", "Place", "audit_deletion"]

_PAGE: Final = 500
_SHORTEST: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionAudit:
    """The report of an audit.

    Attributes:
        provider: The provider of the database.
        places: Every place, with its findings.
    """

    provider: str
    places: tuple[Place, ...]

    @property
    def found(self) -> int:
        """How often a word was found."""
        return sum(place.found for place in self.places)

    @property
    def is_proven(self) -> bool:
        """Whether every place was looked at, up to documented limits, and no word was found."""
        return not self.found and not any(place.problem for place in self.places)


async def audit_deletion(backend: Backend, words: Iterable[str]) -> DeletionAudit:
    """Search a database for words of deleted data, and return the report.

    Call `forget` and `backend.compact()` first. Choose words that only the deleted data has, such
    as a name or a marker. Case does not matter. A text index keeps the parts of a word such as
    `order-4711`, so each part of at least 4 characters is a hit as well, whoever wrote it.

    Args:
        backend: The database.
        words: The words, each of at least 4 characters: a shorter one is found by chance.

    Raises:
        InvalidArgumentError: There is no word, or one is too short.
        BackendError: The database failed.
    """
    listed = list(words)
    if not listed or any(len(word) < _SHORTEST for word in listed):
        raise InvalidArgumentError("give one or more words of at least 4 characters each")
    search = ByteSearch(listed)
    places = [
        await _if_any(lambda: backend.store, search, _items, "items"),
        await _if_any(lambda: backend.checkpointer, search, _checkpoints, "checkpoints"),
        *await backend.remains(search),
    ]
    return DeletionAudit(provider=backend.provider, places=tuple(places))


async def _if_any(
    part: Callable[[], Any],
    search: ByteSearch,
    look: Callable[[Any, ByteSearch], Awaitable[Place]],
    name: str,
) -> Place:
    try:
        found = part()
    except ConfigurationError:
        return Place(name=name, how="the provider has none")
    return await look(found, search)


async def _items(store: BaseStore, search: ByteSearch) -> Place:
    count = size = found = 0
    async for space in all_namespaces(store):
        async for item in scan_all(store, space):
            data = orjson.dumps([space, item.key, item.value, item.metadata])
            count, size, found = count + 1, size + len(data), found + search.count_plain(data)
    how = f"names, value and metadata of {count} items"
    return Place(name="items", how=how, bytes=size, found=found)


async def _checkpoints(checkpointer: BaseCheckpointer, search: ByteSearch) -> Place:
    count = size = found = 0
    async for thread in paged(lambda after: checkpointer.list_threads(_PAGE, after=after)):
        async for data in _states(checkpointer, thread):
            count, size, found = count + 1, size + len(data), found + search.count_plain(data)
    how = f"names, state and metadata of {count} checkpoints"
    return Place(name="checkpoints", how=how, bytes=size, found=found)


async def _states(checkpointer: BaseCheckpointer, thread: str) -> AsyncIterator[bytes]:
    async for info in paged(
        lambda before: checkpointer.list_with_metadata(thread, _PAGE, before=before),
        lambda info: info.checkpoint_id,
    ):
        state: Any = await checkpointer.load(thread, info.checkpoint_id)
        document = state.to_checkpoint() if hasattr(state, "to_checkpoint") else state
        names = [thread, info.checkpoint_id, info.metadata, info.forked_from]
        yield orjson.dumps([*names, document], default=str)
