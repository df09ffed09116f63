"""Checkpoints in Object Storage: a save is one conditional request.

**One object a thread.** The object of a thread holds the heads of its last checkpoints and their
payloads. A save writes it again, with the new checkpoint, under the condition that its entity tag
is still the one that was read. So the write is the comparison and the swap: `expected_parent`, the
base of a delta and the uniqueness of an id are checked against the state that the tag stands for.

**Why not one object a checkpoint.** A save could create the object of the next sequence, if there
is none, and need no other. But a checkpoint that is deleted leaves a gap, and a writer that has
read the thread before would fill it: an acknowledged save in the past, with a base that is gone.
A tombstone in each gap would never end. With one object, a deleted, pruned, replaced or removed
checkpoint changes the tag, and a writer that has not seen it fails and reads again.

**Why not a head beside the checkpoints.** That takes two requests a save, and each request is
billed alike, whatever its size. Payloads of a turn are some hundred bytes, so about 35 of them
travel with the state, and then move to a pack together.

| verb | requests |
|---|---|
| save | 1 PUT; one more PUT for a pack or an index, about every 30th time |
| save by a process that does not remember the thread | 1 GET more, 2 with an index |
| save that replaces an id, delete, prune | 1 PUT; for each touched pack a GET, a PUT, a DELETE |
| load | 1 GET, and a GET for each pack that it needs and the process does not remember |
| list, metadata, statistics | 1 GET, 2 with an index |
| copy, fork | those of a load of everything, and 1 PUT |
| delete of a thread | 1 GET if the thread is not remembered, 1 DELETE, and one for each pack |

**A kill at any moment** leaves the thread as it was before or after a change. `threads.py` says
why, and what happens to packs that nothing refers to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Generic, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.base import OverConnection
from locus_memory.backends.oci.connection.connection import OCIConnection
from locus_memory.backends.oci.connection.driver import Client, Listed
from locus_memory.backends.oci.items.items import together
from locus_memory.backends.oci.items.stored import new_mark
from locus_memory.backends.oci.options import OCIKeywords, OCIOptions
from locus_memory.backends.oci.records import Entry, State, decode_state, without
from locus_memory.backends.oci.schema import NamesInOrder, decode_name, is_cut
from locus_memory.backends.oci.threads import Change, Known, Threads
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    StaleChainError,
    chain_of,
    check_parent,
    check_range,
    check_replacement,
    copied,
    newest_first,
)
from locus_memory.errors import CheckpointConflictError, CheckpointCorruptError

__all__ = ["OCIBucketCheckpointer", "OCICheckpointer", "OCIDeltaStorage"]


class OCIDeltaStorage(OverConnection[OCIConnection], DeltaStorage):
    """Records in a bucket of Object Storage, safe for many tasks and processes.

    Args:
        bucket: `bucket`, `bucket/namespace`, or `oci://bucket@namespace`.
        client: A client, or a connection to share, which the storage does not close.
        options: How to connect, and the prefix of the names; ignored with an `OCIConnection`.
        **keywords: The fields of `OCIOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
        MissingDriverError: The SDK is not installed.
    """

    @checked
    def __init__(
        self,
        bucket: str | None = None,
        *,
        client: Client | OCIConnection | None = None,
        options: OCIOptions | None = None,
        **keywords: Unpack[OCIKeywords],
    ) -> None:
        self._connect(OCIConnection, OCIOptions, bucket, options, keywords, client=client)
        self._threads = Threads(self._connection)

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        return await self._threads.change(
            record.thread_id, lambda state: _appended(state, record, expected_parent, rebased)
        )

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        def choose(state: State) -> list[Entry]:
            found = state.find(checkpoint_id)
            return [] if found is None else [found]

        entries, packs = await self._threads.read_with(thread_id, choose)
        return entries[0].record(packs) if entries else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        entry = (await self._threads.read(thread_id)).state.find(checkpoint_id)
        return None if entry is None else entry.verified()

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        entries, packs = await self._threads.read_with(
            thread_id, lambda state: _chain(state, checkpoint_id)
        )
        if not entries:
            return []
        newest, *others = (entry.record(packs) for entry in entries)
        bases = {record.revision: record for record in others}
        return chain_of(bases.get, newest)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        state = (await self._threads.read(thread_id)).state
        listed = newest_first((entry.head for entry in state.entries()), limit, before)
        seals = {entry.head.revision: entry.seal for entry in state.entries()}
        return [head.verified(seals[head.revision]) for head in listed]

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        state = (await self._threads.read(thread_id)).state
        return [entry.head.sequence for entry in reversed(state.entries())]

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        try:
            return await self._threads.change(
                thread_id, lambda state: _removed(state, revisions, rebased)
            )
        except CheckpointCorruptError:
            if revisions is not None:
                raise
            return await self._threads.remove_damaged(thread_id)

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        check_range(prefix, after)
        folder = self._connection.names.threads
        bounds = NamesInOrder.of(folder, prefix, after)
        found: list[str] = []
        self._connection.check_open()
        if not limit:
            return []
        pages = self._connection.pages(
            bounds.prefix, start=bounds.start, limit=min(limit + 1, 1000)
        )
        async for page in pages:
            named = await together(self._thread_of, page.objects)
            there = (each for each in named if each is not None)
            found += [each for each in there if _is_between(each, prefix, after)]
            if len(found) >= limit and not is_cut(page.objects[-1].name[len(folder) :]):
                break
        return sorted(found)[: min(limit, len(found))]

    async def _thread_of(self, listed: Listed) -> str | None:
        """Return the thread of a name; `None`: it was removed meanwhile."""
        code = listed.name[len(self._connection.names.threads) :]
        if is_cut(code):
            found = await self._connection.get(listed.name)
            return None if found is None else decode_state(None, found.body)[0].thread_id
        name = decode_name(code)
        if name is None:
            raise CheckpointCorruptError(code, None, "its name is damaged")
        return name

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        def choose(state: State) -> list[Entry]:
            entries = state.entries()
            return [e for e in entries if through is None or e.head.sequence <= through]

        entries, packs = await self._threads.read_with(source, choose)
        records = [copied(entry.record(packs), target, through) for entry in entries]
        if not records:
            return 0
        tail = tuple(Entry.of(record, record.sequence) for record in records)
        empty, mark = Known(None, State(target)), new_mark()
        state = State(target, sequence=records[-1].sequence, tail=tail)
        while not await self._threads.commit(empty, state, mark):
            existing = await self.find(target)
            if existing is not None:
                raise CheckpointConflictError(target, None, existing.checkpoint_id)
        return len(records)

    @override
    async def _heads_of(self, threads: Sequence[str]) -> list[RecordHead]:
        lists = await together(lambda name: self.list_checkpoints(name, None), threads)
        return [head for each in lists for head in each]

    @override
    async def reclaim(self) -> None:
        await self._threads.reclaim()


def _is_between(name: str, prefix: str | None, after: str | None) -> bool:
    return name.startswith(prefix or "") and (after is None or name > after)


def _chain(state: State, checkpoint_id: str | None) -> list[Entry]:
    """Return the chain of a checkpoint, the newest first; it ends early if a base is missing."""
    chain: dict[int, Entry] = {}
    entry = state.find(checkpoint_id)
    while entry is not None and entry.head.revision not in chain:
        chain[entry.head.revision] = entry
        entry = None if entry.head.base is None else state.of_revision(entry.head.base)
    return list(chain.values())


def _appended(
    state: State, record: Record, expected_parent: str | Unset | None, rebased: Sequence[Record]
) -> Change:
    """Return the change of a save."""
    newest = state.find(None)
    check_parent(
        record.thread_id, expected_parent, None if newest is None else newest.head.checkpoint_id
    )
    replaced = state.find(record.checkpoint_id)
    removes = replaced is not None or bool(rebased)
    if removes:
        removed = set() if replaced is None else {replaced.head.revision}
        state = _edited(state, removed, rebased, record.base)
    elif record.base is not None and state.of_revision(record.base) is None:
        raise StaleChainError
    sequence = state.sequence + 1
    tail = (*state.tail, Entry.of(record, sequence))
    return Change(replace(state, sequence=sequence, tail=tail), sequence, removes)


def _removed(state: State, revisions: Collection[int] | None, rebased: Sequence[Record]) -> Change:
    """Return the change of a delete."""
    known = {entry.head.revision for entry in state.entries()}
    removed = known if revisions is None else known & set(revisions)
    if not removed and not rebased:
        return Change(state, 0)
    return Change(_edited(state, removed, rebased), len(removed), removes=True)


def _edited(
    state: State, removed: Collection[int], rebased: Sequence[Record], base: int | None = None
) -> State:
    """Return a state without some checkpoints, and with others rewritten.

    Raises:
        StaleChainError: A base would be missing.
    """
    heads = {entry.head.revision: entry.head for entry in state.entries()}
    check_replacement(heads.values(), removed=removed, rebased=rebased, base=base)
    new = [Entry.of(record, heads[record.revision].sequence) for record in rebased]
    left = without(state, {*removed, *(record.revision for record in rebased)})
    tail = sorted((*left.tail, *new), key=attrgetter("head.sequence"))
    return replace(left, tail=tuple(tail))


class OCICheckpointerKeywords(
    OCIKeywords, CheckpointerOptions[StateT], Generic[StateT], total=False
):
    """The keyword arguments of `OCICheckpointer` beside its own parameters."""


class OCICheckpointer(DeltaCheckpointer[StateT]):
    """Checkpoints in Object Storage; the other options are those of `DeltaCheckpointer`.

    Args:
        bucket: `bucket`, `bucket/namespace`, or `oci://bucket@namespace`.
        client: An `ObjectStorageClient` of the SDK, or an `OCIConnection`, to use instead; the
            checkpointer does not close it.
        options: How to connect, and the prefix of the names; ignored with an `OCIConnection`.
        **keywords: The options of `DeltaCheckpointer`, and the fields of `OCIOptions` by name, in
            place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
        MissingDriverError: The SDK is not installed.
    """

    @checked
    def __init__(
        self,
        bucket: str | None = None,
        *,
        client: Client | OCIConnection | None = None,
        options: OCIOptions | None = None,
        **keywords: Unpack[OCICheckpointerKeywords[StateT]],
    ) -> None:
        named = Keywords(self, keywords)
        options = named.into(OCIOptions, options=options)
        storage = OCIDeltaStorage(bucket, client=client, options=options)
        super().__init__(storage, **named.rest)


class OCIBucketCheckpointer(OCICheckpointer[StateT]):
    """An `OCICheckpointer` by the names of the Locus SDK.

    Args:
        bucket_name: The bucket.
        namespace: Its namespace; `None`: that of the tenancy, which is asked for.
        **keywords: As for `OCICheckpointer`.

    Raises:
        ConfigurationError: As for `OCICheckpointer`.
        MissingDriverError: Likewise.
    """

    def __init__(
        self,
        bucket_name: str,
        namespace: str | None = None,
        **keywords: Unpack[OCICheckpointerKeywords[StateT]],
    ) -> None:
        where = bucket_name if namespace is None else f"{bucket_name}/{namespace}"
        super().__init__(where, **keywords)
