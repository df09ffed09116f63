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

**A kill at any moment** leaves the thread as it was before or after a change: a thread is one
object, and each change is one conditional write of it. Packs and an index hold the rest.

**Packs before states.** A pack is written first, under a random name, and then the state that
refers to it. A writer that is killed between the two leaves a pack that nothing refers to.

**A fence for removal.** A state refers only to packs that were written after its predecessor was
read, and it is written only if that predecessor is still there. `reclaim` lists packs, reads the
state, writes it again with a new entity tag, and only then deletes the packs of the list that the
state does not name. Any writer that still means to refer to one of them fails, as its predecessor
is gone. A thread that does not exist yet has no packs: its first write has all payloads inline.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from secrets import token_urlsafe
from typing import Final, Generic, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.oci.connection.connection import ChangedError, OCIConnection
from locus_memory.backends.oci.connection.driver import Client, Listed
from locus_memory.backends.oci.items.items import together
from locus_memory.backends.oci.options import OCIKeywords, OCIOptions
from locus_memory.backends.oci.records import (
    Index,
    State,
    decode_index,
    decode_state,
    encode_index,
    encode_state,
    pack_of,
    payload_of,
)
from locus_memory.backends.oci.schema import NamesInOrder, decode_name, is_cut
from locus_memory.backends.record_lists.rows import Change, ChooseRows, Row, read_record
from locus_memory.backends.record_lists.storage import ATTEMPTS, ListStorage
from locus_memory.checkpoint.base import StateT
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import check_range
from locus_memory.errors import BackendError, CheckpointCorruptError
from locus_memory.store.listing import keys_in_range

__all__ = ["OCIBucketCheckpointer", "OCICheckpointer", "OCIDeltaStorage"]

_INLINE_BYTES: Final = 16 * 1024
"""The payloads that a state holds itself: about 35 turns. More of them become a pack."""

_PACK_BYTES: Final = 256 * 1024
"""The payloads of a pack, or more if the last of them is longer."""

_HEADS_BYTES: Final = 48 * 1024
"""The heads that a state holds itself, some 200 checkpoints. More of them become an index."""

_MARKS: Final = 64
_KNOWN_BYTES: Final = 64 * 2**20
_PACKS_KEPT_BYTES: Final = 16 * 2**20


class OCIDeltaStorage(ListStorage[OCIConnection, State]):
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

    provider = "oci"

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
        super().__init__(RecentlyUsed(_KNOWN_BYTES, lambda state: state.weight))
        self._packs: RecentlyUsed[bytes] = RecentlyUsed(_PACKS_KEPT_BYTES, len)

    @override
    async def _load(
        self, thread_id: str, known: State | None = None, *, least: int | None = None
    ) -> State:
        return known or await self._read(thread_id)

    async def _read(self, thread_id: str) -> State:
        """Return a thread as it is now.

        Raises:
            CheckpointCorruptError: Its state or its index is damaged.
        """
        name, seen = self._connection.names.thread(thread_id), ""
        for _ in range(ATTEMPTS):
            known = self._known.get(thread_id)
            found = await self._connection.get(name, None if known is None else known.tag)
            if found is None:
                return self._remember(State(thread_id=thread_id))
            if known is not None and known.tag == found.etag:
                self._known.touch(thread_id)
                return known
            older = None if known is None else known.index
            state, missing = decode_state(thread_id, found.body, found.etag, older)
            index = None if missing is None else await self._index(thread_id, missing)
            if missing is None or index is not None:
                return self._remember(replace(state, index=index or state.index))
            if seen == found.etag:
                raise CheckpointCorruptError(thread_id, None, "its index is missing")
            # Another writer has replaced the index meanwhile, and the state before it.
            seen = found.etag
        raise self._busy(thread_id)

    async def _index(self, thread_id: str, name: str) -> Index | None:
        found = await self._connection.get(name)
        return None if found is None else decode_index(thread_id, name, found.body)

    def _remember(self, state: State) -> State:
        self._known.put(state.thread_id, state)
        return state

    @override
    async def _commit(self, before: State, change: Change[State], mark: str) -> bool:
        after = change.after
        if before.tag is not None and not after.rows:
            return await self._erase(before)
        if change.removes:
            after = await self._rewritten(before, after)
        return await self._write(before, after, mark, removes=change.removes)

    async def _write(
        self, before: State, state: State, mark: str, *, removes: bool = False
    ) -> bool:
        """Write a state in place of another one; return whether that one was still there.

        A save writes at most one other object before it.
        """
        written: list[str] = []
        if before.tag is not None:
            state, written = await self._spilled(state, everything=removes)
        state = replace(
            state,
            life=state.life or mark,
            marks=(*state.marks, mark)[-_MARKS:],
            garbage=tuple(_garbage(before, state, removes=removes)),
        )
        name = self._connection.names.thread(state.thread_id)
        try:
            tag = await self._connection.put(name, encode_state(state), before.tag)
        except ChangedError:
            self._known.discard(state.thread_id)
            fresh = await self._read(state.thread_id)
            if mark in fresh.marks:
                return True
            await self._sweep(set(written) - fresh.objects())
            return False
        state = self._remember(replace(state, tag=tag))
        if state.garbage and await self._sweep(state.garbage):
            self._remember(replace(state, garbage=()))
        return True

    async def _erase(self, before: State) -> bool:
        """Remove a whole thread; return whether it was still as it is known."""
        self._known.discard(before.thread_id)
        name = self._connection.names.thread(before.thread_id)
        try:
            if not await self._connection.delete(name, before.tag):
                return False
        except ChangedError as error:
            fresh = await self._read(before.thread_id)
            if not error.unsure or fresh.life == before.life:
                return False
        await self._sweep(before.objects())
        return True

    @override
    async def _discard(self, thread_id: str) -> int:
        # `reclaim` removes its packs.
        return int(await self._connection.delete(self._connection.names.thread(thread_id)))

    async def _spilled(self, state: State, *, everything: bool) -> tuple[State, list[str]]:
        """Write packs or an index if the state is too large; return it, and their names."""
        inline = [row for row in state.tail if row.place is None]
        size = sum(row.stored_size for row in inline)
        written: list[str] = []
        if size > _INLINE_BYTES:
            state, written = await self._packed(state, inline)
            if not everything:
                return state, written
            size = 0
        if len(encode_state(state)) - size > _HEADS_BYTES:
            state, index = await self._indexed(state)
            written += index
        return state, written

    async def _packed(self, state: State, inline: Iterable[Row]) -> tuple[State, list[str]]:
        packs: dict[str, bytes] = {}
        moved: dict[int, Row] = {}
        name = ""
        for row in inline:
            if not packs or len(packs[name]) >= _PACK_BYTES:
                name = self._connection.names.pack(state.thread_id)
            content = packs.get(name, b"")
            moved[row.revision] = row._replace(place=(name, len(content)), payload=None)
            packs[name] = content + (row.payload or b"")
        await together(lambda each: self._connection.put_new(*each), packs.items())
        for name, content in packs.items():
            self._packs.put(name, content)
        tail = tuple(moved.get(row.revision, row) for row in state.tail)
        return replace(state, tail=tail), list(packs)

    async def _indexed(self, state: State) -> tuple[State, list[str]]:
        older = tuple(row for row in state.rows if row.place is not None)
        if not older:
            return state, []
        name = self._connection.names.pack(state.thread_id)
        await self._connection.put_new(name, encode_index(state.thread_id, older))
        tail = tuple(row for row in state.tail if row.place is None)
        return replace(state, tail=tail, index=Index(name, older)), [name]

    async def _rewritten(self, before: State, after: State) -> State:
        """Return a state whose packs have no payload that was removed.

        The other payloads of such a pack become inline, and then a part of a new pack.
        """
        kept = {row.revision: row for row in after.rows}
        left = {
            pack
            for row in before.rows
            if (pack := pack_of(row)) is not None and pack_of(kept.get(row.revision)) != pack
        }
        packs = await self._contents(
            left & {pack for row in kept.values() if (pack := pack_of(row))}
        )
        if not packs:
            return after
        tail = tuple(_inline(row, packs.get(pack_of(row) or "", b"")) for row in kept.values())
        return replace(after, tail=tail, index=None)

    async def _contents(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the content of packs, without those that do not exist."""

        async def content(name: str) -> tuple[str, bytes | None]:
            kept = self._packs.get(name)
            if kept is not None:
                self._packs.touch(name)
                return name, kept
            found = await self._connection.get(name)
            if found is not None:
                self._packs.put(name, found.body)
            return name, None if found is None else found.body

        read = await together(content, names)
        return {name: body for name, body in read if body is not None}

    @override
    async def _records(self, thread_id: str, choose: ChooseRows) -> list[Record]:
        # A pack that another writer has replaced meanwhile is looked for in the state of now.
        seen: str | None = None
        while True:
            state = await self._read(thread_id)
            rows = choose(state.rows)
            wanted = {pack for row in rows if (pack := pack_of(row)) is not None}
            packs = await self._contents(wanted)
            if wanted == packs.keys() or state.tag == seen:
                contents = [packs.get(pack_of(row) or "", b"") for row in rows]
                pairs = zip(rows, contents, strict=True)
                return [read_record(thread_id, row, payload_of(row, pack)) for row, pack in pairs]
            seen = state.tag

    async def _sweep(self, names: Iterable[str]) -> bool:
        """Delete objects that nothing refers to; return whether all are gone."""

        async def remove(name: str) -> None:
            self._packs.discard(name)
            await self._connection.delete(name)

        with suppress(BackendError):
            await together(remove, names, settle=True)
            return True
        return False

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
            found += keys_in_range(filter(None, named), prefix, after)
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
    async def _heads_of(self, threads: Sequence[str]) -> list[RecordHead]:
        lists = await together(lambda name: self.list_checkpoints(name, None), threads)
        return [head for each in lists for head in each]

    @override
    async def reclaim(self) -> None:
        # The packs that nothing refers to, which killed writers have left.
        packs: dict[str, list[str]] = {}
        async for page in self._connection.pages(self._connection.names.packs):
            for each in page.objects:
                packs.setdefault(self._connection.names.thread_of_pack(each.name), []).append(
                    each.name
                )
        for name, listed in packs.items():
            await self._reclaim(name, set(listed))

    async def _reclaim(self, name: str, listed: set[str]) -> None:
        found = await self._connection.get(name)
        if found is not None:
            try:
                thread_id = decode_state(None, found.body)[0].thread_id
                state = await self._read(thread_id)
            except CheckpointCorruptError:
                return
            listed -= state.objects() - set(state.garbage)
            if not listed or state.tag is None:
                return
            # From here on, no writer that has read an earlier state can write.
            if not await self._write(state, state, token_urlsafe(6)):
                return
        await self._sweep(listed)


def _inline(row: Row, content: bytes) -> Row:
    """Return a row with its payload inline, if it is whole in the content of its pack."""
    payload = payload_of(row, content)
    return row if payload is None else row._replace(place=None, payload=payload)


def _garbage(before: State, after: State, *, removes: bool) -> Iterable[str]:
    """Return the names of the objects that the first state needs and the second does not."""
    if removes:
        return sorted(before.objects() - replace(after, garbage=()).objects())
    index = before.index
    is_replaced = index is not None and index is not after.index
    return sorted({*before.garbage, *([index.name] if index is not None and is_replaced else [])})


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
