"""The sessions of a manager: their queue, their worker, and how both work together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from locus_memory.errors import ConfigurationError
from locus_memory.memory.extraction.extraction import Extraction
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.options import ExtractionOptions, TendingOptions
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.queue.pace import Pace
from locus_memory.memory.queue.queue import ExtractionQueue
from locus_memory.memory.queue.worker import Worker
from locus_memory.memory.scope import Scope
from locus_memory.memory.sessions.distillation import LEAST, Distillation
from locus_memory.memory.sessions.ingestion import Ingested, Ingestion, marked_turns, moment_of
from locus_memory.memory.sessions.transcribing import Transcriber
from locus_memory.store.base import BaseStore
from locus_memory.store.item import check_key

__all__ = ["Sessions"]


@dataclass(frozen=True, slots=True)
class Sessions:
    """The queue and the worker of a manager.

    Attributes:
        queue: The turns that wait.
        worker: Extracts from them, or distils the sessions.
        now: Returns the present moment, ISO 8601 in UTC.
        ingestion: Ingests conversations; `None`: the memory does not tend itself.
        distillation: Distils sessions; likewise.
    """

    queue: ExtractionQueue
    worker: Worker
    now: Callable[[], str]
    ingestion: Ingestion | None
    distillation: Distillation | None

    @classmethod
    def of(
        cls,
        store: BaseStore,
        scope: Scope,
        ledger: Ledger,
        extraction: Extraction,
        *,
        options: ExtractionOptions,
        tending: TendingOptions,
        clock: Callable[[], float],
    ) -> Self:
        """Return the sessions of a manager that tends its memory, or that only extracts."""
        record = Transcriber(is_passive=tending.passive, allow_secrets=options.allow_secrets)
        if not tending.enabled:
            queue = ExtractionQueue(store, scope, ledger.now, record)

            async def extract(jobs: Sequence[Job]) -> None:
                await extraction.run(jobs, queue.holds)

            worker = Worker(queue, extract, options, clock=clock)
            return cls(queue, worker, ledger.now, None, None)
        queue = ExtractionQueue(store, scope, ledger.now, record)
        distillation = Distillation(store, extraction, ledger, queue.holds)
        pace = Pace(
            by_session=True,
            is_manual=tending.extraction_mode == "manual",
            # Only a model is worth waiting for, and says of which session a fact is.
            least=LEAST if extraction.distils else 0,
            longest=tending.pending_max_age,
        )
        worker = Worker(
            queue,
            distillation.run,
            replace(
                options,
                extract_mode="background",
                batch_messages=0,
                batch_quiet=tending.summary_debounce_seconds,
            ),
            clock=clock,
            pace=pace,
        )
        ingestion = Ingestion(queue, worker, distillation)
        return cls(queue, worker, ledger.now, ingestion, distillation)

    async def read(self, job: Job, extraction: Extraction) -> None:
        """Extract from a turn before its session is over, and record that.

        Raises:
            Exception: Any error of the extractor or the store.
        """
        await extraction.run([job], self.queue.holds)
        await self.queue.mark_read(job)

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
        if self.ingestion is None:
            raise ConfigurationError(
                "ingest needs a memory that tends itself: pass tending=TendingOptions()"
            )
        check_key(agent_id)
        check_key(conversation_id)
        await self.worker.start()
        at = moment_of(session_date, self.now())
        marked = marked_turns(turns, None if session_date is None else at)
        return await self.ingestion.run(
            scope, agent_id, conversation_id, marked, at, skips_extraction=skip_extraction
        )
