"""The memory manager over a store: everything the contract asks for, and history."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Self, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords
from locus_memory._internal.quoting import quote
from locus_memory.backends.base import Backend
from locus_memory.conversation.tokens import as_token_counter
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.base import BaseMemoryManager, State, query_and_limit, with_block
from locus_memory.memory.extraction.extraction import (
    Extraction,
    Origin,
    as_memories,
    check_length,
)
from locus_memory.memory.extraction.extractors import as_extractor
from locus_memory.memory.extraction.thread import conversation, fork_of
from locus_memory.memory.ledger.ledger import Ledger, Limits, Statement
from locus_memory.memory.models import LONGEST_CONTENT, Extractor, Memory, MemoryType
from locus_memory.memory.options import (
    ExtractionOptions,
    MemoryKeywords,
    RecallOptions,
    TendingOptions,
    check_callable,
    check_embedder,
)
from locus_memory.memory.planning.asking import gate_model
from locus_memory.memory.planning.cache import WatchedStore
from locus_memory.memory.planning.planner import Plan, Planner
from locus_memory.memory.planning.uses import Afterwards
from locus_memory.memory.queue.queue import ExtractionQueue
from locus_memory.memory.queue.worker import Worker
from locus_memory.memory.recall import Recall
from locus_memory.memory.scope import (
    NamespaceResolver,
    Scope,
    namespace_of,
    thread_of,
    user_namespace,
)
from locus_memory.registry import as_store
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_key, check_namespace

__all__ = ["LLMMemoryManager"]


class LLMMemoryManager(BaseMemoryManager):
    """Memories in any store: extracted, kept with their history, recalled by relevance.

    The memories of a run are those of its scope. A run whose state's metadata has a `user_id`
    has that user's, at `(*namespace_prefix, "users", user_id)`; any other one has those at
    `namespace_prefix`; a `namespace_resolver` decides otherwise. No run ever sees another
    scope. Called directly, the methods work on `namespace_prefix`; `for_user` and `scoped`
    return the same manager bound to another scope.

    Extraction sees each message once. What a run adds to its thread is queued in the store,
    together with a cursor that says how far the thread was read, and leaves the queue when it
    is extracted: `"inline"` before `on_session_end` returns, `"background"` later, in a task.
    What is queued survives the process. It is done with the next run of the same thread, by
    `drain()`, or when the next process starts to use the store, whichever comes first. A job
    that fails `max_attempts` times is dropped, with an event that names its messages.

    Args:
        store: A store, a backend or a provider string; what a string opens is closed here.
        extract_fn: An `Extractor`, such as `LLMExtractor(model)`, or a function of messages;
            `None`: the `HeuristicExtractor`.
        namespace_prefix: Where the memories are.
        namespace_resolver: Returns the namespace of a run from its state, or `None` for a run
            without memory. Let all its namespaces have the same length.
        max_memories: The most current memories of one type; the least important and oldest
            go to the history.
        history_limit: The most past versions to keep of each memory.
        embedder: Finds memories by meaning as well, where the store has semantic search. Each
            vector is marked with its name; another one needs `locus-memory reembed` first.
        recall: What a run is reminded of.
        extraction: When to extract, how long that may take, and what is kept.
        tending: The layers, the gate and the consolidation of a memory that tends itself; `None`:
            turns become facts only, and every message gets memories.
        clock: Returns seconds since the epoch.
        **keywords: The fields of `RecallOptions` and `ExtractionOptions` by name, in place of
            `recall` and `extraction`.

    Raises:
        ConfigurationError: An option that cannot work.
        InvalidArgumentError: A bad namespace, extractor or token counter.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        *,
        extract_fn: Extractor | Callable[..., Any] | None = None,
        namespace_prefix: Namespace = ("locus_memory",),
        namespace_resolver: NamespaceResolver | None = None,
        max_memories: int = 50,
        history_limit: int = 20,
        embedder: Embedder | None = None,
        recall: RecallOptions | None = None,
        extraction: ExtractionOptions | None = None,
        tending: TendingOptions | None = None,
        clock: Callable[[], float] = time.time,
        **keywords: Unpack[MemoryKeywords],
    ) -> None:
        named = Keywords(self, keywords)
        recall = named.into(RecallOptions, recall=recall)
        extraction = named.into(ExtractionOptions, extraction=extraction)
        named.refuse_rest()
        if not isinstance(tending, TendingOptions | None):
            raise ConfigurationError(
                f"tending is TendingOptions(...) or None, not {quote(tending)}"
            )
        check_callable(clock=clock)
        if namespace_resolver is not None:
            check_callable(namespace_resolver=namespace_resolver)
        check_embedder(embedder)
        self.retrieve_limit = recall.retrieve_limit
        self.token_budget = recall.token_budget
        self.token_counter = as_token_counter(recall.token_counter)
        self.namespace_prefix = check_namespace(namespace_prefix)
        self._resolver = namespace_resolver
        self._scope, self._bound = Scope(namespace_prefix), False
        self._store, self._owned = as_store(store)
        self._tending = TendingOptions(enabled=False) if tending is None else tending
        plain = self._store
        if self._tending.enabled:
            self._store = WatchedStore(plain)
        limits = Limits(max_memories, history_limit)
        self._ledger = Ledger(self._store, limits, clock=clock, embedder=embedder)
        self._recall = Recall(plain, embedder)
        extractor = as_extractor(extract_fn)
        self._extraction = Extraction(extractor, self._ledger, self._recall, extraction)
        self._afterwards = Afterwards(plain, self._ledger.now)
        self._planner = Planner(
            plain,
            self._recall,
            self._tending,
            self._afterwards,
            embedder=embedder,
            limit=recall.retrieve_limit,
            count=self.token_counter,
            clock=clock,
            now=self._ledger.now,
            model=gate_model(self._tending, extractor),
        )
        self._recall_timeout = recall.recall_timeout
        self._drain_timeout = extraction.drain_timeout
        self._inline = extraction.extract_mode == "inline"
        self._queue = ExtractionQueue(self._store, self._scope, self._ledger.now)
        self._worker = Worker(self._queue, self._extraction.run, extraction, clock=clock)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, namespace={self.namespace!r})"

    @property
    def namespace(self) -> Namespace:
        """Where the memories are that the methods work on."""
        return self._scope.namespace

    def scoped(self, namespace: Namespace) -> Self:
        """Return this manager bound to another namespace, whatever a run's state says.

        It shares the store and the work in the background; closing it does nothing.

        Raises:
            InvalidNamespaceError: It is no namespace.
        """
        view = copy.copy(self)
        view._scope, view._bound = Scope(namespace), True  # noqa: SLF001 - it is one of us
        return view

    def for_user(self, user_id: str) -> Self:
        """Return this manager bound to a user's memories; as `scoped`."""
        return self.scoped(user_namespace(self.namespace_prefix, user_id))

    @override
    async def extract(self, messages: Sequence[Any]) -> list[Memory]:
        """Return what the extractor would write; nothing is written or marked as seen.

        Raises:
            TimeoutError: The extractor took too long.
            ModelAnswerError: The model's answer cannot be read, not even repaired.
            BackendError: The store failed.
        """
        said = conversation(messages)
        edits = await self._extraction.edits(self._scope, Origin(said, range(1, len(said) + 1)))
        return [edit.memory for edit in edits if isinstance(edit, Statement)]

    @override
    async def retrieve(
        self, query: str | int | None = None, limit: int | str | None = None
    ) -> list[Memory]:
        """Return current memories, the best first.

        With a query, text search, and vector search where there is an embedder, decide together
        as in `HybridSearch`; what is missing to the limit is filled up with the newest. Without
        a query, and where the store cannot search, the newest come first. A search that fails is
        reported as an event, and the others or the newest must do.

        Args:
            query: Their subject; of a long text, the two ends are read.
            limit: At most this many; `None`: the `retrieve_limit`.

        Raises:
            InvalidArgumentError: Something else than a query and a limit.
            ConfigurationError: The vectors of the memories are of another model than the
                embedder; `locus-memory reembed` recomputes them. A run reports that as an event,
                and recalls by words meanwhile.
            BackendError: The store failed.
        """
        about, most = query_and_limit(query, limit)
        most = self.retrieve_limit if most is None else most
        return await self._recall.find(self._scope, most, about, strict=True)

    @override
    async def save(self, memories: Iterable[Memory] | Memory) -> list[Memory]:
        """Write memories, or one, each in place of the one of the same type and key.

        What is replaced goes to the history. What is there already, but for spaces, stays; its
        metadata is merged, and its importance never falls. A new key whose content another key
        of the type has and keeps, but for how it ends and how its words begin, is dropped, with
        an event. Of a type that has too many, the least important and oldest go to the history,
        with an event.

        Returns:
            What was written and is still there.

        Raises:
            InvalidArgumentError: One is no memory, or its key or content has more than 20,000
                characters.
            BackendError: The store failed; each memory is written whole or not at all.
        """
        checked = [check_length(each, LONGEST_CONTENT) for each in as_memories(memories)]
        return await self._ledger.apply(self._scope, list(map(Statement, checked)))

    async def history(self, key: str, type: MemoryType | str | None = None) -> list[Memory]:  # noqa: A002 - the field's word
        """Return all versions of a memory: the current one, then past ones, newest first.

        A past version says in its metadata when it ended, `superseded_at`, and by what,
        `superseded_by`: a change (`update`, `delete`, `evict` or `undo`) and the version that
        took its place, if there was one.

        Args:
            key: The memory's key.
            type: The memory's type; `None`: whatever types have the key, one after another.

        Raises:
            BackendError: The store failed.
        """
        check_key(key)
        kinds = _kinds(type)
        found = await asyncio.gather(
            *(self._ledger.history(self._scope, kind, key) for kind in kinds)
        )
        return [memory for versions in found for memory in versions]

    async def undo(self, key: str, type: MemoryType | str | None = None) -> Memory | None:  # noqa: A002 - the field's word
        """Take back the last change of a memory; a second call takes back the one before.

        A replaced memory is current again, a deleted or evicted one is restored, an added one
        is removed. What was taken back stays in the history. Nothing happens where there is no
        change left, or the version to go back to is no longer kept. Where a restored memory is
        one too many of its type, another one goes to the history, with an event.

        Args:
            key: The memory's key.
            type: The memory's type; `None`: of the types that have the key, the one whose
                change to take back is the latest.

        Returns:
            What is current now, or `None`.

        Raises:
            BackendError: The store failed.
        """
        check_key(key)
        kinds = _kinds(type)
        if len(kinds) > 1:
            kinds = await self._last_changed(key)
        for kind in kinds:
            return await self._ledger.undo(self._scope, kind, key)
        return None

    async def forget(self, key: str, type: MemoryType | str | None = None) -> int:  # noqa: A002 - the field's word
        """Erase a memory for good: what is current, its vector and its history.

        Messages that still wait for extraction are left alone, and may bring it back.

        Args:
            key: The memory's key.
            type: The memory's type; `None`: all types.

        Returns:
            How many versions were erased.

        Raises:
            BackendError: The store failed; call it again.
        """
        check_key(key)
        return sum([await self._ledger.forget(self._scope, kind, key) for kind in _kinds(type)])

    async def memories(self, type: MemoryType | str | None = None) -> AsyncIterator[Memory]:  # noqa: A002 - the field's word
        """Yield all current memories, by type and key, however many."""
        for kind in _kinds(type):
            async for memory in self._ledger.memories(self._scope, kind):
                yield memory

    async def plan(
        self, query: str | None, *, agent_id: str | None = None, first_in_thread: bool = True
    ) -> Plan:
        """Return what a run with this message is shown, and why; nothing is counted.

        Only a decision of the gate's model is written, as an entry of the log.

        Args:
            query: The message of the user.
            agent_id: The agent of the run.
            first_in_thread: Whether it is the user's first message in its thread.

        Raises:
            BackendError: The store failed.
        """
        return await self._planner.plan(
            self._scope, query, agent_id=agent_id, first_in_thread=first_in_thread
        )

    @override
    async def on_session_start(self, state: State) -> State:
        """Return the state with what its scope remembers after its system prompt.

        As the contract says. The first time, what an earlier process left is taken up.
        """
        if self._bound and not self._tending.enabled:
            return await super().on_session_start(state)
        if self._bound:
            return with_block(state, await self._planned(state))
        scoped = await self._of_run(state)
        return with_block(state, None) if scoped is None else await scoped.on_session_start(state)

    @override
    async def on_session_end(self, state: Any) -> None:
        """Extract from what the run added to its thread, now or in the background."""
        if not self._bound:
            scoped = await self._of_run(state)
            if scoped is not None:
                await scoped.on_session_end(state)
            return
        await self._worker.start()
        try:
            said = conversation(state.messages)
            job = await self._queue.add(self._scope, thread_of(state), said, fork_of(state))
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("memory.queue_failed", error=error)
            return
        task = None if job is None else self._worker.add(job, is_awaited=self._inline)
        if self._inline and task is not None:
            # Not awaited as such: a run that is cancelled does not cancel the extraction.
            await asyncio.wait([task])

    @override
    async def drain(self) -> int:
        """Extract from all that waits in the store, once; returns how many jobs still wait."""
        await self._afterwards.wait()
        return await self._worker.drain()

    @property
    @override
    def pending(self) -> int:
        """How many jobs wait for extraction or are under way, as far as this process knows."""
        return self._worker.pending

    @override
    async def open(self) -> None:
        """Connect now, and take up what an earlier process left, rather than on first use."""
        await self._store.open()
        await self._worker.start()

    @override
    async def close(self) -> None:
        """Drain for at most `drain_timeout` seconds, and close a store that was opened here.

        What is not done by then stays in the store for the next process.
        """
        if self._bound:
            return
        try:
            await self._afterwards.wait()
            await self._worker.close(self._drain_timeout)
        finally:
            if self._owned:
                await self._store.close()

    @override
    async def _recalled(self, query: str | None) -> list[Memory]:
        async with asyncio.timeout(self._recall_timeout):
            await self._worker.start()
            try:
                return await super()._recalled(query)
            except ConfigurationError:
                # Reported there, where words must do.
                return await self._recall.find(self._scope, self.retrieve_limit, query)

    async def _planned(self, state: Any) -> str | None:
        """Return the block of a run of a memory that tends itself."""
        if not self._tending.passive:
            return None
        start, timeout = self._worker.start, self._recall_timeout
        return await self._planner.block(self._scope, state, start=start, timeout=timeout)

    async def _of_run(self, state: Any) -> Self | None:
        """Return this manager bound to the scope of a run; `None`: the run has no memory."""
        try:
            namespace = await namespace_of(state, self.namespace_prefix, self._resolver)
            return None if namespace is None else self.scoped(namespace)
        except Exception as error:  # noqa: BLE001 - reported; a run of nobody sees nothing
            emit("memory.scope_failed", error=error)
            return None

    async def _last_changed(self, key: str) -> list[MemoryType]:
        found = await asyncio.gather(
            *(self._ledger.last_change(self._scope, kind, key) for kind in MemoryType)
        )
        changed = {
            k: moment for k, moment in zip(MemoryType, found, strict=True) if moment is not None
        }
        return sorted(changed, key=lambda kind: changed[kind], reverse=True)[:1]


def _kinds(type: MemoryType | str | None) -> list[MemoryType]:  # noqa: A002 - the field's word
    try:
        return list(MemoryType) if type is None else [MemoryType(type)]
    except ValueError:
        known = ", ".join(MemoryType)
        raise InvalidArgumentError(
            f"a memory's type is one of {known}, not {quote(type)}"
        ) from None
