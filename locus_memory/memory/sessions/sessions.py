"""The sessions of a manager: their queue, their worker, and how both work together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import Any, Self

from locus_memory.memory.extraction.extraction import Extraction
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.queue.allowance import Allowance
from locus_memory.memory.queue.pace import Pace
from locus_memory.memory.queue.queue import ExtractionQueue
from locus_memory.memory.queue.worker import Worker
from locus_memory.memory.scope import Scope
from locus_memory.memory.sessions.distillation import Distillation
from locus_memory.memory.sessions.ingestion import Ingested, marked_turns, moment_of
from locus_memory.memory.sessions.transcribing import transcribed
from locus_memory.store.base import BaseStore
from locus_memory.store.item import check_key

__all__ = ["Sessions"]


@dataclass(frozen=True, slots=True)
class Sessions:
    """The queue and the worker of a manager.

    Attributes:
        queue: The turns that wait.
        worker: Distils the sessions.
        now: Returns the present moment, ISO 8601 in UTC.
        pace: When the worker does.
        distillation: What the worker does.
        zone: The time zone of moments without an offset; `None`: that of the machine.
    """

    queue: ExtractionQueue
    worker: Worker
    now: Callable[[], str]
    pace: Pace
    distillation: Distillation
    zone: tzinfo | None

    @classmethod
    def of(
        cls,
        store: BaseStore,
        scope: Scope,
        ledger: Ledger,
        extraction: Extraction,
        *,
        options: MemoryOptions,
        clock: Callable[[], float],
    ) -> Self:
        """Return the sessions of a manager."""
        record = partial(transcribed, is_on=options.transcript, allow_secrets=options.allow_secrets)
        queue = ExtractionQueue(store, scope, ledger.now, record)
        distillation = Distillation(store, extraction, ledger, queue.holds)
        pace = Pace.of(options, by_model=extraction.is_by_model, distils=extraction.distils)
        most = None if pace.mode == "inline" else options.extraction_budget
        allowance = None if most is None else Allowance(store, scope, *most, clock)
        handle: Any = (
            distillation.run if allowance is None else partial(allowance.counted, distillation.run)
        )
        worker = Worker(
            queue, handle, pace, clock, seconds=extraction.seconds_for, allowance=allowance
        )
        return cls(queue, worker, ledger.now, pace, distillation, options.zone())

    async def ingest(
        self,
        scope: Scope,
        agent_id: str,
        conversation_id: str,
        turns: Iterable[Any],
        *,
        session_date: str | None,
        skip_extraction: bool,
    ) -> Ingested:
        """Ingest turns of a conversation, as the manager says."""
        check_key(agent_id)
        check_key(conversation_id)
        await self.worker.start()
        at, offset = moment_of(session_date, self.now(), self.zone)
        marked = marked_turns(turns, None if session_date is None else at, offset, self.zone)
        lane = scope.lane(conversation_id)
        job = await self.queue.add_turns(
            scope, conversation_id, marked, at, agent_id, queues=not skip_extraction
        )
        with self.distillation.counting(lane) as counts:
            if not skip_extraction:
                if job is not None:
                    self.worker.add(job)
                await self.worker.flush(scope.namespace, lane)
            return {
                "turns": 0 if job is None else len({each["turn"] for each in job.messages}),
                "episodes": counts["episodes"],
                "facts": counts["facts"],
                "pending": len(await self.queue.waiting(lane)),
            }
