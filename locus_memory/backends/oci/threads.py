"""The states of threads in the bucket: reads, conditional writes, and the packs behind them.

A thread is one object, and each change of a thread is one conditional write of that object: it is
there whole or not at all. Packs and an index hold the rest, and never change.

**Packs before states.** A pack is written first, under a random name, and then the state that
refers to it. A writer that is killed between the two leaves a pack that nothing refers to.

**A fence for removal.** A state refers only to packs that were written after its predecessor was
read, and it is written only if that predecessor is still there. `reclaim` lists packs, reads the
state, writes it again with a new entity tag, and only then deletes the packs of the list that the
state does not name. Any writer that still means to refer to one of them fails, as its predecessor
is gone. A thread that does not exist yet has no packs: its first write has all payloads inline.

**Lost answers.** A state has the marks of its last writes. A write whose answer is lost, and whose
condition fails when it is sent again, finds its own mark if it had its effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from locus_memory._internal.quoting import quote
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.oci.connection.connection import ChangedError, OCIConnection
from locus_memory.backends.oci.items.items import Locks, pause, together
from locus_memory.backends.oci.items.stored import new_mark
from locus_memory.backends.oci.records import (
    Entry,
    Index,
    State,
    decode_index,
    decode_state,
    encode_index,
    encode_state,
)
from locus_memory.checkpoint.storage import StaleChainError
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    CheckpointConflictError,
    CheckpointCorruptError,
)

__all__ = ["Change", "Known", "Threads"]

_ATTEMPTS: Final = 100
"""How often a change starts again because another writer was first."""

_INLINE_BYTES: Final = 16 * 1024
"""The payloads that a state holds itself: about 35 turns. More of them become a pack."""

_PACK_BYTES: Final = 256 * 1024
"""The payloads of a pack, or more if the last of them is longer."""

_HEADS_BYTES: Final = 48 * 1024
"""The heads that a state holds itself, some 200 checkpoints. More of them become an index."""

_MARKS: Final = 64
_KNOWN_BYTES: Final = 64 * 2**20
_PACKS_KEPT_BYTES: Final = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Known:
    """A thread as it was read or written; without an entity tag it does not exist."""

    etag: str | None
    state: State


@dataclass(frozen=True, slots=True)
class Change:
    """The state after a change of a thread.

    Attributes:
        state: The state; one without checkpoints means that the thread is removed.
        result: The result of the verb.
        removes: Whether checkpoints were removed or rewritten.
    """

    state: State
    result: int
    removes: bool = False


class Threads:
    """The threads of a bucket, of which some are remembered with their entity tags.

    Args:
        connection: The bucket.
    """

    def __init__(self, connection: OCIConnection) -> None:
        self.connection = connection
        self.names = connection.names
        self._known: RecentlyUsed[Known] = RecentlyUsed(_KNOWN_BYTES, lambda k: k.state.weight)
        self._packs: RecentlyUsed[bytes] = RecentlyUsed(_PACKS_KEPT_BYTES, len)
        self._locks = Locks()

    async def read(self, thread_id: str) -> Known:
        """Return a thread as it is now.

        Raises:
            CheckpointCorruptError: Its state or its index is damaged.
        """
        name, seen = self.names.thread(thread_id), ""
        for _ in range(_ATTEMPTS):
            known = self._known.get(thread_id)
            found = await self.connection.get(name, None if known is None else known.etag)
            if found is None:
                return self._remember(Known(None, State(thread_id)))
            if known is not None and known.etag == found.etag:
                self._known.touch(thread_id)
                return known
            older = None if known is None else known.state.index
            state, missing = decode_state(thread_id, found.body, older)
            index = None if missing is None else await self._index(thread_id, missing)
            if missing is None or index is not None:
                return self._remember(Known(found.etag, replace(state, index=index or state.index)))
            if seen == found.etag:
                raise CheckpointCorruptError(thread_id, None, "its index is missing")
            # Another writer has replaced the index meanwhile, and the state before it.
            seen = found.etag
        raise self._busy(thread_id)

    async def _index(self, thread_id: str, name: str) -> Index | None:
        found = await self.connection.get(name)
        return None if found is None else decode_index(thread_id, name, found.body)

    def _remember(self, known: Known) -> Known:
        self._known.put(known.state.thread_id, known)
        return known

    async def change(self, thread_id: str, plan: Callable[[State], Change]) -> int:
        """Change a thread in one step; return the result of the change.

        Args:
            thread_id: The thread.
            plan: Returns the change of a state, or raises. It is called again if another writer was
                first, and its errors count only for the state as it is now.

        Raises:
            StaleChainError: `plan` raised it.
            CheckpointConflictError: `plan` raised it.
            BackendUnavailableError: Other writers were always first.
        """
        async with self._locks.of(thread_id):
            return await self._change(thread_id, plan)

    async def _change(self, thread_id: str, plan: Callable[[State], Change]) -> int:
        """Change a thread that no other task of this process changes."""
        mark = new_mark()
        known, is_fresh = self._known.get(thread_id), False
        for attempt in range(_ATTEMPTS):
            if known is None:
                known, is_fresh = await self.read(thread_id), True
            try:
                change = plan(known.state)
            except (StaleChainError, CheckpointConflictError):
                if is_fresh:
                    raise
                known = None
                continue
            if _is_nothing(known, change):
                if is_fresh:
                    return change.result
            elif await self._write(known, change, mark):
                return change.result
            else:
                await pause(attempt)
            known = None
        raise self._busy(thread_id)

    async def _write(self, known: Known, change: Change, mark: str) -> bool:
        """Write a change; return whether the thread was still as it is known."""
        if known.etag is not None and _is_empty(change.state):
            return await self._remove(known, known.etag)
        if change.removes:
            change = replace(change, state=await self._rewritten(known.state, change.state))
        return await self.commit(known, change.state, mark, removes=change.removes)

    async def commit(self, known: Known, state: State, mark: str, *, removes: bool = False) -> bool:
        """Write a state if the thread is still as it is known; return whether it was written.

        A save writes at most one other object before it.
        """
        written: list[str] = []
        if known.etag is not None:
            state, written = await self._spilled(state, everything=removes)
        state = replace(
            state,
            life=state.life or mark,
            marks=(*state.marks, mark)[-_MARKS:],
            garbage=tuple(_garbage(known.state, state, removes=removes)),
        )
        name = self.names.thread(state.thread_id)
        try:
            etag = await self.connection.put(name, encode_state(state), known.etag)
        except ChangedError:
            self._known.discard(state.thread_id)
            fresh = await self.read(state.thread_id)
            if mark in fresh.state.marks:
                return True
            await self._sweep(set(written) - fresh.state.objects())
            return False
        self._remember(Known(etag, state))
        if state.garbage and await self._sweep(state.garbage):
            self._remember(Known(etag, replace(state, garbage=())))
        return True

    async def _remove(self, known: Known, etag: str) -> bool:
        """Remove a whole thread; return whether it was still as it is known."""
        thread_id = known.state.thread_id
        self._known.discard(thread_id)
        try:
            if not await self.connection.delete(self.names.thread(thread_id), etag):
                return False
        except ChangedError as error:
            fresh = await self.read(thread_id)
            if not error.unsure or fresh.state.life == known.state.life:
                return False
        await self._sweep(known.state.objects())
        return True

    async def remove_damaged(self, thread_id: str) -> int:
        """Remove a thread whose state cannot be read; `reclaim` removes its packs."""
        self._known.discard(thread_id)
        return int(await self.connection.delete(self.names.thread(thread_id)))

    async def _spilled(self, state: State, *, everything: bool) -> tuple[State, list[str]]:
        """Write packs or an index if the state is too large; return it, and their names."""
        inline = [entry for entry in state.tail if entry.payload is not None]
        size = sum(entry.head.stored_size for entry in inline)
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

    async def _packed(self, state: State, inline: Iterable[Entry]) -> tuple[State, list[str]]:
        packs: dict[str, bytes] = {}
        moved: dict[int, Entry] = {}
        name = ""
        for entry in inline:
            if not packs or len(packs[name]) >= _PACK_BYTES:
                name = self.names.pack(state.thread_id)
            content = packs.get(name, b"")
            place = replace(entry, pack=name, offset=len(content), payload=None)
            moved[entry.head.revision] = place
            packs[name] = content + (entry.payload or b"")
        await together(lambda each: self.connection.put_new(*each), packs.items())
        for name, content in packs.items():
            self._packs.put(name, content)
        tail = tuple(moved.get(entry.head.revision, entry) for entry in state.tail)
        return replace(state, tail=tail), list(packs)

    async def _indexed(self, state: State) -> tuple[State, list[str]]:
        older = [entry for entry in state.entries() if entry.payload is None]
        if not older:
            return state, []
        name = self.names.pack(state.thread_id)
        await self.connection.put_new(name, encode_index(state.thread_id, older))
        index = Index(name, {entry.head.revision: entry for entry in older})
        tail = tuple(entry for entry in state.tail if entry.payload is not None)
        return replace(state, tail=tail, index=index), [name]

    async def _rewritten(self, before: State, after: State) -> State:
        """Return a state whose packs have no payload that was removed.

        The other payloads of such a pack become inline, and then a part of a new pack.
        """
        kept = {entry.head.revision: entry for entry in after.entries()}
        left = {
            entry.pack
            for entry in before.entries()
            if entry.pack is not None and _pack_of(kept.get(entry.head.revision)) != entry.pack
        }
        packs = await self.contents({e.pack for e in kept.values() if e.pack in left and e.pack})
        if not packs:
            return after
        tail = tuple(_inline(entry, packs.get(entry.pack or "", b"")) for entry in kept.values())
        return replace(after, tail=tail, index=None)

    async def contents(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the content of packs, without those that do not exist."""

        async def content(name: str) -> tuple[str, bytes | None]:
            kept = self._packs.get(name)
            if kept is not None:
                self._packs.touch(name)
                return name, kept
            found = await self.connection.get(name)
            if found is not None:
                self._packs.put(name, found.body)
            return name, None if found is None else found.body

        read = await together(content, names)
        return {name: body for name, body in read if body is not None}

    async def read_with(
        self, thread_id: str, choose: Callable[[State], Sequence[Entry]]
    ) -> tuple[Sequence[Entry], Mapping[str, bytes]]:
        """Return chosen entries of a thread with the packs of their payloads.

        A pack that another writer has replaced meanwhile is looked for in the state as it is now.
        """
        seen: str | None = None
        while True:
            known = await self.read(thread_id)
            entries = choose(known.state)
            wanted = {entry.pack for entry in entries if entry.pack is not None}
            packs = await self.contents(wanted)
            if wanted == packs.keys() or known.etag == seen:
                return entries, packs
            seen = known.etag

    async def _sweep(self, names: Iterable[str]) -> bool:
        """Delete objects that nothing refers to; return whether all are gone."""

        async def remove(name: str) -> None:
            self._packs.discard(name)
            await self.connection.delete(name)

        with suppress(BackendError):
            await together(remove, names, settle=True)
            return True
        return False

    async def reclaim(self) -> None:
        """Delete the packs that nothing refers to, which killed writers have left."""
        packs: dict[str, list[str]] = {}
        async for page in self.connection.pages(self.names.packs):
            for each in page.objects:
                packs.setdefault(self.names.thread_of_pack(each.name), []).append(each.name)
        for name, listed in packs.items():
            await self._reclaim(name, set(listed))

    async def _reclaim(self, name: str, listed: set[str]) -> None:
        found = await self.connection.get(name)
        if found is not None:
            try:
                thread_id = decode_state(None, found.body)[0].thread_id
                known = await self.read(thread_id)
            except CheckpointCorruptError:
                return
            listed -= known.state.objects() - set(known.state.garbage)
            if not listed or known.etag is None:
                return
            # From here on, no writer that has read an earlier state can write.
            if not await self.commit(known, known.state, new_mark()):
                return
        await self._sweep(listed)

    def _busy(self, thread_id: str) -> BackendUnavailableError:
        return BackendUnavailableError(
            f"oci {self.connection.place}: thread {quote(thread_id)} kept changing while it was "
            "used; try again"
        )


def _is_empty(state: State) -> bool:
    return not state.tail and state.index is None


def _is_nothing(known: Known, change: Change) -> bool:
    """Return whether a change leaves the thread as it is."""
    return change.state is known.state or (known.etag is None and _is_empty(change.state))


def _inline(entry: Entry, content: bytes) -> Entry:
    """Return an entry with its payload inline, if it is whole in the content of its pack."""
    payload = content[entry.offset : entry.offset + entry.head.stored_size]
    if entry.pack is None or len(payload) != entry.head.stored_size:
        return entry
    return Entry(entry.head, entry.seal, payload=payload)


def _pack_of(entry: Entry | None) -> str | None:
    return None if entry is None else entry.pack


def _garbage(before: State, after: State, *, removes: bool) -> Iterable[str]:
    """Return the names of the objects that the first state needs and the second does not."""
    if removes:
        return sorted(before.objects() - replace(after, garbage=()).objects())
    index = before.index
    is_replaced = index is not None and index is not after.index
    return sorted({*before.garbage, *([index.name] if index is not None and is_replaced else [])})
