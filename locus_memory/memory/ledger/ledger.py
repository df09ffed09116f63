"""The ledger: the current memories and their past versions, in a store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.batch import insisting
from locus_memory.memory.layers.blocks import without_blocks
from locus_memory.memory.ledger.likeness import folded
from locus_memory.memory.ledger.past import version_at
from locus_memory.memory.ledger.revision import (
    Shelf,
    Step,
    fixed_in,
    not_before,
    read_memory,
)
from locus_memory.memory.ledger.wording import search_text
from locus_memory.memory.models import (
    Memory,
    MemoryType,
    Origin,
    has_authority,
    is_expired,
    is_fixed,
)
from locus_memory.memory.scope import Scope, current_key
from locus_memory.memory.validity import VALIDITY, Then
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import embedded_put
from locus_memory.retrieval.embedding import embed
from locus_memory.store.base import (
    BaseStore,
    all_namespaces,
    has_semantic_search,
    scan_all,
    write_together,
)
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    StoreItem,
    check_embedding,
    timestamp,
)
from locus_memory.store.text import query_words

__all__ = ["Ledger", "Retirement", "Statement", "vectors_of"]

_FEW: Final = 8
"""The most new memories that are looked for by a search each; of more, all memories are read."""

_PART: Final = ("agent_id", "run_id")
"""The metadata that keep what one agent or run tells apart from the same words of another."""

_HITS: Final = 8
_LONGEST_QUERY: Final = 300
"""How many hits of a search are compared, and how many characters of a content are searched."""

_Plan = Callable[[Shelf], Step | None]
_Vectors = dict[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Statement:
    """A memory to write.

    Attributes:
        memory: The memory.
        said_at: The moment of its statement, in the format of `Ledger.now`: a fact known from
            a later moment stays current. `None`: now.
        only: The number of the version that must still be current; else nothing is written.
    """

    memory: Memory
    said_at: str | None = None
    only: int | None = None

    @property
    def type(self) -> MemoryType:
        """The memory's type."""
        return self.memory.type

    @property
    def key(self) -> str:
        """The memory's key."""
        return self.memory.key


@dataclass(frozen=True, slots=True)
class Retirement:
    """A memory to retire: it stops being current and stays in the history.

    Attributes:
        type: The memory's type.
        key: The memory's key.
        said_at: As for a `Statement`.
        only: As for a `Statement`.
        origin: Who wants it retired.
    """

    type: MemoryType
    key: str
    said_at: str | None = None
    only: int | None = None
    origin: Origin = Origin.PERSON


class Ledger:
    """The memories of any scope and their history, safe for many tasks and processes.

    A change writes the current memory and the history together: atomically if the store has
    transactions, else the history first. Each write names the version it replaces. If two writers
    change one key at the same time, both versions are in its history.

    Args:
        store: The store, which the ledger never closes.
        history_limit: The most past versions of one key.
        clock: Returns seconds since the epoch.
        embedder: Computes a vector for each current memory, marked with its name, if the store
            has semantic search.

    Raises:
        ConfigurationError: The limit is invalid.
    """

    def __init__(
        self,
        store: BaseStore,
        history_limit: int,
        *,
        clock: Callable[[], float],
        embedder: Embedder | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._history_limit = history_limit
        self._embedder = embedder
        self._locks: WeakValueDictionary[Namespace, asyncio.Lock] = WeakValueDictionary()

    def now(self) -> str:
        """Return the present moment, ISO 8601 in UTC."""
        return timestamp(self._clock()).isoformat(timespec="microseconds")

    async def apply(self, scope: Scope, edits: Iterable[Statement | Retirement]) -> list[Memory]:
        """Write memories and retire others: first those of keys that exist, then the new ones.

        A new key whose content is the same as that of another key of its type is dropped, with an
        event, see `folded`; if a person fixes it, it is fixed under that other key. What `refusal`
        refuses is dropped as well, with `memory.change_refused`: no writer can go around it.

        Returns:
            The memories that were written and are still current.
        """
        written, _ = await self.write(scope, edits)
        return written

    async def write(
        self, scope: Scope, edits: Iterable[Statement | Retirement]
    ) -> tuple[list[Memory], dict[str, str]]:
        """Do as `apply`, and return as well the duplicates that were dropped.

        Returns:
            The memories that were written and are still current; and the `current_key` of each
            duplicate, with that of the memory that stays, or is fixed.
        """
        wanted = list(edits)
        if not wanted:
            return [], {}
        contents = [each.memory.content for each in wanted if isinstance(each, Statement)]
        vectors = await self._embed(contents)
        async with self._lock(scope):
            stored = await self._store.get_batch([(scope.current, _name(each)) for each in wanted])
            known = {name: fixed_in(value) for (_, name), value in stored.items()}
            # What is retired, and what a person fixes, counts in every thread at once.
            is_urgent = any(known.values()) or any(
                isinstance(each, Retirement) or is_fixed(each.memory) for each in wanted
            )
            async with without_blocks(self._store, scope) if is_urgent else nullcontext():
                return await self._written(scope, wanted, known, vectors)

    async def _written(
        self,
        scope: Scope,
        wanted: Sequence[Statement | Retirement],
        known: Collection[str],
        vectors: _Vectors,
    ) -> tuple[list[Memory], dict[str, str]]:
        """Make changes, first those of `known` keys; returns as `write`."""
        last = {_name(e): e.memory.content if isinstance(e, Statement) else None for e in wanted}
        written: dict[str, Memory] = {}
        same: dict[str, str] = {}
        # What the other keys say is settled before a new one is compared with them.
        for edit in wanted:
            if _name(edit) in known:
                await self._edit(scope, edit, vectors, written)
        new = [each for each in wanted if _name(each) not in known]
        said = [each.memory for each in new if isinstance(each, Statement)]
        alike = _by_content(await self._alike(scope, said), self.now())
        for each in new:
            name, twin = _name(each), None
            if isinstance(each, Statement) and name not in written:
                told = alike.get((each.type, folded(each.memory.content)), ())
                twin = next((one for one in told if _stands_for(one, each.memory, last)), None)
            edit = each
            if isinstance(each, Statement) and twin is not None:
                same[name] = current_key(twin.type, twin.key)
                if not is_fixed(each.memory):
                    kind, key = each.type.value, each.key
                    emit("memory.duplicate_dropped", type=kind, key=key, duplicate_of=twin.key)
                    continue
                # One that is known under another key is fixed there.
                there = replace(each.memory, type=twin.type, key=twin.key)
                edit = replace(each, memory=there, only=None)
            await self._edit(scope, edit, vectors, written)
            if (now := written.get(_name(edit))) is not None:
                alike.setdefault((now.type, folded(now.content)), []).append(now)
        names = dict.fromkeys([*map(_name, wanted), *same.values()])
        return [written[name] for name in names if name in written], same

    async def undo(
        self, scope: Scope, kind: MemoryType, key: str, origin: Origin = Origin.PERSON
    ) -> Memory | None:
        """Take back the last change of a key; returns the current memory then.

        Raises:
            InvalidArgumentError: What has this origin does not change the memory, see `refusal`.
            BackendError: The store failed.
        """
        async with self._lock(scope), without_blocks(self._store, scope):
            step = await self._change(scope, kind, key, lambda shelf: shelf.undo(origin))
        if step is not None and step.refused is not None:
            raise InvalidArgumentError(step.refused)
        return None if step is None else step.memory

    async def last_change(self, scope: Scope, kind: MemoryType, key: str) -> datetime | None:
        """Return the moment of the change that `undo` would take back; `None` if none."""
        return (await self._shelf(scope, kind, key)).last_change()

    async def current(self, scope: Scope, kind: MemoryType, key: str) -> Memory | None:
        """Return the current memory of a key, an expired one included."""
        item = await self._store.get_item(scope.current, current_key(kind, key))
        return None if item is None else read_memory(item)

    async def history(self, scope: Scope, kind: MemoryType, key: str) -> list[Memory]:
        """Return all versions of a key: the current one, then the newest first."""
        return (await self._shelf(scope, kind, key)).versions

    async def expire(
        self, scope: Scope, kind: MemoryType, key: str, *, version: int, at: str
    ) -> bool:
        """Move a memory that has ended to the history, with an event; `undo` brings it back.

        Args:
            scope: The scope.
            kind: The memory's type.
            key: The memory's key.
            version: The store's version of the memory; another one stays.
            at: The moment, in the format of `now`; a memory of a later moment stays.

        Returns:
            Whether the memory was moved.
        """

        def plan(shelf: Shelf) -> Step | None:
            is_it = shelf.item is not None and shelf.item.version == version
            return shelf.retire("evict") if is_it else None

        async with self._lock(scope):
            step = await self._change(scope, kind, key, plan, said_at=at)
        is_gone = step is not None and not step.outdated
        if is_gone:
            emit("memory.expired", type=kind.value, key=key)
        return is_gone

    async def forget(self, scope: Scope, kind: MemoryType, key: str) -> int:
        """Erase a key with its vector, its vital signs and its history.

        A key that is not there leaves the records of runs.

        Returns:
            The number of erased versions.
        """
        name, history = current_key(kind, key), scope.history(kind, key)
        places = [(scope.vitals, name), (scope.current, name)]
        # Nothing is read: what is damaged is erased as well.
        found = [await self._store.exists(*place) for place in places]
        if not (any(found) or await self._store.list_keys(history, 1)):
            return 0
        async with self._lock(scope), without_blocks(self._store, scope, erases=True):
            await self._store.delete(*places[0])
            erased = await self._store.delete(*places[1])
            return erased + await self._store.clear_namespace(history)

    async def memories(self, scope: Scope, kind: MemoryType) -> AsyncIterator[Memory]:
        """Yield the current memories of a type, in the order of their keys."""
        async for item in scan_all(self._store, scope.current, prefix=current_key(kind, "")):
            memory = read_memory(item)
            if memory is not None:
                yield memory

    async def memories_at(
        self, scope: Scope, kind: MemoryType, then: Then
    ) -> AsyncIterator[tuple[Memory, str]]:
        """Yield the memories of a type that count at a moment, in the order of keys.

        Each has its search text. Only versions that are still kept are found; see `version_at`.
        """
        for key in await self._keys(scope, kind):
            shelf = await self._shelf(scope, kind, key)
            memory = version_at(shelf.versions, then)
            if memory is not None:
                yield memory, search_text(memory, shelf.past)

    async def _keys(self, scope: Scope, kind: MemoryType) -> list[str]:
        """Return the keys with a current or a past version, in order."""
        keys = {memory.key async for memory in self.memories(scope, kind)}
        root = scope.history(kind, "")[:-1]
        spaces = all_namespaces(self._store, root)
        keys |= {space[len(root)] async for space in spaces if space != root}
        return sorted(keys)

    def _lock(self, scope: Scope) -> asyncio.Lock:
        return self._locks.setdefault(scope.namespace, asyncio.Lock())

    async def _alike(self, scope: Scope, new: Sequence[Memory]) -> list[StoreItem]:
        """Return the current memories among which are those that are the same as new ones."""
        queries = [memory.content[:_LONGEST_QUERY] for memory in new]
        if len(new) <= _FEW and self._store.capabilities.search and all(map(query_words, queries)):
            try:
                search = partial(self._store.search, scope.current, limit=_HITS)
                hits = await asyncio.gather(*map(search, queries))
                return [item for found in hits for item in found]
            except Exception as error:  # noqa: BLE001 - reported; reading them all does as well
                emit("memory.search_failed", error=error, search="text")
        prefixes = sorted({current_key(memory.type, "") for memory in new})
        pages = [scan_all(self._store, scope.current, prefix=prefix) for prefix in prefixes]
        return [item for page in pages async for item in page]

    async def _edit(
        self,
        scope: Scope,
        edit: Statement | Retirement,
        vectors: _Vectors,
        written: dict[str, Memory],
    ) -> None:
        """Make one change, and note the memory that is written or gone."""

        def plan(shelf: Shelf) -> Step | None:
            if edit.only is not None and (shelf.memory is None or shelf.sequence != edit.only):
                return None
            if isinstance(edit, Statement):
                return shelf.write(edit.memory)
            return shelf.retire("delete", edit.origin)

        step = await self._change(
            scope, edit.type, edit.key, plan, vectors=vectors, said_at=edit.said_at
        )
        if step is not None and step.refused is not None:
            emit(
                "memory.change_refused",
                error=InvalidArgumentError(step.refused),
                type=edit.type.value,
                key=edit.key,
                reason=step.refused,
            )
        elif step is not None and step.outdated:
            emit("memory.outdated", type=edit.type.value, key=edit.key)
        elif step is not None and step.memory is not None:
            written[_name(edit)] = step.memory
        elif step is not None:
            written.pop(_name(edit), None)

    async def _shelf(
        self, scope: Scope, kind: MemoryType, key: str, said_at: str | None = None
    ) -> Shelf:
        item = await self._store.get_item(scope.current, current_key(kind, key))
        records = [each async for each in scan_all(self._store, scope.history(kind, key))]
        now, limit = self.now(), self._history_limit
        return Shelf(scope, kind, key, item, records, now=now, limit=limit, said_at=said_at)

    async def _change(
        self,
        scope: Scope,
        kind: MemoryType,
        key: str,
        plan: _Plan,
        *,
        vectors: _Vectors | None = None,
        said_at: str | None = None,
    ) -> Step | None:
        """Plan a change and write it; plans again while another writer is faster."""
        known = dict(vectors or {})

        @insisting
        async def change() -> Step | None:
            kinds = [kind, *(each for each in MemoryType if each != kind)]
            shelf, *others = await asyncio.gather(
                *(self._shelf(scope, each, key, said_at) for each in kinds)
            )
            shelf.now = not_before(self.now(), shelf, others)
            step = plan(shelf)
            if step is not None:
                await write_together(self._store, await self._with_vector(scope, step, known))
            return step

        return await change()

    async def _with_vector(
        self, scope: Scope, step: Step, vectors: _Vectors
    ) -> Sequence[Put | Delete]:
        """Return the operations of a step, the current memory's put with its vector."""
        memory, embedder = step.memory, self._embedder
        if memory is not None and memory.content not in vectors:
            vectors |= await self._embed([memory.content])
        vector = None if memory is None else vectors.get(memory.content)
        if memory is None or embedder is None or vector is None:
            return step.operations
        # A store without text search must not see any text, and a mark is plain metadata.
        legible = self._store.capabilities.search
        source = memory.content if legible else None
        mark = partial(
            embedded_put, vector=vector, embedder=embedder, source=source, keep_text=legible
        )
        return [
            mark(each) if isinstance(each, Put) and each.namespace == scope.current else each
            for each in step.operations
        ]

    async def _embed(self, contents: Sequence[str]) -> _Vectors:
        """Return the vectors of contents; none if the embedder fails: text search still works."""
        if self._embedder is None or not contents or not await has_semantic_search(self._store):
            return {}
        most = self._store.capabilities.embedding_dimension
        return await vectors_of(self._embedder, contents, dimension=most)


async def vectors_of(
    embedder: Embedder, contents: Iterable[str], *, dimension: int | None = None
) -> _Vectors:
    """Return the vector of each content; none, with an event, if the embedder fails.

    Args:
        embedder: The embedder.
        contents: The contents.
        dimension: The length that a vector must have; `None`: any.
    """
    distinct = list(dict.fromkeys(contents))
    try:
        vectors = await embed(embedder, distinct, "document")
        for vector in vectors:
            check_embedding(vector, dimension)
        return dict(zip(distinct, vectors, strict=True))
    except Exception as error:  # noqa: BLE001 - reported; what was said is kept all the same
        emit("memory.embed_failed", error=error, texts=len(distinct))
        return {}


def _name(edit: Statement | Retirement) -> str:
    return current_key(edit.type, edit.key)


def _by_content(items: Iterable[StoreItem], now: str) -> dict[tuple[MemoryType, str], list[Memory]]:
    """Return the memories that have not expired by what they say, see `folded`."""
    found: dict[tuple[MemoryType, str], list[Memory]] = {}
    for memory in filter(None, map(read_memory, items)):
        if not is_expired(memory, now):
            found.setdefault((memory.type, folded(memory.content)), []).append(memory)
    return found


def _stands_for(known: Memory, new: Memory, last: Mapping[str, str | None]) -> bool:
    """Return whether a memory may stand for a new one with the same content.

    What the user says is not the same as what a tool, a document or an import told. Nor is what
    the metadata place with one agent or run the same as what is another's, or what states when it
    is true the same as what says nothing of that.

    Args:
        known: The memory.
        new: The new one.
        last: What each key of a batch says after it; `None`: it is retired then.
    """
    content = last.get(current_key(known.type, known.key), known.content)
    is_same = content is not None and folded(content) == folded(new.content)
    is_near = all(known.metadata.get(name) == new.metadata.get(name) for name in _PART)
    is_near = is_near and all(
        new.metadata.get(n) in (None, known.metadata.get(n)) for n in VALIDITY
    )
    return is_same and is_near and (has_authority(known) or not has_authority(new))
