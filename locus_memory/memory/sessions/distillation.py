"""The distillation of a session: one call of the extractor, and one write of the results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from locus_memory.events import emit
from locus_memory.memory.extraction.distillate import EpisodeDraft
from locus_memory.memory.extraction.extraction import Distilled, Extraction, origin_of
from locus_memory.memory.layers.episodes import Episode, episode_key, episode_put, read_episode
from locus_memory.memory.layers.identity import IdentityBook
from locus_memory.memory.layers.log import LogEntry, log_put
from locus_memory.memory.layers.vitals import Vitals, VitalsBook
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.models import Memory
from locus_memory.memory.queue.queue import Job
from locus_memory.memory.scope import Scope
from locus_memory.memory.sessions.candidates import Mention, Sifted, sift
from locus_memory.memory.sessions.transcribing import Transcriber
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Put

__all__ = ["LEAST", "Distillation", "Ended"]

LEAST: Final = 80
"""The characters of a session below which it is no model's matter, and no episode."""

_UNKNOWN: Final = "1970-01-01T00:00:00.000000+00:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Findings:
    """The findings of a distillation, ready to be written.

    Attributes:
        thread: The thread.
        key: The key that the episode has, if there is one; `None`: the session is too short.
        episode: The episode, or `None`.
        distilled: What the extractor made of the session.
        sifted: The changes that the ledger wrote.
        mentioned: The memories that the session mentions, by `current_key`.
        facts: How many memories were written.
        log: The put of the log entry; `None`: nothing was distilled.
    """

    thread: str
    key: str | None
    episode: Episode | None
    distilled: Distilled
    sifted: Sifted
    mentioned: Mapping[str, Mention]
    facts: int
    log: Put | None


@dataclass(slots=True)
class Ended:
    """The outcome of a session, see `Outcome` of the queue.

    Attributes:
        store: The store.
        jobs: The jobs that are done.
        findings: What is written; `None`: nothing.
        counts: What to count, once it is written.
        erased: What is erased from the transcript.
    """

    store: BaseStore
    jobs: Sequence[Job]
    findings: _Findings | None = None
    counts: Counter[str] = field(default_factory=Counter[str])
    erased: Sequence[Delete] = ()

    async def operations(self) -> Sequence[Put | Delete]:
        """Return the writes; the episode comes last: where it is, everything else is."""
        found = self.findings
        if found is None:
            return self.erased
        scope = Scope(self.jobs[0].namespace)
        changes = {
            name: partial(_mentioned, found=found, mention=mention)
            for name, mention in found.mentioned.items()
        }
        operations: list[Put | Delete] = [*self.erased]
        operations += await VitalsBook(self.store).planned(scope, changes, is_first=True)
        if found.distilled.identity:
            facts = found.distilled.identity
            operations += await IdentityBook(self.store).planned(
                scope, lambda identity: identity.with_facts(facts)
            )
        if found.log is not None:
            operations.append(found.log)
        if found.episode is not None:
            operations.append(episode_put(scope, found.episode))
        return operations

    def written(self) -> None:
        """Count and report the results."""
        found = self.findings
        counts = Counter(
            episodes=int(found is not None and found.episode is not None),
            changes=0 if found is None else len(found.sifted.edits),
            facts=0 if found is None else found.facts,
            identity=0 if found is None else len(found.distilled.identity),
        )
        self.counts.update(counts)
        messages = sum(len(job.messages) for job in self.jobs)
        attributes: dict[str, Any] = {**counts, "messages": messages}
        emit("memory.distilled", **attributes)


class Distillation:
    """A service that turns the queued turns of a session into an episode and facts.

    Args:
        store: The store, which the service never closes.
        extraction: Calls the extractor and checks its answer.
        ledger: Writes the changes of memories.
        record: Writes the transcript.
        holds: Returns whether jobs are still this process's, and none was erased.
    """

    def __init__(
        self,
        store: BaseStore,
        extraction: Extraction,
        ledger: Ledger,
        record: Transcriber,
        holds: Callable[[Sequence[Job]], Awaitable[bool]],
    ) -> None:
        self._store = store
        self._holds = holds
        self._record = record
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
        """Distil the turns of the jobs of one thread, and write the changes of memories.

        From a session of less than 80 characters, phrases give the facts: no model is called, and
        there is no episode. Without transactions, turns that an
        interrupted distillation wrote an episode of are done.

        Returns:
            The outcome, for the queue to write with the deletion of the jobs.

        Raises:
            TimeoutError: The extractor took too long.
            Exception: Any error of the extractor or the store; the turns stay queued.
        """
        counts = self._counts.get(jobs[0].lane, Counter[str]())
        done = await self._done_before(jobs)
        findings = None if done else await self._findings(jobs)
        ended = done or jobs
        erased = await self._record.secrets(ended)
        return Ended(self._store, ended, findings, counts, erased)

    async def _done_before(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the first jobs, if an episode of them was written but they were not deleted."""
        if self._store.capabilities.transactions:
            return []
        scope = Scope(jobs[0].namespace)
        item = await self._store.get_item(scope.episodes, _key_of(jobs))
        episode = None if item is None else read_episode(item)
        if episode is None:
            return []
        return [job for job in jobs if job.messages[-1]["number"] <= episode.turns[1]]

    async def _findings(self, jobs: Sequence[Job]) -> _Findings | None:
        scope, at, begin = Scope(jobs[0].namespace), self._ledger.now(), time.perf_counter()

        def entry(error: BaseException | None = None) -> LogEntry:
            taken = (time.perf_counter() - begin) * 1000
            name = None if error is None else type(error).__name__
            return LogEntry(kind="distill", at=at, duration_ms=taken, ok=error is None, error=name)

        is_short = sum(job.characters for job in jobs) < LEAST
        unread = [job for job in jobs if job.read is None]
        fresh = origin_of(unread) if unread else None
        try:
            if is_short:
                distilled = await self._extraction.noted(scope, fresh)
            else:
                distilled = await self._extraction.distilled(scope, origin_of(jobs), fresh)
        except Exception as error:
            await self._log(scope, entry(error))
            raise
        log = None if is_short else log_put(scope, entry())
        if not await self._holds(jobs):
            return None
        sifted = await self._sifted(scope, distilled)
        written = await self._ledger.apply(scope, sifted.edits)
        return _Findings(
            thread=jobs[0].thread,
            key=None if is_short else _key_of(jobs),
            episode=_episode_of(jobs, distilled.episode),
            distilled=distilled,
            sifted=sifted,
            mentioned=_with_read(sifted.mentioned, jobs),
            facts=len(written),
            log=log,
        )

    async def _sifted(self, scope: Scope, distilled: Distilled) -> Sifted:
        known = await self._ledger.duplicates(scope, distilled.edits)
        return sift(distilled.edits, known)

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


def _episode_of(jobs: Sequence[Job], draft: EpisodeDraft | None) -> Episode | None:
    if draft is None:
        return None
    numbers = [each["number"] for job in jobs for each in job.messages]
    return Episode(
        session_id=jobs[0].thread,
        agent_id=next((job.agent for job in reversed(jobs) if job.agent is not None), None),
        started_at=_began(jobs),
        ended_at=jobs[-1].queued_at or _began(jobs),
        summary=draft.summary,
        topics=draft.topics,
        entities=draft.entities,
        decisions=draft.decisions,
        action_items=draft.action_items,
        salience=draft.salience,
        turns=(numbers[0], max(numbers)),
    )


def _with_read(mentioned: Mapping[str, Mention], jobs: Sequence[Job]) -> dict[str, Mention]:
    """Return the mentions of a session, with those that were extracted turn by turn."""
    found = dict(mentioned)
    for name, salience, messages in (each for job in jobs for each in job.read or ()):
        found[name] = Mention(salience, tuple(messages)).joined(found.get(name))
    return found


def _mentioned(memory: Memory, vitals: Vitals, *, found: _Findings, mention: Mention) -> Vitals:
    """Return the vital signs after a session mentioned a memory."""
    del memory
    messages = ((found.thread, name) for name in mention.messages)
    return vitals.mentioned(found.key, mention.salience, messages)
