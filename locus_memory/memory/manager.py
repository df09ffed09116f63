"""The memory manager over a store: everything the contract asks for, and history."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Self, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords
from locus_memory._internal.resource import Resource
from locus_memory.backends.base import Backend
from locus_memory.conversation.roles import is_off_record
from locus_memory.conversation.tokens import as_token_counter, expected_tokens
from locus_memory.errors import ConfigurationError
from locus_memory.events import emit
from locus_memory.memory.base import BaseMemoryManager, State, with_block
from locus_memory.memory.extraction.extraction import (
    Extraction,
    as_memories,
    check_end,
    check_length,
)
from locus_memory.memory.extraction.extractors import as_extractor
from locus_memory.memory.extraction.thread import conversation, fork_of, others_of
from locus_memory.memory.forms import read_messages, run_state
from locus_memory.memory.layers.episodes import EPISODE_FIELDS
from locus_memory.memory.layers.identity import fix
from locus_memory.memory.ledger.ledger import Ledger, Statement
from locus_memory.memory.models import (
    LONGEST_CONTENT,
    ORIGIN,
    Extractor,
    Memory,
    Origin,
    check_origin,
    is_fixed,
)
from locus_memory.memory.options import (
    ManagerKeywords,
    MemoryOptions,
    check_callable,
    check_embedder,
    check_whole,
    read_options,
)
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.reading.fixed import check_room
from locus_memory.memory.reading.gate import gate_model
from locus_memory.memory.reading.reader import Reader
from locus_memory.memory.reading.uses import Afterwards
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import (
    NamespaceResolver,
    Scope,
    agent_of,
    current_key,
    namespace_of,
    thread_of,
    user_namespace,
)
from locus_memory.memory.sessions.sessions import sessions_in
from locus_memory.memory.tending.tender import Tender, model_of
from locus_memory.memory.validity import checked
from locus_memory.memory.verbs.facts import FactVerbs
from locus_memory.memory.verbs.layers import LayerVerbs
from locus_memory.memory.verbs.recalling import RecallVerbs
from locus_memory.memory.verbs.sessions import SessionVerbs
from locus_memory.registry import as_store
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.wrappers.caching import CachingEmbedder
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_namespace

__all__ = ["LLMMemoryManager"]

_PREFIX: Final = ("locus_memory",)
_COUNTED: Final = 4_096
"""The number of lines whose tokens are remembered."""


class LLMMemoryManager(SessionVerbs, RecallVerbs, LayerVerbs, FactVerbs, BaseMemoryManager):
    """Memories in any store: extracted, kept with their history, recalled by relevance.

    The memories of a run are those of its scope. A run whose state's metadata has a `user_id`
    has that user's, at `(*namespace_prefix, "users", user_id)`; any other one has those at
    `namespace_prefix`; a function in its place decides otherwise. No run ever sees another
    scope. Called directly, the methods work on `namespace_prefix`; `for_user` and `scoped`
    return the same manager bound to another scope.

    Extraction sees each message once. What a run adds to its thread is queued in the store,
    together with a cursor that says how far the thread was read, and leaves the queue when it
    is extracted: `"inline"` before `on_session_end` returns, `"background"` later, in a task.
    What is queued survives the process. It is done with the next run of the same thread, by
    `drain()`, or when the next process starts to use the store, whichever comes first. A job
    that fails five times is dropped, with an event that names its messages.

    Args:
        store: A store, a backend or a provider string; what a string opens is closed here.
        extract_fn: An `Extractor`, such as `LLMExtractor(model)`; a model for one, such as an
            `OpenAIChat`, or its string for `get_model`, whose model is closed here; or a function
            of messages. `None`: the `HeuristicExtractor`.
        namespace_prefix: Where the memories are: a namespace; or a function that returns the
            namespace of a run from its state, or `None` for a run without memory. Let all its
            namespaces have the same length; called directly, the methods work on the default.
        max_memories: The most memories of one type that `retrieve` lists without a query: the
            newest. All others are kept as well, and found.
        embedder: Finds memories by meaning as well, where the store has semantic search. Each
            vector is marked with its name; another one needs `locus-memory reembed` first.
        retrieve_limit: The most memories that `retrieve` returns without a `limit`.
        options: What is kept, when a model reads it, and what a run is shown.
        clock: Returns seconds since the epoch.
        **keywords: The fields of `MemoryOptions` by name, in place of `options`; and
            `history_limit`, the most past versions to keep of each memory, by default 20.

    Raises:
        ConfigurationError: An option that cannot work.
        InvalidArgumentError: A bad namespace or token counter.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        *,
        extract_fn: Extractor | Callable[..., Any] | str | None = None,
        namespace_prefix: Namespace | NamespaceResolver = _PREFIX,
        max_memories: int = 50,
        embedder: Embedder | None = None,
        retrieve_limit: int = 20,
        options: MemoryOptions | None = None,
        clock: Callable[[], float] = time.time,
        **keywords: Unpack[ManagerKeywords],
    ) -> None:
        named = Keywords(self, read_options(keywords))
        self.retrieve_limit = named.rest.pop("retrieve_limit", retrieve_limit)
        resolver = named.rest.pop("namespace_prefix", None)
        history_limit = named.rest.pop("history_limit", 20)
        if callable(namespace_prefix):
            if resolver is not None:
                raise ConfigurationError("namespace_resolver is now namespace_prefix: name one")
            namespace_prefix, resolver = _PREFIX, namespace_prefix
        self._options = options = named.all_into(MemoryOptions, options=options)
        check_callable(clock=clock)
        if resolver is not None:
            check_callable(namespace_prefix=resolver)
        check_embedder(embedder)
        check_whole(0, history_limit=history_limit, retrieve_limit=self.retrieve_limit)
        check_whole(1, max_memories=max_memories)
        self.token_budget = options.memory_budget_tokens
        self.token_counter = as_token_counter(options.token_counter)
        # The same lines are shown again and again.
        self._count = lru_cache(_COUNTED)(options.token_counter or expected_tokens)
        self.namespace_prefix = check_namespace(namespace_prefix)
        self._resolver: NamespaceResolver | None = resolver
        self._scope, self._bound = Scope(namespace_prefix), False
        self._store, self._owned = as_store(store)
        self._listed_of_type = max_memories
        self._ledger = Ledger(self._store, history_limit, clock=clock, embedder=embedder)
        if isinstance(embedder, Embedder):
            # A turn searches several layers for one message, which is embedded once.
            embedder = CachingEmbedder(embedder, max_size=64)
        self._recall = Recall(self._store, embedder, clock=clock)
        extractor = as_extractor(extract_fn)
        self._made: object = None if extractor is extract_fn else extractor
        self._hybrid = HybridSearch(self._store, embedder)
        self._of_episodes = HybridSearch(self._store, embedder, fields=EPISODE_FIELDS)
        self._model = model_of(extractor)
        self._extraction = Extraction(extractor, self._ledger, self._recall, options)
        self.recall_timeout = options.recall_timeout
        self._afterwards = Afterwards(self._store, self._ledger.now)
        parts = (self._store, self._scope, self._ledger, self._extraction)
        made = sessions_in(*parts, options=options, clock=clock)
        self._queue, self._worker, self._distillation = made
        self._reader = self._reader_of(extractor)
        self._tender = self._tender_of(clock)

    def _reader_of(self, extractor: Extractor) -> Reader:
        """Return the reader of the runs."""
        return Reader(
            recall=self._recall,
            options=self._options,
            afterwards=self._afterwards,
            unread=self._queue.unread if self._extraction.is_by_model else None,
            count=self._count,
            now=self._ledger.now,
            model=gate_model(self._options, extractor),
        )

    def _tender_of(self, clock: Callable[[], float]) -> Tender:
        """Return the consolidation of the memories."""
        return Tender(
            self._store,
            self._ledger,
            self._options,
            prefix=self.namespace_prefix,
            resolved=self._resolver is not None,
            clock=clock,
            model=self._model,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, namespace={self.namespace!r})"

    @property
    def _chooses(self) -> bool:
        """Whether a subclass says by its own `retrieve` what is shown."""
        return type(self).retrieve is not LLMMemoryManager.retrieve

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
        said, scope = conversation(read_messages(messages)), self._scope
        job = Job.unqueued(scope.namespace, "", said, self._ledger.now())
        made = await self._extraction.distilled(scope, self._extraction.source_of([job]))
        # What is saved without an origin is a person's.
        own = {ORIGIN: Origin.USER.value}
        told = (edit.memory for edit in made.edits if isinstance(edit, Statement))
        return [replace(each, metadata=own | each.metadata) for each in told]

    @override
    async def save(self, memories: Iterable[Memory] | Memory) -> list[Memory]:
        """Write memories, or one, each in place of the one of the same type and key.

        What is replaced goes to the history. What is there already, but for spaces, stays; its
        metadata is merged, and its importance never falls. A new key whose content another key
        of the type has and keeps, but for case, spaces and forms of characters (NFKC), is
        dropped, with an event, unless the metadata have another `agent_id` or `run_id`; and so is
        what its `origin` may not say: see `refusal`. Nothing else is: however many there are, and
        however alike. Without an `origin` in its metadata, a memory has that of a person.

        Returns:
            What was written.

        Raises:
            InvalidArgumentError: One is no memory, its key or content has more than 20,000
                characters, its `expires_at` is no moment, its `valid_from` or `valid_to` neither
                a day nor a moment, or its `origin` none, or one is fixed and has no room to be
                shown.
            BackendError: The store failed; each memory is written whole or not at all.
        """
        given = [check_end(check_length(each, LONGEST_CONTENT)) for each in as_memories(memories)]
        zone = self._options.zone()
        stated = [
            check_origin(replace(each, metadata=checked(each.metadata, zone))) for each in given
        ]
        await check_room(self._reader, self._scope, stated)
        written = await self._ledger.apply(self._scope, map(Statement, stated))
        names = {current_key(each.type, each.key) for each in written}
        for each in filter(is_fixed, stated):
            # One that is known under another key is fixed there.
            if current_key(each.type, each.key) not in names:
                made = await fix(self._ledger, self._scope, each)
                written += [] if made is None else [made]
        return written

    @override
    async def on_session_start(self, state: State) -> State:
        """Return the state with what its scope remembers after its system prompt.

        As the contract says. The first time, what an earlier process left is taken up.
        """
        seen = run_state(state)
        run = await self.for_run(seen)
        if run is None or not self.token_budget:
            return with_block(state, None)
        if self._chooses:
            return await super(LLMMemoryManager, run).on_session_start(state)
        plan = await self._reader.of_run(
            run._scope,  # noqa: SLF001 - it is one of us
            seen,
            start=self._start,
            timeout=self.recall_timeout,
        )
        return with_block(state, plan.tail, "user", stable=plan.stable)

    @override
    async def on_session_end(self, state: Any) -> None:
        """Extract from what the run added to its thread, now or in the background.

        If the state is off the record, what it added is passed, and never extracted.
        """
        state = run_state(state)
        run = await self.for_run(state)
        if run is None:
            return
        await self._start()
        scope, thread = run._scope, thread_of(state)  # noqa: SLF001 - it is one of us
        try:
            said = conversation(state.messages)
            fork, agent, passes = fork_of(state), agent_of(state), is_off_record(state)
            skips = others_of(state)
            job = await self._queue.add(
                scope, thread, said, fork, agent, passes=passes, skips=skips
            )
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("memory.queue_failed", error=error)
            return
        await self._take_up(job)

    @override
    async def for_run(self, state: Any) -> Self | None:
        """Return this manager bound to the scope of a run; `None`: the run has no memory."""
        if self._bound:
            return self
        try:
            namespace = await namespace_of(state, self.namespace_prefix, self._resolver)
            return None if namespace is None else self.scoped(namespace)
        except Exception as error:  # noqa: BLE001 - reported; a run of nobody sees nothing
            emit("memory.scope_failed", error=error)
            return None

    @override
    async def drain(self) -> int:
        """Extract from all that waits in the store, once; returns how many jobs still wait.

        Short sessions wait no longer. In the mode `"manual"`, nothing is extracted: see `sync_now`.
        """
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
        await self._start()

    @override
    async def close(self) -> None:
        """Drain for at most `drain_timeout` seconds, and close a store that was opened here.

        What is not done by then stays in the store for the next process. In the mode
        `"session_end"`, the sessions that had a turn in this process, however short, and those that
        are over are distilled; in the mode `"manual"`, none.
        """
        if self._bound:
            return
        try:
            await self._tender.schedule.close()
            await self._afterwards.wait()
            await self._worker.close(self._options.drain_timeout)
        finally:
            if isinstance(self._made, Resource):
                await self._made.close()
            if self._owned:
                await self._store.close()

    @override
    async def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the block of memories for a query; empty if there are none, or the search fails.

        `on_session_start` puts the two parts of this block at their places.

        Args:
            query: The user's message; if empty, the newest memories come first.
            session_id: The thread, if it is known.
        """
        if not self.token_budget:
            return ""
        try:
            async with asyncio.timeout(self.recall_timeout):
                if self._chooses:
                    return await super().prefetch(query, session_id=session_id)
                await self._start()
                plan = await self._reader.plan(self._scope, query or None, thread=session_id)
                return plan.block or ""
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("memory.retrieve_failed", error=error)
            return ""

    async def _start(self) -> None:
        """Take up what an earlier process left, and consolidate in the background if it is time."""
        await self._worker.start()
        if self._options.extract_mode != "manual":
            self._tender.schedule.touch()
