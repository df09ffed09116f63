"""Sessions without a run: messages and conversations that a caller hands to a manager."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from locus_memory.memory.extraction.thread import conversation, fork_of
from locus_memory.memory.layers.episodes import EpisodeBook
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.queue.turns import (
    Ingested,
    marked_turns,
    moment_of,
    said_messages,
)
from locus_memory.memory.reading.lines import note_lines
from locus_memory.memory.scope import metadata_of, thread_of, user_of
from locus_memory.memory.verbs.single import SingleMemories
from locus_memory.store.item import check_key

if TYPE_CHECKING:
    from locus_memory.conversation.summary.stored_summaries import SummaryStore

__all__ = ["SessionVerbs"]

_KEPT: Final = 86_400.0


class SessionVerbs(SingleMemories):
    """The part of a memory manager that takes in sessions, and distils them on demand."""

    async def add(
        self, messages: Any, *, user_id: str | None = None, thread_id: str | None = None
    ) -> int:
        """Queue messages for extraction as at the end of a run, without a state.

        Args:
            messages: Messages of any form, see `memory.forms`, or a state that has some; a text is
                one of the user.
            user_id: Whose memories they become; `None`: those that the manager is bound to, or else
                the user of the state.
            thread_id: Their thread, of which seen messages are left out; `None`: that of the state,
                or else a new one.

        Returns:
            How many messages are new.

        Raises:
            InvalidArgumentError: They are not messages, or the user or the thread has no name.
            BackendError: The store failed; nothing is queued.
        """
        user = user_of(messages) if user_id is None and not self._bound else user_id
        thread = metadata_of(messages).get("thread_id") if thread_id is None else thread_id
        view = self if user is None else self.for_user(user)
        thread = uuid4().hex if thread is None else check_key(thread)
        said = said_messages(messages)
        await view._worker.start()  # noqa: SLF001 - it is one of us
        job = await view._queue.add(view._scope, thread, said)  # noqa: SLF001 - it is one of us
        await self._take_up(job)
        return 0 if job is None else len(job.messages)

    async def ingest(
        self,
        agent_id: str,
        conversation_id: str,
        turns: Iterable[Any],
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
            turns: Mappings with `user`, `assistant` or both, oldest first; or messages, or dicts
                of one with `role` and `content`, each of which is a turn. The `name` of a message
                that is not the user's names its speaker, and `said_at` in its metadata, ISO 8601,
                is its moment.
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
        check_key(agent_id)
        check_key(conversation_id)
        await self._worker.start()
        scope, zone = self._scope, self._options.zone()
        at, offset = moment_of(session_date, self._ledger.now(), zone)
        marked = marked_turns(turns, None if session_date is None else at, offset, zone)
        job = await self._queue.add_turns(
            scope, conversation_id, marked, at, agent_id, queues=not skip_extraction
        )
        lane = scope.lane(conversation_id)
        with self._extraction.counting(lane) as counts:
            if not skip_extraction:
                if job is not None and job.version:
                    self._worker.add(job)
                await self._worker.flush(scope.namespace, lane)
            return {
                "turns": 0 if job is None else len({each["turn"] for each in job.messages}),
                "episodes": counts["episodes"],
                "facts": counts["facts"],
                "pending": len(await self._queue.waiting(lane)),
            }

    async def sync_now(self) -> int:
        """Distil all sessions that wait, also in manual mode; returns how many jobs still wait.

        These are the sessions of the scope that the manager is bound to, or else all.
        """
        space = self._scope.namespace if self._bound else None
        return await self._worker.drain(space, insists=True)

    async def _take_up(self, job: Job | None) -> None:
        task = self._worker.add(job) if job is not None and job.version else None
        if task is not None:
            # Not awaited as such: a run that is cancelled does not cancel the extraction.
            await asyncio.wait([task])

    @property
    def has_notes(self) -> bool:
        """Whether notes are made of what is said: the extractor reads sessions as a whole."""
        return self._extraction.distils

    @property
    def kept_notes(self) -> SummaryStore:
        """The notes that stand in place of messages, kept for a day; an erasure drops them."""
        from locus_memory.conversation.summary.stored_summaries import SummaryStore  # noqa: PLC0415 - few summarise

        return SummaryStore(self._store, self._scope.kept_notes, ttl=_KEPT)

    async def notes_of(
        self, state: Any, messages: Sequence[Any], bounds: Sequence[int]
    ) -> tuple[int, list[str]]:
        """Return the notes of the first messages of a thread, and of how many messages they are.

        If extraction has not read up to the last bound, it does so first. What a tool told is left
        out, as in each system prompt.

        Args:
            state: The state of the run, which names its thread and what that was forked from.
            messages: All messages of the thread, oldest first.
            bounds: How many messages it may be, ascending.

        Returns:
            The greatest of the bounds up to which extraction has read, or 0, and a line with its
            day for each note, oldest first.

        Raises:
            BackendError: The store failed.
        """
        said, thread, fork = conversation(messages), thread_of(state), fork_of(state)
        told = [0, *accumulate(len(conversation((each,))) for each in messages)]
        read, before = await self._queue.read_of(self._scope, thread, said, fork)
        if read < told[bounds[-1]]:
            for each in (thread, *([fork.thread] if fork else ())):
                await self._worker.flush(self._scope.namespace, self._scope.lane(each))
            read, before = await self._queue.read_of(self._scope, thread, said, fork)
        bound = max((each for each in bounds if told[each] <= read), default=0)
        ends = {} if fork is None else {fork.thread: float(before + fork.shared)}
        ends[thread] = math.inf
        last = before + told[bound]
        return bound, await self._lines(thread, ends, last, said, before) if bound else []

    async def condense_notes(self, lines: Sequence[str]) -> list[str]:
        """Return fewer lines, which the model of the extractor makes of those of `notes_of`.

        It is one call. The notes themselves stay.

        Args:
            lines: The lines, oldest first.

        Returns:
            The lines, oldest first. There are none without a model, in the mode `"manual"`, and if
            the model fails or does not answer with less, which is the event
            `memory.condense_failed`.

        Raises:
            BackendError: The store failed.
        """
        model = None if self._options.extract_mode == "manual" else self._model
        if model is None or not lines:
            return []
        from locus_memory.memory.tending.condensing import condensed_lines  # noqa: PLC0415 - the same

        return await condensed_lines(self._store, self._scope, model, lines, self._ledger.now())

    async def _lines(
        self, thread: str, ends: Mapping[str, float], last: int, said: Sequence[Any], before: int
    ) -> list[str]:
        """Return the notes of a thread, each at the place of the first message that says it.

        Args:
            thread: The thread.
            ends: The number of the last message that is also one of this thread, by thread: of
                itself, and of that it was forked from. Further messages have the same numbers.
            last: The number of the last message whose notes count.
            said: The conversation.
            before: The number of the message before it.
        """
        numbers = {
            name: number
            for number, each in enumerate(said, before + 1)
            for name in (f"#{number}", getattr(each, "id", None))
        }
        zone, found = self._options.zone(), list[tuple[float, str]]()
        async for episode in EpisodeBook(self._store).scan(self._scope):
            first = {name: start for name, start, _ in episode.all_turns if name in ends}
            for note in episode.notes:
                name = note.thread or episode.session_id
                end = ends.get(name, 0)
                known = [numbers[each] for each in note.message_ids if each in numbers]
                places = [place for place in known if place <= end]
                is_own = name == thread and name in first
                place = min(places, default=first[name] if is_own else math.inf)
                # A note of messages of which the fork does not have all is of the other thread.
                is_shared = name in first and len(places) == len(note.message_ids)
                if place <= last and (is_own or is_shared):
                    found += [
                        (place, f"{line.heading(zone)} {line.text[2:]}")
                        for line in note_lines(replace(episode, notes=(note,)))
                    ]
            if first and min(first.values()) <= before + 1:
                break
        # The episodes came from new to old, and each has its notes in order.
        return [text for _, text in sorted(found, key=itemgetter(0))]
