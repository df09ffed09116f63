"""The checkpoint engine: deltas, chains and retention over any storage."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from os import urandom
from typing import Any, Generic, TypedDict

from typing_extensions import override

from locus_memory._internal.offload import in_thread
from locus_memory._internal.options import checked
from locus_memory._internal.quoting import quote
from locus_memory._internal.sameness import own_copy
from locus_memory.checkpoint.base import (
    UNSET,
    BaseCheckpointer,
    CheckpointerCapabilities,
    CheckpointInfo,
    RestoredCheckpoint,
    State,
    StateT,
    StorageStats,
    Unset,
)
from locus_memory.checkpoint.delta import diff
from locus_memory.checkpoint.encoding.chain_cache import CachedChain, ChainCache, replay_kind
from locus_memory.checkpoint.encoding.drafting import drafted_by
from locus_memory.checkpoint.encoding.encode import Draft, draft
from locus_memory.checkpoint.encoding.frames import dumps
from locus_memory.checkpoint.forks import with_heir
from locus_memory.checkpoint.four_verbs import whole_storage
from locus_memory.checkpoint.inmemory import InMemoryDeltaStorage
from locus_memory.checkpoint.pending import holder_of
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.retention import age_of, cutoff, expendable, kept_base, orphans
from locus_memory.checkpoint.saves import (
    Save,
    busy,
    check_names,
    checked_metadata,
    restored_save,
)
from locus_memory.checkpoint.states import (
    Kind,
    Written,
    check_state_type,
    restored,
    write_state,
)
from locus_memory.checkpoint.storage import INLINE_BYTES, DeltaStorage, StaleChainError
from locus_memory.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    EncryptionError,
    InvalidArgumentError,
    StateTypeError,
)
from locus_memory.events import emit
from locus_memory.state import AgentState
from locus_memory.store.filters import parse_filter
from locus_memory.store.item import check_identifier, check_limit

__all__ = ["CheckpointerOptions", "DeltaCheckpointer"]

_ATTEMPTS = 8
"""How often a write is tried while other writers keep changing the thread."""

_SPARED_LEVELS = 2
"""How many levels lower zlib compresses a long document.

Of 60 KB, level 4 takes 40% of the time of level 6, for 4% more bytes; of 2 KB, all of it.
"""

_LONG_DOCUMENT = 32_768
"""The length of a long document, in bytes."""


class CheckpointerOptions(TypedDict, Generic[StateT], total=False):
    """The options of `DeltaCheckpointer`, which the checkpointer of every backend accepts too."""

    max_chain_depth: int
    compression_level: int
    state_type: type[StateT] | Unset | None
    cache_bytes: int
    clock: Callable[[], float]


class DeltaCheckpointer(BaseCheckpointer[StateT]):
    """The checkpointer: full states and deltas over any `DeltaStorage`.

    The cost of a save, in time and in bytes, depends on what changed since the last one, not on the
    length of the thread. A copy of the last state is cached, which shares its strings with the
    caller's state. So any part of a state may be changed in place between saves.

    Args:
        storage: The storage of the records; in memory by default. It is closed with the
            checkpointer. One of the Locus SDK, of four verbs, is seen through a
            `FourVerbStorage`.
        max_chain_depth: A load replays at most this many deltas; 0 stores full states only, and
            caches none.
        compression_level: The level of zlib, from 0 to 9. A record of more than 32 KB is compressed
            two levels lower: higher levels cost far more time there than they save bytes.
        state_type: The type that `load` returns: a class with `from_checkpoint`, a pydantic model
            or a dataclass; or `None` for dicts. By default, an `AgentState` if one was saved, else
            a dict.
        cache_bytes: The limit of the cache of the states saved last, in bytes.
        clock: Returns seconds since the epoch; informative, the order never depends on it.

    Raises:
        InvalidArgumentError: An option is out of its range.
        ConfigurationError: An option has the wrong type.
    """

    @checked
    def __init__(
        self,
        storage: DeltaStorage | None = None,
        max_chain_depth: int = 64,
        compression_level: int = 6,
        *,
        state_type: type[StateT] | Unset | None = UNSET,
        cache_bytes: int = 64 * 2**20,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 0 <= compression_level <= 9:  # noqa: PLR2004 - zlib's levels
            raise InvalidArgumentError(f"compression_level is 0 to 9, not {compression_level}")
        self.storage = InMemoryDeltaStorage() if storage is None else whole_storage(storage)
        self.max_chain_depth = check_limit(max_chain_depth, "max_chain_depth")
        self.compression_level = compression_level
        self.state_type = check_state_type(state_type)
        self.cache_bytes = check_limit(cache_bytes, "cache_bytes")
        self.clock = clock
        self._chains = ChainCache(self.cache_bytes)

    @property
    def capabilities(self) -> CheckpointerCapabilities:
        """Everything but search over states and expiry."""
        return CheckpointerCapabilities(
            metadata_query=True,
            vacuum=True,
            branching=True,
            list_threads=True,
            list_with_metadata=True,
            persistent_checkpoint_ids=self.storage.persistent,
        )

    @override
    async def save(
        self,
        state: State,
        thread_id: str,
        checkpoint_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        expected_parent: str | Unset | None = UNSET,
    ) -> str:
        check_names(thread_id, expected_parent if isinstance(expected_parent, str) else None)
        written = write_state(state)
        # Drawn in one call: with many threads running, a call of the system is slow.
        drawn = urandom(24)
        head = RecordHead.unsaved(
            thread_id,
            _name(checkpoint_id, drawn[:16]),
            metadata=checked_metadata(metadata),
            created_at=self.clock(),
        )
        save = Save(
            head,
            named=checkpoint_id is not None,
            expected_parent=expected_parent,
            kind=written.kind,
        )
        return await self._save(save, written, int.from_bytes(drawn[16:]))

    @override
    async def restore(
        self,
        thread_id: str,
        checkpoint: RestoredCheckpoint,
        *,
        expected_parent: str | Unset | None = UNSET,
    ) -> None:
        save, written = restored_save(thread_id, checkpoint, expected_parent)
        await self._save(save, written, int.from_bytes(urandom(8)))

    async def _save(self, save: Save, written: Written, drawn: int) -> str:
        """Store a state as the newest checkpoint of its thread; return its id.

        Args:
            save: The arguments of the call.
            written: The state.
            drawn: A random number of 64 bits, for the revision.
        """
        for attempt in range(_ATTEMPTS):
            cached = await self._cached_chain(save.head.thread_id)
            if attempt or save.named:
                cached = cached.before(save.head.checkpoint_id)
            revision = (drawn + attempt) % 2**63
            work = partial(
                draft,
                cached=cached,
                checkpoint_id=save.head.checkpoint_id,
                revision=revision,
                max_chain_depth=self.max_chain_depth,
                shared=written.shared,
            )
            drafted = await drafted_by(work, written, compared=bool(cached.links))
            try:
                await self._store(save, drafted, revision, replacing=attempt > 0 and save.named)
            except StaleChainError:
                self._chains.discard(save.head.thread_id)
            else:
                if self.max_chain_depth:
                    self._chains.put(save.head.thread_id, drafted.cached)
                return save.head.checkpoint_id
        raise busy(save.head.thread_id)

    async def _store(self, save: Save, drafted: Draft, revision: int, *, replacing: bool) -> None:
        """Store a drafted record, and rewrite those that build on the one it replaces."""
        rebased: list[Record] = []
        if replacing:
            replaced = await self.storage.find(save.head.thread_id, save.head.checkpoint_id)
            if replaced is not None:
                heads = await self.storage.list_checkpoints(save.head.thread_id, None)
                rebased = await self._rebase(heads, {replaced.revision})
        record = await self._pack(
            drafted.document,
            replace(save.head, revision=revision, base=drafted.base, level=drafted.level),
            save.kind,
        )
        await self.storage.store(record, expected_parent=save.expected_parent, rebased=rebased)

    async def _pack(self, document: bytes, head: RecordHead, kind: Kind) -> Record:
        if len(document) <= INLINE_BYTES:
            return Record.pack(document, head, self.compression_level, kind=kind.value)
        level = self.compression_level
        if len(document) > _LONG_DOCUMENT:
            level = max(level - _SPARED_LEVELS, min(level, 1))
        return await in_thread(Record.pack, document, head, level, kind=kind.value)

    async def _cached_chain(self, thread_id: str) -> CachedChain:
        """Return the chain that the next record may build on."""
        if self.max_chain_depth == 0:
            return CachedChain()
        return self._chains.get(thread_id) or await self._read_chain(thread_id)

    async def _read_chain(self, thread_id: str) -> CachedChain:
        try:
            return await self.storage.with_chain(thread_id, None, CachedChain.of)
        except CheckpointCorruptError as error:
            # Damaged records stay damaged, but the thread continues from a full state.
            emit("checkpoint.unreadable_parent", error=error, thread_id=thread_id)
            return CachedChain()

    @override
    async def load(self, thread_id: str, checkpoint_id: str | None = None) -> StateT | None:
        check_names(thread_id, checkpoint_id)
        return await self.storage.with_chain(thread_id, checkpoint_id, self._restore)

    def recall(self, info: CheckpointInfo) -> dict[str, Any] | None:
        """Return the state of a checkpoint as a dict from the cache, without a read, or `None`.

        The cache has the state that this process saved last in the thread.

        Args:
            info: The checkpoint, listed just before.
        """
        cached = self._chains.get(info.thread_id)
        newest = cached.links[-1] if cached is not None and cached.links else None
        if newest is None or newest.document is None or newest.revision != info.revision:
            return None
        copied: dict[str, Any] = own_copy(newest.document)
        return copied

    def _restore(self, chain: Sequence[Record]) -> StateT | None:
        if not chain:
            return None
        states, kind = replay_kind(chain)
        try:
            state: StateT = restored(states[-1], kind, self.state_type)
        except Exception as error:
            newest, wanted = chain[-1], self.state_type
            name = getattr(wanted, "__name__", AgentState.__name__)
            raise StateTypeError(
                f"checkpoint {quote(newest.checkpoint_id)} of thread {quote(newest.thread_id)} "
                f"is not a {name}; pass state_type=None to load it as a dict"
            ) from error
        return state

    @override
    async def list_checkpoints(self, thread_id: str, limit: int = 10) -> list[str]:
        check_names(thread_id)
        # Not by `list_with_metadata`: a copy of their metadata would take most of the time.
        heads = await self.storage.list_checkpoints(thread_id, check_limit(limit))
        return [head.checkpoint_id for head in heads]

    @override
    async def list_with_metadata(
        self, thread_id: str, limit: int = 10, *, before: str | None = None
    ) -> list[CheckpointInfo]:
        check_names(thread_id, before)
        check_limit(limit)
        sequence: int | None = None
        if before is not None:
            sequence = (await self._known(thread_id, before)).sequence
        heads = await self.storage.list_checkpoints(thread_id, limit, before=sequence)
        return [head.info() for head in heads]

    async def list_newest(
        self, thread_ids: Sequence[str], limit: int
    ) -> list[list[CheckpointInfo]]:
        """Return what `list_with_metadata` returns for each of these threads, read together."""
        for name in thread_ids:
            check_names(name)
        found = await self.storage.list_newest(thread_ids, check_limit(limit))
        return [[head.info() for head in heads] for heads in found]

    @override
    async def get_metadata(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> dict[str, Any] | None:
        check_names(thread_id, checkpoint_id)
        head = await self.storage.find(thread_id, checkpoint_id)
        return None if head is None else head.info().metadata

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        return await self.storage.list_threads(check_limit(limit), prefix=prefix, after=after)

    @override
    async def query_by_metadata(
        self,
        filter: Mapping[str, Any],
        limit: int = 100,
    ) -> list[CheckpointInfo]:
        condition = parse_filter(filter)
        heads = await self.storage.query_by_metadata(condition, check_limit(limit))
        return [head.info() for head in heads]

    @override
    async def get_storage_stats(self, thread_id: str) -> StorageStats:
        check_names(thread_id)
        heads = await self.storage.list_checkpoints(thread_id, None)
        full = sum(head.base is None for head in heads)
        size, stored = sum(head.size for head in heads), sum(head.stored_size for head in heads)
        return StorageStats(
            total_checkpoints=len(heads),
            full_checkpoints=full,
            delta_checkpoints=len(heads) - full,
            total_size=size,
            compressed_size=stored,
            compression_ratio=size / stored if stored else 1.0,
        )

    @override
    async def copy_thread(self, source: str, target: str) -> int:
        check_names(source)
        check_names(target)
        await self._known(source)
        return await self.storage.copy_thread(source, target)

    @override
    async def fork(self, thread_id: str, checkpoint_id: str, new_thread_id: str) -> str:
        check_names(thread_id, checkpoint_id)
        check_names(new_thread_id)
        head = await self._known(thread_id, checkpoint_id)
        await self.storage.copy_thread(thread_id, new_thread_id, through=head.sequence)
        return checkpoint_id

    async def _known(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead:
        head = await self.storage.find(thread_id, checkpoint_id)
        if head is None:
            raise CheckpointNotFoundError(thread_id, checkpoint_id)
        return head

    @override
    async def delete(self, thread_id: str, checkpoint_id: str | None = None) -> bool:
        check_names(thread_id, checkpoint_id)
        self._chains.discard(thread_id)
        if checkpoint_id is None:
            return await self.storage.delete(thread_id) > 0

        def named(heads: Sequence[RecordHead]) -> set[int]:
            return {head.revision for head in heads if head.checkpoint_id == checkpoint_id}

        return await self._remove(thread_id, named) > 0

    @override
    async def prune(
        self,
        thread_id: str,
        *,
        keep_last: int | None = None,
        older_than: timedelta | datetime | None = None,
    ) -> int:
        check_names(thread_id)
        before = cutoff(older_than, self.clock())
        return await self._remove(
            thread_id, lambda heads: expendable(heads, keep_last=keep_last, before=before)
        )

    @override
    async def vacuum(self, older_than_days: float = 30) -> int:
        age = age_of(older_than_days)
        removed = 0
        after: str | None = None
        while threads := await self.storage.list_threads(after=after):
            # A checkpoint before its pending writes, which have the lesser name.
            for thread_id in reversed(threads):
                removed += await self._prune_readable(thread_id, age)
            after = threads[-1]
        await self.storage.reclaim()
        return removed

    async def _prune_readable(self, thread_id: str, age: timedelta) -> int:
        holder, before = holder_of(thread_id), cutoff(age, self.clock())
        try:
            if not holder:
                return await self.prune(thread_id, older_than=age)
            stay = {
                each.checkpoint_id for each in await self.storage.list_checkpoints(holder, None)
            }
            return await self._remove(
                thread_id, lambda heads: orphans(heads, stay=stay, before=before)
            )
        except (CheckpointCorruptError, EncryptionError) as error:
            emit("checkpoint.not_pruned", error=error, thread_id=thread_id)
            return 0

    async def _remove(
        self, thread_id: str, choose: Callable[[Sequence[RecordHead]], Collection[int]]
    ) -> int:
        """Remove the records that `choose` returns, and rewrite those that build on them."""
        for _ in range(_ATTEMPTS):
            heads = await self.storage.list_checkpoints(thread_id, None)
            removed = choose(heads)
            if not removed:
                return 0
            try:
                rebased = await self._rebase(heads, removed)
                rebased = await with_heir(self.storage, heads, removed, rebased)
                count = await self.storage.delete(thread_id, removed, rebased=rebased)
            except StaleChainError:
                continue
            self._chains.discard(thread_id)
            emit("checkpoint.removed", thread_id=thread_id, count=count, rebased=len(rebased))
            return count
        raise busy(thread_id)

    async def _rebase(self, heads: Sequence[RecordHead], removed: Collection[int]) -> list[Record]:
        """Return the records that build on removed ones, rewritten to build on others."""
        bases = {head.revision: head.base for head in heads}
        return [
            await self._rewrite(head, kept_base(head, bases, removed))
            for head in heads
            if head.base in removed and head.revision not in removed
        ]

    async def _rewrite(self, head: RecordHead, base: int | None) -> Record:
        """Return the record of the same state as a delta against another of its chain."""

        def work(chain: Sequence[Record]) -> tuple[bytes, Kind]:
            states, kind = replay_kind(chain)
            by_revision = {r.revision: state for r, state in zip(chain, states, strict=True)}
            if head.revision not in by_revision or base not in {None, *by_revision}:
                raise StaleChainError
            state = by_revision[head.revision]
            if base is not None:
                state = diff(by_revision[base], state)
            return dumps(state), kind

        document, kind = await self.storage.with_chain(head.thread_id, head.checkpoint_id, work)
        level = 0 if base is None else head.level
        return await self._pack(document, replace(head, base=base, level=level), kind)

    @override
    async def open(self) -> None:
        await self.storage.open()

    @override
    async def close(self) -> None:
        await self.storage.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.storage!r})"


def _name(checkpoint_id: str | None, drawn: bytes) -> str:
    if checkpoint_id is None:
        return drawn.hex()
    return check_identifier(checkpoint_id, "a checkpoint id")
