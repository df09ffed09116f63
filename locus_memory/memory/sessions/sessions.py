"""The sessions of a manager: their queue, their worker, and how both work together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from locus_memory.memory.sessions.transcribing import transcribed
from locus_memory.store.base import BaseStore

__all__ = ["Sessions"]


@dataclass(frozen=True, slots=True)
class Sessions:
    """The queue and the worker of a manager.

    Attributes:
        queue: The turns that wait.
        worker: Distils the sessions.
        distillation: What the worker does.
    """

    queue: ExtractionQueue
    worker: Worker
    distillation: Distillation

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
        return cls(queue, worker, distillation)
