"""The distillation of a session: one call of the extractor, and one write of the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from locus_memory.events import emit
from locus_memory.memory.extraction.extraction import Distilled, Extraction
from locus_memory.memory.layers.episodes import (
    Episode,
    EpisodeBook,
    episode_put,
)
from locus_memory.memory.layers.log import LogEntry, log_put, timed, write_log
from locus_memory.memory.layers.vitals import VitalsBook, VitalsChange
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.models import Extractor
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.queue.jobs import Job, Outcome, sessions_of
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import Scope, current_key
from locus_memory.store.item import Put

__all__ = ["Distillation"]

_Messages = tuple[tuple[str, str], ...]
"""The messages that state a memory, each as its thread and its id."""


class Distillation(Extraction):
    """An extraction that turns the queued turns of sessions into an episode and facts.

    Args:
        extractor: As for `Extraction`.
        ledger: Likewise.
        recall: Likewise.
        options: Likewise.
        holds: Returns whether jobs are still this process's, and none was erased.
    """

    def __init__(
        self,
        extractor: Extractor,
        ledger: Ledger,
        recall: Recall,
        options: MemoryOptions,
        *,
        holds: Callable[[Sequence[Job]], Awaitable[bool]],
    ) -> None:
        super().__init__(extractor, ledger, recall, options)
        self._holds = holds
        self._counts: dict[str, Counter[str]] = {}

    @contextmanager
    def counting(self, lane: str) -> Generator[Counter[str]]:
        """Count what is written of the sessions of a thread within the block."""
        counts = self._counts[lane] = Counter[str]()
        try:
            yield counts
        finally:
            self._counts.pop(lane, None)

    async def run(self, jobs: Sequence[Job]) -> Outcome:
        """Distil the turns of jobs, and write the changes of memories.

        Sessions that travel together have one episode: it is the last one's, and names the others.
        Without transactions, turns that an interrupted distillation wrote an episode of are done.

        Args:
            jobs: The jobs; those of a thread stand together.

        Returns:
            The outcome, for the queue to write with the deletion of the jobs.

        Raises:
            TimeoutError: The extractor took too long.
            Exception: Any error of the extractor or the store; the turns stay queued.
        """
        done = await self._done_before(jobs)
        return Outcome(done) if done else await self._distilled(jobs)

    async def _done_before(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs that an episode tells of that was written, but they were not deleted."""
        if self._recall.store.capabilities.transactions or all(job.attempts <= 1 for job in jobs):
            return []
        told: list[tuple[str, int, int]] = []
        async for episode in EpisodeBook(self._recall.store).scan(Scope(jobs[0].namespace)):
            told += episode.all_turns
        return [
            job
            for job in jobs
            if any(
                thread == job.thread
                and first <= job.messages[0]["number"]
                and job.messages[-1]["number"] <= last
                for thread, first, last in told
            )
        ]

    async def _distilled(self, jobs: Sequence[Job]) -> Outcome:
        scope, entries = Scope(jobs[0].namespace), list[LogEntry]()
        try:
            with timed("distill", self._ledger.now(), entries.append):
                source = self.source_of(jobs)
                distilled = await self.distilled(scope, source)
        except Exception:
            await write_log(self._recall.store, scope, entries)
            raise
        if not await self._holds(jobs):
            return Outcome(jobs)
        puts = [log_put(scope, entry) for entry in entries if self.is_by_model]
        written, known = await self._ledger.write(scope, distilled.edits)
        episode = _episode_of(sessions_of(jobs), distilled)
        if episode is not None:
            # It comes last: where it is, everything else is.
            puts.append(episode_put(scope, episode))
        mentioned = _mentions(distilled.edits, known)
        return Outcome(
            jobs,
            partial(self._operations, jobs, mentioned, puts),
            partial(self._report, jobs, distilled, facts=len(written)),
        )

    async def _operations(
        self,
        jobs: Sequence[Job],
        mentioned: Mapping[str, _Messages],
        puts: Sequence[Put],
    ) -> list[Put]:
        """Return the writes, with the vital signs of the memories that sessions mention."""
        scope, at = Scope(jobs[0].namespace), jobs[-1].queued_at

        def mention(messages: _Messages) -> VitalsChange:
            return lambda _, vitals: vitals.mentioned(at, messages)

        changes = {name: mention(messages) for name, messages in mentioned.items()}
        operations = await VitalsBook(self._recall.store).planned(scope, changes)
        return [*operations, *puts]

    def _report(self, jobs: Sequence[Job], distilled: Distilled, *, facts: int) -> None:
        """Count and report the results."""
        found = {"episodes": int(bool(distilled.notes)), "facts": facts}
        self._counts.get(jobs[0].lane, Counter[str]()).update(found)
        emit(
            "memory.extracted",
            messages=sum(len(job.messages) for job in jobs),
            changes=len(distilled.edits),
            memories=facts,
            episodes=found["episodes"],
        )


def _episode_of(sessions: Sequence[Sequence[Job]], distilled: Distilled) -> Episode | None:
    """Return the notes of sessions that were distilled together, as the last one's."""
    if not distilled.notes:
        return None
    *others, jobs = sessions
    return Episode(
        session_id=jobs[0].thread,
        agent_id=next((job.agent for job in reversed(jobs) if job.agent is not None), None),
        started_at=jobs[0].queued_at,
        ended_at=jobs[-1].queued_at,
        notes=tuple(distilled.notes),
        salience=distilled.salience,
        turns=_turns_of(jobs),
        joined_turns=tuple((other[0].thread, *_turns_of(other)) for other in others),
    )


def _turns_of(jobs: Sequence[Job]) -> tuple[int, int]:
    """Return the numbers of the first and the last message of a session."""
    numbers = [each["number"] for job in jobs for each in job.messages]
    return numbers[0], max(numbers)


def _mentions(
    edits: Iterable[Statement | Retirement], known: Mapping[str, str]
) -> dict[str, _Messages]:
    """Return the messages that state memories, by `current_key`.

    Args:
        edits: The changes.
        known: The keys of those that are known already, each with the known one's key.
    """
    found: dict[str, _Messages] = {}
    for memory in (edit.memory for edit in edits if isinstance(edit, Statement)):
        name = current_key(memory.type, memory.key)
        name = known.get(name, name)
        ids, thread = memory.metadata.get("message_ids", ()), memory.metadata.get("thread_id")
        stated = ((str(thread), str(each)) for each in ids if thread is not None)
        found[name] = tuple(dict.fromkeys((*found.get(name, ()), *stated)))
    return found
