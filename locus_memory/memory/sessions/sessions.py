"""The sessions of a manager: their queue, their worker, and how both work together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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

__all__ = ["sessions_in"]


def sessions_in(
    store: BaseStore,
    scope: Scope,
    ledger: Ledger,
    extraction: Extraction,
    *,
    options: MemoryOptions,
    clock: Callable[[], float],
) -> tuple[ExtractionQueue, Worker, Distillation]:
    """Return the queue of a manager's turns, the worker that takes them, and what it does."""
    record = partial(transcribed, is_on=options.transcript, allow_secrets=options.allow_secrets)
    queue = ExtractionQueue(store, scope, ledger.now, record)
    distillation = Distillation(store, extraction, ledger, queue.holds)
    pace = Pace.of(options, by_model=extraction.is_by_model, distils=extraction.distils)
    most = None if pace.mode == "inline" else options.extraction_budget
    allowance = None if most is None else Allowance(store, scope, *most, clock)
    handle: Any = (
        distillation.run if allowance is None else partial(allowance.counted, distillation.run)
    )
    worker = Worker(queue, handle, pace, clock, seconds=extraction.seconds_for, allowance=allowance)
    return queue, worker, distillation
