"""The runs of the log layer: what the model saw of the memory, one record for each run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import count
from typing import Final, Self

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.memory.layers.log import LOG_DAYS
from locus_memory.memory.layers.records import Tokens, readable, record_of, value_of
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore, all_keys, all_namespaces
from locus_memory.store.item import Put

__all__ = ["RunLog", "SeenRun", "drop_runs"]

_MOST: Final = 1_000
_SLACK: Final = 50
"""The most records of a scope, and after how many writes a process looks for too many of them."""

_MESSAGE: Final = 10_000
_TAIL: Final = 20_000
_LONGEST: Final = 40_000
"""The most characters of the message, of the tail, and of all texts of a record."""

_SCOPES: Final = 4_096

_RUNS: Final = Scope(("*",)).runs[1:]
"""The last labels of the namespace of the records of a scope."""

_numbers: Final = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRun:
    """What a model was shown of the memory in one run.

    Attributes:
        thread: The thread.
        at: The moment the run began, ISO 8601 in UTC.
        message: The latest text of the user; empty: there is none. `None`: it is withheld, since
            it may hold a secret.
        stable: The block at the end of the system prompt; `None`: nothing was known.
        tail: The block in front of the message; `None`: nothing more answered it.
        tokens: The tokens of both parts as messages.
        items: How many lines both have, besides fences and headings.
        cut: How many characters of the texts are left out here, since they were longer than
            40,000; the model saw them.
        since: The moment of the oldest note or quote that was shown; empty: there was none.
    """

    thread: str
    at: str
    message: str | None
    stable: str | None = None
    tail: str | None = None
    tokens: Tokens = 0
    items: int = 0
    cut: int = 0
    since: str = ""

    def bounded(self) -> Self:
        """Return the record with texts of at most 40,000 characters together."""
        message, tail = self.message and self.message[:_MESSAGE], self.tail and self.tail[:_TAIL]
        stable = self.stable and self.stable[: _LONGEST - _length(message, tail)]
        cut = _length(self.message, self.stable, self.tail) - _length(message, stable, tail)
        return replace(self, message=message, stable=stable, tail=tail, cut=cut)


_SEEN: Final = partial(record_of, SeenRun)


class RunLog:
    """The records of runs in the log of scopes.

    Args:
        store: The store, which this never closes.
    """

    def __init__(self, store: BaseStore) -> None:
        self._store = store
        self._written = RecentlyUsed[int](_SCOPES)

    def put(self, scope: Scope, run: SeenRun) -> Put:
        """Return the put of a record; its key is in the order of time."""
        return Put(
            namespace=scope.runs,
            key=f"{run.at}/{next(_numbers):012}{_mark(run.thread)}",
            value=value_of(run.bounded()),
            ttl=LOG_DAYS * 86_400 if self._store.capabilities.ttl else None,
            text="",
        )

    async def trim(self, scope: Scope) -> None:
        """Erase the oldest records of a scope if there may be too many; call it after each write.

        Raises:
            BackendError: The store failed.
        """
        lane = scope.lane("")
        written = self._written.get(lane) or 0
        self._written.put(lane, written + 1)
        if written % _SLACK == 0:
            keys = await all_keys(self._store, scope.runs)
            old = keys[: -(_MOST - _SLACK)]
            await self._store.delete_batch([(scope.runs, key) for key in old])

    async def newest(self, scope: Scope, thread: str | None, limit: int) -> list[SeenRun]:
        """Return the newest records of a thread, or of all threads, the newest first.

        An item that is not a record is reported as `memory.record_unreadable`.

        Raises:
            BackendError: The store failed.
        """
        mark = "" if thread is None else _mark(thread)
        keys = [key for key in await all_keys(self._store, scope.runs) if key.endswith(mark)]
        names = [(scope.runs, key) for key in keys[::-1][:limit]]
        found = await self._store.get_batch(names)
        read = (readable(_SEEN, found[name], "runs") for name in names if name in found)
        return [run for run in read if run is not None]


async def drop_runs(store: BaseStore, thread: str) -> None:
    """Erase the records of a thread's runs, in all scopes.

    Raises:
        BackendError: The store failed.
    """
    mark = _mark(thread)
    async for space in all_namespaces(store, suffix=_RUNS):
        keys = await all_keys(store, space)
        await store.delete_batch([(space, key) for key in keys if key.endswith(mark)])


def _mark(thread: str) -> str:
    """Return the end of the keys of a thread's records."""
    return f"/{blake2b(thread.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def _length(*texts: str | None) -> int:
    return sum(len(text or "") for text in texts)
