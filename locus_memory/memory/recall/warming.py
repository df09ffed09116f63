"""Warmed recalls: memories found after a turn, for the next turn of the same session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from locus_memory._internal.cancellation import kept
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.events import emit
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory, is_expired
from locus_memory.memory.scope import Scope, current_key
from locus_memory.store.base import BaseStore
from locus_memory.store.item import timestamp
from locus_memory.store.text import STOP_WORDS, query_words, stem

__all__ = ["MOST", "Warmed"]

MOST: Final = 5
"""How many memories of the turn before are put in front."""

_SECONDS: Final = 60.0
_SESSIONS: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Result:
    words: frozenset[str]
    names: tuple[str, ...]
    at: float


class Warmed:
    """One recall per scope and session, valid for 60 seconds.

    Only the names of the memories are kept. They are read again before they are shown, so a
    memory that was changed or forgotten meanwhile is never shown as it was.

    Args:
        store: The store of the memories.
        clock: Returns seconds since the epoch.
    """

    def __init__(self, store: BaseStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._results = RecentlyUsed[_Result](_SESSIONS)
        self._searches: set[asyncio.Task[list[Memory]]] = set()

    async def warm(
        self, scope: Scope, session_id: str, query: str, search: Coroutine[Any, Any, list[Memory]]
    ) -> None:
        """Wait for a search, and keep the names of the memories that share a word with its query.

        `close` ends the wait.
        """
        task = kept(search)
        self._searches.add(task)
        task.add_done_callback(self._searches.discard)
        await asyncio.wait({task})
        if task.cancelled():
            return
        words = _words(query)
        names = tuple(
            current_key(each.type, each.key)
            for each in task.result()
            if not words.isdisjoint(_words(each.content))
        )
        self._results.put(_lane(scope, session_id), _Result(words, names[:MOST], self._clock()))

    async def merged(
        self, scope: Scope, session_id: str, query: str | None, found: Sequence[Memory]
    ) -> list[Memory]:
        """Return the memories of the turn before, if the query is about them, then the found ones.

        A result that is too old, or of a query without a common word, is dropped. If the store
        fails, which is an event, the found ones are returned.
        """
        names = self.names(scope, session_id, query)
        warmed = await self.read(scope, names, found) if names else []
        if not warmed:
            return list(found)
        known = {current_key(each.type, each.key) for each in warmed}
        return [*warmed, *(each for each in found if current_key(each.type, each.key) not in known)]

    def names(self, scope: Scope, session_id: str, query: str | None) -> tuple[str, ...]:
        """Return the names of the memories of the turn before, if the query is about them.

        A result that is too old, or of a query without a common word, is dropped.
        """
        result = self._results.get(_lane(scope, session_id))
        if result is None:
            return ()
        is_new = 0 <= self._clock() - result.at <= _SECONDS
        if is_new and not result.words.isdisjoint(_words(query)):
            return result.names
        self._results.discard(_lane(scope, session_id))
        return ()

    async def read(
        self, scope: Scope, names: Sequence[str], found: Sequence[Memory] = ()
    ) -> list[Memory]:
        """Return the memories of these names as they are now; none, with an event, if that fails.

        Args:
            scope: The scope of the memories.
            names: Their names, see `current_key`.
            found: Memories that are read already.
        """
        try:
            return await self._read(scope, names, found)
        except Exception as error:  # noqa: BLE001 - reported; what was found must do
            emit("memory.search_failed", error=error, search="warmed")
            return []

    async def _read(
        self, scope: Scope, names: Sequence[str], found: Sequence[Memory]
    ) -> list[Memory]:
        """Return the memories of these names as they are now; the found ones are read already."""
        current = {current_key(each.type, each.key): each for each in found}
        unread = [name for name in names if name not in current]
        items = await asyncio.gather(
            *(self._store.get_item(scope.current, name) for name in unread)
        )
        for name, item in zip(unread, items, strict=True):
            memory = None if item is None else read_memory(item)
            if memory is not None and not is_expired(memory, timestamp(self._clock()).isoformat()):
                current[name] = memory
        return [current[name] for name in names if name in current]

    def close(self) -> None:
        """Cancel the searches in progress, and drop all results."""
        for task in tuple(self._searches):
            task.cancel()
        self._results = RecentlyUsed[_Result](_SESSIONS)


def _lane(scope: Scope, session_id: str) -> str:
    return repr((scope.namespace, session_id))


def _words(text: str | None) -> frozenset[str]:
    readable = (text or "").encode("utf-8", "replace").decode()
    return frozenset(stem(word) for word in query_words(readable) if word not in STOP_WORDS)
