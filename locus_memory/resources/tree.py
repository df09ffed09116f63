"""The tree: operations on entries and folders, over any store."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from typing_extensions import override

from locus_memory.chat.asking import check_model
from locus_memory.chat.base import ChatModel
from locus_memory.errors import (
    InvalidMemoryURI,
    MemoryConflict,
    MemoryNotFound,
    MemoryStoreClosed,
    MemoryTimeout,
    UnsupportedMemoryOp,
)
from locus_memory.memory.options import check_callable, check_embedder
from locus_memory.resources.background import Background, Refiner
from locus_memory.resources.failures import as_failure
from locus_memory.resources.levels.making import LevelMaker
from locus_memory.resources.operations import (
    MemoryOp,
    MemoryOpCommit,
    MemoryOpDelete,
    MemoryOpFind,
    MemoryOpHistory,
    MemoryOpList,
    MemoryOpMove,
    MemoryOpRead,
    MemoryOpResource,
    MemoryOpSearch,
    MemoryOpTree,
    MemoryOpWrite,
)
from locus_memory.resources.reading.levels import Reader
from locus_memory.resources.reading.listing import listed
from locus_memory.resources.reading.memories import FACTS, MemoriesView
from locus_memory.resources.reading.search import FIELDS, TreeSearch, blended
from locus_memory.resources.results import (
    MemoryCommitResult,
    MemoryDeleteResult,
    MemoryExecutionFailure,
    MemoryFindResult,
    MemoryMoveResult,
    MemoryResult,
    MemoryWriteResult,
)
from locus_memory.resources.sessions import Fact, Sessions, dropped
from locus_memory.resources.storing.places import Path, Places
from locus_memory.resources.storing.plans import Plans
from locus_memory.resources.storing.writing import TreeWriter
from locus_memory.resources.uri import ROOT, MemoryURI, as_uri
from locus_memory.resources.verbs import MemoryVerbs
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace
from locus_memory.store.opening import StoreUser, store_of

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.events import Event
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.resources.fetching import FetchOptions

__all__ = ["MemoryTree"]

_PREFIX: Final = ("memory",)
_FACTS: Final = ("locus_memory",)


class MemoryTree(MemoryVerbs, StoreUser):
    """A tree of texts named by `memory://` URIs, on any store.

    `dispatch` takes an operation and returns its result or a failure; the verbs, such as `write`
    and `read`, raise a failure as an error. A name is an entry or a folder, never both, also when
    several processes write at once. A write of an entry, with its chunks and its past version, is
    all or nothing on a store with transactions.

    The memories that `commit` takes from sessions are those of an `LLMMemoryManager`, and are read
    below `memory://memories/`; nothing is written there.

    Args:
        store: A store, a backend or a provider string; what a string opens is closed here.
        prefix: The namespace of the tree.
        user_id: The user whose tree it is; no URI leads out of it. `forget(user_id=...)` erases
            it. `None`: a tree of no user.
        embedder: Finds entries by meaning as well, where the store has semantic search.
        model: Makes the abstracts and overviews, and extracts memories; `None`: rules do.
        memory_manager: Extracts and keeps the memories; `None`: one at `("locus_memory",)`, where
            that of an agent is; with another prefix than `("memory",)`, one at its part `facts`.
        fetch: What a URL that is ingested may take; `None` for the defaults.
        clock: Returns seconds since the epoch.

    Raises:
        ConfigurationError: An invalid provider string, model or embedder.
        InvalidArgumentError: An invalid prefix or user id.
    """

    user_id: str | None

    def __init__(
        self,
        store: str | BaseStore | Backend,
        *,
        prefix: Namespace = _PREFIX,
        user_id: str | None = None,
        embedder: Embedder | None = None,
        model: ChatModel | None = None,
        memory_manager: LLMMemoryManager | None = None,
        fetch: FetchOptions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_embedder(embedder)
        check_callable(clock=clock)
        if model is not None:
            check_model(model)
        Places.of(prefix, user_id)
        self.store, self._owned = store_of(store)
        self.prefix = prefix
        self._embedder, self._model, self._clock = embedder, model, clock
        self._fetch = fetch
        self._managers: list[LLMMemoryManager] = [] if memory_manager is None else [memory_manager]
        self._owns_manager = memory_manager is None
        self._background = Background()
        self._is_view = False
        # Shared with the views of users.
        self._closed: set[bool] = set()
        self._opened: set[bool] = set()
        self._bind(user_id)

    def _bind(self, user_id: str | None) -> None:
        self.user_id = user_id
        has_tasks = self._embedder is not None or self._model is not None
        self._plans = Plans(
            self.store,
            Places.of(self.prefix, user_id),
            has_tasks=has_tasks,
            has_model=self._model is not None,
        )
        self._writer = TreeWriter(self._plans, self._now)
        self._maker = LevelMaker(self._plans, self._writer, self._embedder, self._model)
        self._refiner = Refiner(self._maker, self._background)
        self._view = MemoriesView(self._manager, self._clock)
        self._sessions = Sessions(self._plans, self._manager, self._now)
        hybrid = HybridSearch(self.store, self._embedder, fields=FIELDS)
        self._search = TreeSearch(self.store, self._plans.places, hybrid, self._view)

        self._reader = Reader(self._plans, self._maker, self._view)
        lists = partial(listed, self._writer, self._view)
        self._handlers: Mapping[type[Any], Callable[[Any], Awaitable[MemoryResult]]] = {
            MemoryOpWrite: self._write,
            MemoryOpRead: self._reader.read,
            MemoryOpList: lists,
            MemoryOpTree: lists,
            MemoryOpFind: self._find,
            MemoryOpSearch: self._search_session,
            MemoryOpResource: self._resource,
            MemoryOpCommit: self._commit,
            MemoryOpDelete: self._delete,
            MemoryOpMove: self._move,
            MemoryOpHistory: self._reader.history,
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r}, user_id={self.user_id!r})"

    @property
    @override
    def backend_name(self) -> str:
        return "local"

    def for_user(self, user_id: str) -> Self:
        """Return the tree of a user on the same store; closing it does nothing.

        Raises:
            InvalidArgumentError: It is no user id.
        """
        view = copy.copy(self)
        view._is_view = True  # noqa: SLF001 - it is one of us
        view._bind(user_id)  # noqa: SLF001 - as above
        return view

    def takes_store(self, *, is_owned: bool) -> None:
        """Say whether `close` closes the store, which somebody opened for this tree alone."""
        self._owned = is_owned

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def _manager(self) -> LLMMemoryManager:
        """Return the memory manager of this user; the first call makes it."""
        if not self._managers:
            # Loaded with the first commit or the first look at memories.
            from locus_memory.memory.extraction.extractors import LLMExtractor  # noqa: PLC0415
            from locus_memory.memory.manager import LLMMemoryManager  # noqa: PLC0415

            made = LLMMemoryManager(
                self.store,
                extract_fn=None if self._model is None else LLMExtractor(self._model),
                namespace_prefix=_FACTS if self.prefix == _PREFIX else (*self.prefix, "facts"),
                embedder=self._embedder,
                extract_mode="background",
                transcript=False,
                clock=self._clock,
            )
            self._managers.append(made)
        manager = self._managers[0]
        if self.user_id is None:
            return manager.scoped(manager.namespace)
        return manager.for_user(self.user_id)

    @override
    async def open(self) -> None:
        """Open the store, and take up what an earlier process left to do."""
        self._check_open()
        await super().open()
        await self._ready()

    async def _ready(self) -> None:
        """Learn what the store can do, and take up what an earlier process left."""
        if not self.store.capabilities.transactions and not self._opened:
            # What a server can do is known once it is connected.
            await self.store.open()
            self._opened.add(True)
        await self._refiner.start()

    @override
    async def close(self) -> None:
        """Finish the work in the background, and close a store that was opened here.

        What is not done after 30 seconds is done by the next process.
        """
        if self._is_view or self._closed:
            return
        self._closed.add(True)
        try:
            await self._background.close()
            if self._owns_manager:
                for manager in self._managers:
                    await manager.close()
        finally:
            await super().close()

    async def drain(self) -> int:
        """Make all levels and vectors that are still to be made; returns how many could not be."""
        self._check_open()
        return await self._refiner.drain()

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryStoreClosed(type(self).__name__)

    @override
    async def dispatch(self, op: MemoryOp) -> MemoryResult | MemoryExecutionFailure:
        """Return the result of an operation, or the failure of whatever goes wrong with it.

        Raises:
            UnsupportedMemoryOp: It is no operation of this library.
            MemoryStoreClosed: The tree is closed.
        """
        work = self._handlers.get(type(op))
        if work is None:
            raise UnsupportedMemoryOp(type(op).__name__, self.backend_name)
        self._check_open()
        try:
            await self._ready()
            return await work(op)
        except Exception as error:  # noqa: BLE001 - a failure is an answer
            return as_failure(error)

    async def _write(self, op: MemoryOpWrite) -> MemoryWriteResult:
        uri = as_uri(op.uri)
        path = self._writable(op, uri)
        await self._writer.write(path, op.content, op.mode, op.metadata)
        await self._finish(op.wait, op.timeout_seconds, path)
        return MemoryWriteResult(str(uri), len(op.content.encode()))

    def _writable(self, op: MemoryOp, uri: MemoryURI) -> Path:
        """Return the path of an entry that may be written.

        Raises:
            InvalidMemoryURI: It is a folder.
            UnsupportedMemoryOp: It is a memory.
        """
        self._check_not_facts(op, uri)
        if uri.is_folder:
            raise InvalidMemoryURI(f"{uri} is a folder: name an entry in it, without a last slash")
        return uri.segments

    def _check_not_facts(self, op: MemoryOp, uri: MemoryURI) -> None:
        if uri.segments and uri.segments[0] == FACTS:
            raise UnsupportedMemoryOp(
                type(op).__name__,
                self.backend_name,
                f"memory://{FACTS}/ shows the memories of a memory manager: change them there",
            )

    async def _finish(self, waits: bool, seconds: float | None, *paths: Path) -> None:  # noqa: FBT001 - a field of the operation
        """Complete entries now or in the background.

        Raises:
            MemoryTimeout: It takes longer; it goes on.
        """
        tasks = [task for path in paths if (task := self._refiner.add(path)) is not None]
        if not waits or not tasks:
            return
        _, left = await asyncio.wait(tasks, timeout=seconds)
        if left:
            raise MemoryTimeout(f"it is written, and not all is searchable after {seconds} seconds")

    async def _find(self, op: MemoryOpFind) -> MemoryFindResult:
        target = ROOT if op.target_uri is None else as_uri(op.target_uri)
        without = None if op.without is None else as_uri(op.without)
        return MemoryFindResult(tuple(await self._search.find(op.query, target, op.top_k, without)))

    async def _search_session(self, op: MemoryOpSearch) -> MemoryFindResult:
        target = ROOT if op.target_uri is None else as_uri(op.target_uri)
        known, version = (
            (None, 0) if op.session_id is None else await self._sessions.record(op.session_id)
        )
        if known is None or not version:
            return MemoryFindResult(tuple(await self._search.find(op.query, target, op.top_k)))
        wide = 3 * op.top_k
        found = await self._search.find(op.query, target, wide)
        steered = await self._search.find("\n".join(known.said), target, wide)
        return MemoryFindResult(tuple(blended(found, steered, known.used)[: op.top_k]))

    async def _resource(self, op: MemoryOpResource) -> MemoryResult:
        # Loaded only for files.
        from locus_memory.resources.fetching import FetchOptions  # noqa: PLC0415
        from locus_memory.resources.ingest import ingested  # noqa: PLC0415

        target = None if op.target_uri is None else as_uri(op.target_uri)
        self._check_not_facts(op, target or ROOT)
        result, paths = await ingested(self._writer, op, target, self._fetch or FetchOptions())
        await self._finish(op.wait, op.timeout_seconds, *paths)
        return result

    async def _commit(self, op: MemoryOpCommit) -> MemoryCommitResult:
        if not op.wait:
            path = await self._sessions.commit(op)
            if path is not None:
                self._refiner.add(path)
            return MemoryCommitResult(op.session_id, _uri_of(path), -1)
        # Extraction may begin with the commit.
        before = await self._sessions.facts(op.session_id)
        with ExitStack() as watching:
            given_up = watching.enter_context(dropped(op.session_id))
            path = await self._sessions.commit(op)
            work = self._background.run(partial(self._extracted, op, before, given_up, path))
            kept = watching.pop_all()
            work.add_done_callback(lambda _: kept.close())
        done, _ = await asyncio.wait([work], timeout=op.timeout_seconds)
        if not done:
            raise MemoryTimeout(f"the extraction goes on after {op.timeout_seconds} seconds")
        return MemoryCommitResult(None, _uri_of(path), work.result())

    async def _extracted(
        self,
        op: MemoryOpCommit,
        before: Collection[Fact],
        given_up: Collection[Event],
        path: Path | None,
    ) -> int:
        count = await self._sessions.extracted(op.session_id, before, given_up)
        if path is not None:
            await self._maker.complete(path)
        return count

    async def _delete(self, op: MemoryOpDelete) -> MemoryDeleteResult:
        uri = as_uri(op.uri)
        self._check_not_facts(op, uri)
        if not await self._reader.is_folder(uri):
            await self._writer.delete(uri.segments)
            return MemoryDeleteResult(str(uri), 1)
        if not op.recursive:
            raise MemoryConflict(str(uri), "it is a folder: delete it with recursive=True")
        count = await self._writer.delete_below(uri.segments)
        if not count and uri.segments:
            raise MemoryNotFound(str(uri))
        return MemoryDeleteResult(str(uri), count)

    async def _move(self, op: MemoryOpMove) -> MemoryMoveResult:
        uri, target = as_uri(op.uri), as_uri(op.target_uri)
        for each in (uri, target):
            self._check_not_facts(op, each)
        if not await self._reader.is_folder(uri):
            path = self._writable(op, target)
            await self._writer.move(uri.segments, path)
            self._refiner.add(path)
            return MemoryMoveResult(str(target), 1)
        if target.is_within(uri):
            raise MemoryConflict(str(target), "a folder does not move into itself")
        paths = [each async for each in self._writer.entries(uri.segments)]
        if not paths:
            raise MemoryNotFound(str(uri))
        # All are checked before the first one moves.
        moves = {each: target.segments + each[len(uri.segments) :] for each in paths}
        for moved in moves.values():
            self._check_not_facts(op, MemoryURI(moved))
            await self._writer.check_free(moved, leaving=moves)
        for path, moved in moves.items():
            await self._writer.move(path, moved)
            self._refiner.add(moved)
        return MemoryMoveResult(str(target.as_folder), len(paths))


def _uri_of(path: Path | None) -> str | None:
    return None if path is None else str(MemoryURI(path))
