"""Proof of deletion: a search for words in every place of a database.

`audit_deletion` looks at each item and each checkpoint that is there, and then at the bytes of the
database: files with their free pages and logs, or raw values. The report names every place, how it
was looked at, and the places that cannot be looked at from here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, Final
from unicodedata import combining, normalize

import orjson

from locus_memory._internal.quoting import quote
from locus_memory._internal.running.paging import paged
from locus_memory.backends.base import Backend, checkpointer_of, store_of
from locus_memory.backends.remains import ByteSearch, Place
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import InvalidArgumentError
from locus_memory.store.base import BaseStore, all_namespaces, scan_all

__all__ = ["DeletionAudit", "Place", "audit_deletion"]

_PAGE: Final = 500
_SHORTEST: Final = 4
_SHOWN: Final = 5


_Part = tuple[str, bytes]
"""An item or a checkpoint: its name, and what is searched."""


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
        words: The words, each of at least 4 bytes of UTF-8 without its accents, which are two
            characters of Chinese: a shorter one is found by chance.

    Raises:
        InvalidArgumentError: There is no word, or one is too short.
        BackendError: The database failed.
    """
    listed = list(words)
    short = [word for word in listed if _length(word) < _SHORTEST]
    if short or not listed:
        told = f", not {quote(short[0])}: others' data has it by chance" if short else ""
        raise InvalidArgumentError(f"give one or more words of at least 4 characters each{told}")
    search = ByteSearch(listed)
    store, checkpointer = store_of(backend), checkpointer_of(backend)
    items = None if store is None else _items(store)
    states = None if checkpointer is None else _states(checkpointer)
    places = [
        await _searched(search, items, "items", "value"),
        await _searched(search, states, "checkpoints", "state"),
        *await backend.remains(search),
    ]
    return DeletionAudit(provider=backend.provider, places=tuple(places))


def _length(word: str) -> int:
    """Return the bytes of a word as a text index keeps it: without accents."""
    plain = (each for each in normalize("NFD", word) if not combining(each))
    return len("".join(plain).encode("utf-8", "surrogatepass"))


async def _searched(
    search: ByteSearch, parts: AsyncIterator[_Part] | None, name: str, what: str
) -> Place:
    """Return what a search finds in all items or checkpoints."""
    if parts is None:
        return Place(name=name, how="the provider has none")
    count = size = found = 0
    where = list[str]()
    async for part, data in parts:
        hits = search.count_plain(data)
        count, size, found = count + 1, size + len(data), found + hits
        if hits and len(where) < _SHOWN:
            where.append(part)
    how = f"names, {what} and metadata of {count} {name}"
    return Place(name=name, how=how, bytes=size, found=found, where=tuple(where))


async def _items(store: BaseStore) -> AsyncIterator[_Part]:
    async for space in all_namespaces(store):
        async for item in scan_all(store, space):
            name = f"{'/'.join(space)} {item.key}"
            yield name, orjson.dumps([space, item.key, item.value, item.metadata])


async def _states(checkpointer: BaseCheckpointer) -> AsyncIterator[_Part]:
    async for thread in paged(lambda after: checkpointer.list_threads(_PAGE, after=after)):
        async for data in _states_of(checkpointer, thread):
            yield data


async def _states_of(checkpointer: BaseCheckpointer, thread: str) -> AsyncIterator[_Part]:
    async for info in paged(
        lambda before: checkpointer.list_with_metadata(thread, _PAGE, before=before),
        lambda info: info.checkpoint_id,
    ):
        state: Any = await checkpointer.load(thread, info.checkpoint_id)
        document = state.to_checkpoint() if hasattr(state, "to_checkpoint") else state
        names = [thread, info.checkpoint_id, info.metadata, info.forked_from]
        yield f"{thread}@{info.checkpoint_id}", orjson.dumps([*names, document], default=str)
