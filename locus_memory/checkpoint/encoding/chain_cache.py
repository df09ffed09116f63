"""The cache of the threads that a process saves, so that a save reads nothing back.

A `CachedChain` belongs to the chain of a thread's newest record. It holds the states that a next
delta can build on. They share strings with the caller's states, but no objects that the caller can
change.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from locus_memory._internal.running.cache_counts import counts_of
from locus_memory._internal.sameness import is_plain
from locus_memory.checkpoint.delta import apply
from locus_memory.checkpoint.encoding.frames import size_of
from locus_memory.checkpoint.record import Record
from locus_memory.checkpoint.states import Kind
from locus_memory.errors import CheckpointError

__all__ = ["CachedChain", "ChainCache", "Link", "replay_kind"]


@dataclass(frozen=True, slots=True)
class Link:
    """One record of a chain.

    Attributes:
        revision: The record's.
        checkpoint_id: The record's.
        level: The record's.
        replayed: Bytes of JSON that a load reads, for this record and those it builds on.
        document: The state after the record, kept only while a delta may build on it.
        plain: Whether the state is plain; see `sameness.is_plain`.
        texts: The keys of the state below which there is no number and no boolean.
    """

    revision: int
    checkpoint_id: str
    level: int
    replayed: int
    document: dict[str, Any] | None
    plain: bool
    texts: frozenset[str] = frozenset()


def texts_of(document: dict[str, Any] | None) -> frozenset[str]:
    """Return the keys of a state below which there is no number and no boolean."""
    pairs = (document or {}).items()
    return frozenset(key for key, value in pairs if is_plain(value, in_list=True))


@dataclass(frozen=True, slots=True)
class CachedChain:
    """The chain of a thread's newest record, the full record first.

    Attributes:
        links: The chain; empty for an empty thread.
        full_size: Bytes of the newest state, or a few less.
    """

    links: tuple[Link, ...] = ()
    full_size: int = 0

    @staticmethod
    def extended(links: tuple[Link, ...], link: Link, full_size: int) -> CachedChain:
        """Return the chain after a record that builds on the last of `links`."""
        return CachedChain((*_lightened(links), link), full_size)

    def before(self, checkpoint_id: str) -> CachedChain:
        """Return the chain before the record of this id; its replacement cannot build on it."""
        names = [link.checkpoint_id for link in self.links]
        if checkpoint_id not in names:
            return self
        return CachedChain(self.links[: names.index(checkpoint_id)], self.full_size)

    @classmethod
    def of(cls, chain: Sequence[Record]) -> CachedChain:
        """Return the cached chain of records read from the storage.

        Raises:
            CheckpointCorruptError: A record is damaged.
        """
        cached = cls()
        replayed = 0
        for record, document in zip(chain, replay_kind(chain)[0], strict=True):
            replayed += record.size
            link = Link(
                revision=record.revision,
                checkpoint_id=record.checkpoint_id,
                level=record.level,
                replayed=replayed,
                document=document,
                plain=False,
            )
            cached = cls.extended(cached.links, link, 0)
        size = size_of(cached.links[-1].document) if cached.links else 0
        # Only now, when few states are left to check.
        links = [
            replace(link, plain=is_plain(link.document), texts=texts_of(link.document))
            for link in cached.links
        ]
        return cls(tuple(links), size)


def _lightened(links: tuple[Link, ...]) -> tuple[Link, ...]:
    """Return `links` without the state that one more link after them makes useless.

    The last state stays, in case the next record is saved again. The state before each row of a
    lower level stays, for the delta that ends the row.
    """
    if len(links) < 3 or links[-1].level < links[-2].level:  # noqa: PLR2004 - never the full one
        return links
    return (*links[:-2], replace(links[-2], document=None), links[-1])


def replay_kind(chain: Sequence[Record]) -> tuple[list[Any], Kind]:
    """Return the state after each record of a chain, and the kind of the last one.

    The states share their unchanged parts.

    Raises:
        CheckpointCorruptError: A record is damaged.
    """
    documents: list[Any] = []
    kind = Kind.UNSAID
    for record in chain:
        content, letter = record.unpack()
        try:
            kind = Kind(letter)
            documents.append(content if record.base is None else apply(documents[-1], content))
        except ValueError as error:
            raise record.corrupt("a newer version wrote it: its kind is unknown") from error
        except CheckpointError as error:
            raise record.corrupt(str(error)) from error
    return documents, kind


_COUNTS: Final = counts_of("checkpoint")


class ChainCache:
    """The cached chains of the threads saved last, bounded by the bytes of their states.

    Event loops in several threads may share it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._chains: OrderedDict[str, CachedChain] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, thread_id: str) -> CachedChain | None:
        """Return the cached chain of a thread, if there is one."""
        with self._lock:
            cached = self._chains.get(thread_id)
            if cached is None:
                _COUNTS.misses += 1
                return None
            self._chains.move_to_end(thread_id)
            _COUNTS.hits += 1
            return cached

    def put(self, thread_id: str, cached: CachedChain) -> None:
        """Cache a chain, and evict the least recently used ones beyond the bound."""
        with self._lock:
            self._forget(thread_id)
            self._chains[thread_id] = cached
            self._bytes += _weight(cached)
            while self._bytes > self._max_bytes and self._chains:
                self._forget(next(iter(self._chains)))

    def discard(self, thread_id: str) -> None:
        """Drop a thread from the cache."""
        with self._lock:
            self._forget(thread_id)

    def _forget(self, thread_id: str) -> None:
        cached = self._chains.pop(thread_id, None)
        if cached is not None:
            self._bytes -= _weight(cached)


def _weight(cached: CachedChain) -> int:
    # The documents of a chain share their parts; the rest is pointers and links.
    return 4096 + 2 * cached.full_size
