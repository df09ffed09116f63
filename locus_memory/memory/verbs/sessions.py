"""Sessions without a run: messages and conversations that a caller hands to a manager."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.queue.queue import ExtractionQueue
from locus_memory.memory.queue.worker import Worker
from locus_memory.memory.scope import Scope
from locus_memory.memory.sessions.ingestion import Ingested, new_thread, said_messages
from locus_memory.memory.sessions.sessions import Sessions
from locus_memory.store.item import Namespace, check_key, check_namespace

__all__ = ["SessionVerbs"]


class SessionVerbs:
    """The part of a memory manager that takes in sessions, and distils them on demand."""

    _scope: Scope
    _bound: bool
    _queue: ExtractionQueue
    _worker: Worker
    _sessions: Sessions

    @abstractmethod
    def for_user(self, user_id: str) -> Self:
        """Return this manager bound to a user's memories."""

    async def add(
        self, messages: Any, *, user_id: str | None = None, thread_id: str | None = None
    ) -> int:
        """Queue messages for extraction as at the end of a run, without a state.

        Args:
            messages: Messages, or dicts with `role` and `content`; a text is one of the user.
            user_id: Whose memories they become; `None`: those that the manager is bound to.
            thread_id: Their thread, of which seen messages are left out; `None`: a new one.

        Returns:
            How many messages are new.

        Raises:
            InvalidArgumentError: They are not messages, or the user or the thread has no name.
            BackendError: The store failed; nothing is queued.
        """
        view = self if user_id is None else self.for_user(user_id)
        thread = new_thread() if thread_id is None else check_key(thread_id)
        said = said_messages(messages)
        await view._worker.start()  # noqa: SLF001 - it is one of us
        job = await view._queue.add(view._scope, thread, said)  # noqa: SLF001 - it is one of us
        await self._take_up(job)
        return 0 if job is None else len(job.messages)

    async def ingest(
        self,
        agent_id: str,
        conversation_id: str,
        turns: Iterable[Mapping[str, str]],
        *,
        session_date: str | None = None,
        skip_extraction: bool = False,
    ) -> Ingested:
        """Ingest turns of a conversation of the past, and distil them at once.

        All turns of a call are one session. Repeating a call changes nothing, and one with more
        turns adds those: a turn is known by its date, its place in the call and its texts.

        Args:
            agent_id: The agent of the conversation.
            conversation_id: Its name; the thread of its episodes.
            turns: Mappings with `user`, `assistant` or both, oldest first.
            session_date: The moment of all turns, ISO 8601; `None`: now.
            skip_extraction: Whether the turns are only recorded in the transcript; another call
                can distil them later.

        Returns:
            `turns`, `episodes` and `facts` that are new, and `pending`, the jobs of the
            conversation that still wait: because the extractor failed, or in manual mode.

        Raises:
            InvalidArgumentError: A name, a turn or the date is invalid; nothing is ingested.
            BackendError: The store failed; call it again.
        """
        return await self._sessions.ingest(
            self._scope,
            agent_id,
            conversation_id,
            turns,
            session_date=session_date,
            skip_extraction=skip_extraction,
        )

    async def sync_now(self, scope: Scope | Namespace | None = None) -> int:
        """Distil all sessions that wait, also in manual mode; returns how many jobs still wait.

        Args:
            scope: Only the sessions of it; `None`: of the scope the manager is bound to, or all.
        """
        if scope is None and self._bound:
            scope = self._scope
        namespace = scope.namespace if isinstance(scope, Scope) else scope
        return await self._worker.drain(
            None if namespace is None else check_namespace(namespace), insists=True
        )

    async def _take_up(self, job: Job | None) -> None:
        is_inline = self._sessions.pace.is_inline
        task = None if job is None else self._worker.add(job, is_awaited=is_inline)
        if is_inline and task is not None:
            # Not awaited as such: a run that is cancelled does not cancel the extraction.
            await asyncio.wait([task])
