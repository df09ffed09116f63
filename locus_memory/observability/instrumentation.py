"""OpenTelemetry for the whole process: spans and metrics of stores, checkpointers and memories."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from locus_memory._internal.providers.drivers import require
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import ConfigurationError
from locus_memory.events import subscribe
from locus_memory.observability.conventions import (
    DB_DURATION,
    GEN_AI_DURATION,
    SCOPE,
    Metric,
)
from locus_memory.observability.databases import CHECKPOINTER_VERBS, STORE_VERBS, Verb
from locus_memory.observability.measures import EventCounter, observe
from locus_memory.observability.memories import (
    EXTRACTION_VERBS,
    MEMORY_OPERATIONS,
    ExtractionVerb,
    MemoryVerb,
)
from locus_memory.observability.patches import Patches
from locus_memory.observability.recording import Recorder, Telemetry
from locus_memory.store.base import BaseStore
from locus_memory.store.wrappers.base import StoreWrapper

__all__ = ["instrument"]

_EXTRA: Final = "opentelemetry"

_active: list[Patches] = []
_lock: Final = Lock()


def instrument(
    *,
    tracer_provider: Any = None,
    meter_provider: Any = None,
    database_spans: bool = True,
    query_text: bool = False,
) -> Callable[[], None]:
    """Record spans and metrics of all stores, checkpointers and memories of this process.

    The verbs of their classes are replaced, so objects that are open already are recorded too, and
    no object changes its class. A verb of a wrapper, such as `EncryptingStore`, has no span of its
    own; that of the store inside has.

    Only `opentelemetry-api` is needed. Nothing is recorded without an SDK, which the program sets
    up.

    - Each verb of a store or a checkpointer is a client span `put items`, with the attributes
      `db.*`, and a value of the histogram `db.client.operation.duration`.
    - Each memory operation is a span such as `search_memory`, with the attributes
      `gen_ai.memory.*`, and a value of `gen_ai.client.operation.duration`.
    - `METRICS` lists the other metrics: connections, queues, caches, extractions and events.

    Spans have the ids of memories and the namespace of a scope, which may hold the id of a user.
    They never have a stored value, and `error.type` is the name of a class.

    Args:
        tracer_provider: Makes the spans; by default OpenTelemetry's global one.
        meter_provider: Makes the metrics; by default OpenTelemetry's global one.
        database_spans: Whether the verbs of stores and checkpointers have spans; they cost several
            times as much as the metrics.
        query_text: Whether spans have the text of a query (`gen_ai.memory.query.text`), which is
            what a user said.

    Returns:
        A function that undoes it.

    Raises:
        MissingDriverError: `opentelemetry-api` is not installed.
        ConfigurationError: The process is instrumented already.
    """
    from locus_memory import __version__  # noqa: PLC0415 - the package is complete by now

    trace, context, metrics = (
        require(f"opentelemetry.{name}", _EXTRA, needed_by="instrument")
        for name in ("trace", "context", "metrics")
    )
    patches = _claimed()
    tracer = trace.get_tracer(SCOPE, __version__, tracer_provider=tracer_provider)
    telemetry = Telemetry(tracer, trace, context)
    meter = metrics.get_meter(SCOPE, __version__, meter_provider=meter_provider)
    client = telemetry.kinds.CLIENT if database_spans else None
    calls = Recorder(telemetry, _histogram(meter, DB_DURATION), client)
    operations = Recorder(telemetry, _histogram(meter, GEN_AI_DURATION), telemetry.kinds.INTERNAL)
    _record_databases(patches, calls)
    _record_memories(patches, operations, query_text=query_text)
    observe(meter, metrics.Observation, lambda: patches in _active)
    unsubscribe = subscribe(EventCounter(meter))

    def uninstrument() -> None:
        unsubscribe()
        patches.undo()
        with _lock:
            if patches in _active:
                _active.remove(patches)

    return uninstrument


def _claimed() -> Patches:
    """Return the patches of this process, which has none yet.

    Raises:
        ConfigurationError: It has.
    """
    patches = Patches()
    with _lock:
        if _active:
            raise ConfigurationError(
                "instrument: this process is instrumented already; call the function that the "
                "first call returned to undo it"
            )
        _active.append(patches)
    return patches


def _histogram(meter: Any, metric: Metric) -> Any:
    return meter.create_histogram(
        metric.name,
        unit=metric.unit,
        description=metric.description,
        explicit_bucket_boundaries_advisory=list(metric.boundaries),
    )


def _record_databases(patches: Patches, recorder: Recorder) -> None:
    items = {verb: recorder.recorded(Verb(verb, "items")) for verb in STORE_VERBS}
    patches.replace(
        BaseStore, items, lambda kind: issubclass(kind, StoreWrapper) or _is_adapter(kind)
    )
    checkpoints = {
        verb: recorder.recorded(Verb(verb, "checkpoints")) for verb in CHECKPOINTER_VERBS
    }
    patches.replace(BaseCheckpointer, checkpoints, _is_adapter)


def _record_memories(patches: Patches, recorder: Recorder, *, query_text: bool) -> None:
    # They take 0.2 s to import, which a program that is not instrumented does not pay.
    from locus_memory.memory.extraction.extraction import Extraction  # noqa: PLC0415
    from locus_memory.memory.manager import LLMMemoryManager  # noqa: PLC0415

    wraps = {
        verb: recorder.recorded(MemoryVerb(verb, query_text=query_text))
        for verb in MEMORY_OPERATIONS
    }
    for kind in LLMMemoryManager.__mro__:
        if kind.__module__.startswith("locus_memory.memory."):
            patches.replace(kind, wraps, _is_adapter)
    extraction = recorder.recorded(ExtractionVerb())
    patches.replace(Extraction, dict.fromkeys(EXTRACTION_VERBS, extraction))


def _is_adapter(kind: type[Any]) -> bool:
    return kind.__module__.startswith("locus_memory.integrations.")
