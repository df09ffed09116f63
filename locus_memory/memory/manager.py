"""The memory manager over a store: everything the contract asks for, and history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import override

from locus_memory._internal.resource import Resource
from locus_memory.conversation.roles import is_off_record
from locus_memory.events import emit
from locus_memory.memory.base import State, with_block
from locus_memory.memory.extraction.extraction import (
    as_memories,
    check_end,
    check_length,
)
from locus_memory.memory.extraction.thread import conversation, fork_of, others_of
from locus_memory.memory.forms import read_messages, run_state
from locus_memory.memory.ledger.ledger import Statement
from locus_memory.memory.models import (
    LONGEST_CONTENT,
    ORIGIN,
    Memory,
    Origin,
    check_origin,
)
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.reading.fixed import check_room
from locus_memory.memory.scope import (
    agent_of,
    thread_of,
)
from locus_memory.memory.validity import checked
from locus_memory.memory.verbs.facts import FactVerbs
from locus_memory.memory.verbs.recalling import RecallVerbs
from locus_memory.memory.verbs.sessions import SessionVerbs
from locus_memory.memory.verbs.tending import TendingVerbs

__all__ = ["LLMMemoryManager"]


class LLMMemoryManager(SessionVerbs, RecallVerbs, TendingVerbs, FactVerbs):
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

    @property
    def _chooses(self) -> bool:
        """Whether a subclass says by its own `retrieve` what is shown."""
        return type(self).retrieve is not LLMMemoryManager.retrieve

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
        made = await self._extraction.distilled(scope, [job])
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
        return await self._ledger.apply(self._scope, map(Statement, stated))

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
        try:
            job = await self._queue.add(
                run._scope,  # noqa: SLF001 - it is one of us
                thread_of(state),
                conversation(state.messages),
                fork_of(state),
                agent_of(state),
                passes=is_off_record(state),
                skips=others_of(state),
            )
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            emit("memory.queue_failed", error=error)
            return
        await self._take_up(job)

    @override
    async def drain(self) -> int:
        """Extract from all that waits in the store, once; returns how many jobs still wait.

        Short sessions wait no longer. In the mode `"manual"`, nothing is extracted: see `sync_now`.
        """
        await self._reader.afterwards.wait()
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
            await self._schedule.close()
            await self._reader.afterwards.wait()
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
            self._schedule.touch()
