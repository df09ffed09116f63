"""The distillation of a session: one call of the extractor, and one write of the results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from locus_memory.events import emit
from locus_memory.memory.extraction.extraction import Distilled, Extraction
from locus_memory.memory.layers.episodes import (
    Episode,
    EpisodeBook,
    episode_key,
    episode_put,
    read_episode,
)
from locus_memory.memory.layers.identity import IdentityBook
from locus_memory.memory.layers.log import LogEntry, log_put
from locus_memory.memory.layers.vitals import Vitals, VitalsBook
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.ledger.revision import importance_of
from locus_memory.memory.models import Memory
from locus_memory.memory.queue.jobs import Job, sessions_of
from locus_memory.memory.scope import Scope, current_key
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put

__all__ = ["Distillation", "Ended"]

_UNKNOWN: Final = "1970-01-01T00:00:00.000000+00:00"


@dataclass(frozen=True, slots=True)
class _Mention:
    """What sessions say of a memory.

    Attributes:
        salience: The salience that they give it.
        messages: The messages that state it, each as its thread and its id.
    """

    salience: float
    messages: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Findings:
    """The findings of a distillation, ready to be written.

    Attributes:
        key: The key that the episode has, if there is one.
        episode: The episode, or `None`.
        distilled: What the extractor made of the session.
        mentioned: The memories that the session mentions, by `current_key`.
        facts: How many memories were written.
        log: The puts of the log entry of a model's call.
    """

    key: str
    episode: Episode | None
    distilled: Distilled
    mentioned: Mapping[str, _Mention]
    facts: int
    log: Sequence[Put]


@dataclass(slots=True)
class Ended:
    """The outcome of a session, see `Outcome` of the queue.

    Attributes:
        store: The store.
        jobs: The jobs that are done.
        findings: What is written; `None`: nothing.
        counts: What to count, once it is written.
    """

    store: BaseStore
    jobs: Sequence[Job]
    findings: _Findings | None = None
    counts: Counter[str] = field(default_factory=Counter[str])

    async def operations(self) -> Sequence[Put]:
        """Return the writes; the episode comes last: where it is, everything else is."""
        found = self.findings
        if found is None:
            return ()
        scope = Scope(self.jobs[0].namespace)
        changes = {
            name: partial(_mentioned, key=found.key, mention=mention)
            for name, mention in found.mentioned.items()
        }
        operations = await VitalsBook(self.store).planned(scope, changes, is_first=True)
        if found.distilled.identity:
            facts = found.distilled.identity
            operations += await IdentityBook(self.store).planned(
                scope, lambda identity: identity.with_facts(facts)
            )
        operations += found.log
        if found.episode is not None:
            operations.append(episode_put(scope, found.episode))
        return operations

    def written(self) -> None:
        """Count and report the results."""
        found = self.findings
        counts = Counter(
            episodes=int(found is not None and found.episode is not None),
            changes=0 if found is None else len(found.distilled.edits),
            facts=0 if found is None else found.facts,
            identity=0 if found is None else len(found.distilled.identity),
        )
        self.counts.update(counts)
        messages = sum(len(job.messages) for job in self.jobs)
        emit(
            "memory.extracted",
            messages=messages,
            changes=counts["changes"],
            memories=counts["facts"],
            episodes=counts["episodes"],
            identity=counts["identity"],
        )


class Distillation:
    """A service that turns the queued turns of sessions into an episode and facts.

    Args:
        store: The store, which the service never closes.
        extraction: Calls the extractor and checks its answer.
        ledger: Writes the changes of memories.
        holds: Returns whether jobs are still this process's, and none was erased.
    """

    def __init__(
        self,
        store: BaseStore,
        extraction: Extraction,
        ledger: Ledger,
        holds: Callable[[Sequence[Job]], Awaitable[bool]],
    ) -> None:
        self._store = store
        self._holds = holds
        self._extraction = extraction
        self._ledger = ledger
        self._counts: dict[str, Counter[str]] = {}

    @contextmanager
    def counting(self, lane: str) -> Generator[Counter[str]]:
        """Count what is written of the sessions of a thread within the block."""
        counts = self._counts[lane] = Counter[str]()
        try:
            yield counts
        finally:
            self._counts.pop(lane, None)

    async def run(self, jobs: Sequence[Job]) -> Ended:
        """Distil the turns of jobs with one call, and write the changes of memories.

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
        counts = self._counts.get(jobs[0].lane, Counter[str]())
        done = await self._done_before(jobs)
        findings = None if done else await self._findings(jobs)
        return Ended(self._store, done or jobs, findings, counts)

    async def _done_before(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs that an episode tells of that was written, but they were not deleted."""
        if self._store.capabilities.transactions:
            return []
        scope, sessions = Scope(jobs[0].namespace), sessions_of(jobs)
        items = [await self._store.get_item(scope.episodes, _key_of(each)) for each in sessions]
        episodes = [read_episode(item) for item in items if item is not None]
        if any(session[0].attempts > 1 for session in sessions):
            # A session that travelled with others then may travel alone now.
            episodes += [each async for _, each in EpisodeBook(self._store).scan(scope)]
        told: dict[str, int] = {}
        for thread, _, end in (turns for each in episodes if each for turns in each.all_turns):
            told[thread] = max(end, told.get(thread, 0))
        return [job for job in jobs if job.messages[-1]["number"] <= told.get(job.thread, 0)]

    async def _findings(self, jobs: Sequence[Job]) -> _Findings | None:
        scope, at, begin = Scope(jobs[0].namespace), self._ledger.now(), time.perf_counter()

        def entry(error: BaseException | None = None) -> LogEntry:
            taken = (time.perf_counter() - begin) * 1000
            name = None if error is None else type(error).__name__
            return LogEntry(kind="distill", at=at, duration_ms=taken, ok=error is None, error=name)

        try:
            source = self._extraction.source_of(jobs)
            distilled = await self._extraction.distilled(scope, source)
            stated = await self._extraction.stated(source)
        except Exception as error:
            await self._log(scope, entry(error))
            raise
        log = [log_put(scope, entry())] if self._extraction.is_by_model else []
        if not await self._holds(jobs):
            return None
        known = await self._ledger.duplicates(scope, distilled.edits)
        written = await self._ledger.apply(scope, distilled.edits)
        sessions = sessions_of(jobs)
        return _Findings(
            key=_key_of(sessions[-1]),
            episode=_episode_of(sessions, distilled),
            distilled=distilled,
            mentioned=_mentions([*stated, *distilled.edits], known),
            facts=len(written),
            log=log,
        )

    async def _log(self, scope: Scope, entry: LogEntry) -> None:
        try:
            await self._store.put_batch([log_put(scope, entry)])
        except Exception as error:  # noqa: BLE001 - reported; the first error counts
            emit("memory.log_failed", error=error)


def _key_of(jobs: Sequence[Job]) -> str:
    return episode_key(jobs[0].thread, _began(jobs), jobs[0].messages[0]["number"])


def _began(jobs: Sequence[Job]) -> str:
    """Return the moment of the first turn; old jobs have none."""
    return next((job.queued_at for job in jobs if job.queued_at is not None), _UNKNOWN)


def _episode_of(sessions: Sequence[Sequence[Job]], distilled: Distilled) -> Episode | None:
    """Return the notes of sessions that were distilled together, as the last one's."""
    if not distilled.notes:
        return None
    *others, jobs = sessions
    return Episode(
        session_id=jobs[0].thread,
        agent_id=next((job.agent for job in reversed(jobs) if job.agent is not None), None),
        started_at=_began(jobs),
        ended_at=jobs[-1].queued_at or _began(jobs),
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
) -> dict[str, _Mention]:
    """Return what sessions say of memories, by `current_key`.

    Args:
        edits: The changes, those of facts that are known already included.
        known: The keys of these, each with the known one's key.
    """
    found: dict[str, _Mention] = {}
    for memory in (edit.memory for edit in edits if isinstance(edit, Statement)):
        name = current_key(memory.type, memory.key)
        name = known.get(name, name)
        before = found.get(name, _Mention(0.0))
        ids, thread = memory.metadata.get("message_ids", ()), memory.metadata.get("thread_id")
        stated = (*before.messages, *((thread, each) for each in ids if thread is not None))
        salience = max(before.salience, importance_of(memory))
        found[name] = _Mention(salience, tuple(dict.fromkeys(stated)))
    return found


def _mentioned(memory: Memory, vitals: Vitals, *, key: str, mention: _Mention) -> Vitals:
    """Return the vital signs after sessions mentioned a memory."""
    del memory
    return vitals.mentioned(key, mention.salience, mention.messages)
