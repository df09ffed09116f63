"""The names of spans, attributes and metrics, each with its source.

Sources, read in November 2026:

- Databases, stable: https://opentelemetry.io/docs/specs/semconv/database/database-spans/ and
  https://opentelemetry.io/docs/specs/semconv/database/database-metrics/. The metrics of connection
  pools (`db.client.connection.*`) are in development there.
- Memory operations, merged and in development:
  https://github.com/open-telemetry/semantic-conventions-genai/pull/140, the span
  `gen_ai.memory.client` of `model/gen-ai/spans.yaml` and the metric
  `gen_ai.client.operation.duration` of `model/gen-ai/metrics.yaml`.

The conventions have no operation for an extraction, no attribute for the ids of several records,
and no metrics of caches, queues and events. These names begin with `locus_memory`, or are
`extract_memory`, which is the library's own value of `gen_ai.operation.name`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["METRICS", "Metric"]

SCOPE: Final = "locus_memory"
"""The name of the instrumentation scope."""

DB_SYSTEM: Final = "db.system.name"
DB_OPERATION: Final = "db.operation.name"
DB_COLLECTION: Final = "db.collection.name"
DB_NAMESPACE: Final = "db.namespace"
DB_BATCH_SIZE: Final = "db.operation.batch.size"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"

POOL_NAME: Final = "db.client.connection.pool.name"
POOL_STATE: Final = "db.client.connection.state"

GEN_AI_OPERATION: Final = "gen_ai.operation.name"
MEMORY_STORE: Final = "gen_ai.memory.store.id"
MEMORY_RECORD: Final = "gen_ai.memory.record.id"
MEMORY_COUNT: Final = "gen_ai.memory.record.count"
MEMORY_QUERY: Final = "gen_ai.memory.query.text"

RECORD_IDS: Final = "locus_memory.memory.record.ids"
"""The ids of several records; the conventions have an attribute for one id only."""

EVENT: Final = "locus_memory.event"
CACHE: Final = "locus_memory.cache"
CACHE_RESULT: Final = "locus_memory.cache.result"
QUEUE: Final = "locus_memory.queue"
OUTCOME: Final = "locus_memory.extraction.outcome"

DB_SYSTEMS: Final = {
    "inmemory": "memory",
    "oracle": "oracle.db",
    "oci": "oci_object_storage",
}
"""Values of `db.system.name` by folders of backends; of the others, the folder's name.

`postgresql` is stable, and `redis`, `opensearch`, `oracle.db` and `sqlite` are in development.
`memory`, `file` and `oci_object_storage` are not in the conventions, which allow other values.
"""

_DB_SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
_GEN_AI_SECONDS: Final = (
    *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12),
    *(10.24, 20.48, 40.96, 81.92),
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: Its name.
        kind: The kind of its instrument. An `up_down` and an `observed` counter are read when the
            SDK collects; the first may fall.
        unit: Its unit, in UCUM.
        description: Its meaning, in a sentence.
        attributes: The names of its attributes, those that only some points have included.
        boundaries: The bounds of its buckets, if it is a histogram.
    """

    name: str
    kind: Literal["histogram", "counter", "observed", "up_down"]
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()


DB_DURATION: Final = Metric(
    "db.client.operation.duration",
    "histogram",
    "s",
    "Duration of the verbs of stores and checkpointers.",
    (
        *(DB_SYSTEM, DB_OPERATION, DB_COLLECTION, DB_NAMESPACE),
        *(SERVER_ADDRESS, SERVER_PORT, ERROR_TYPE),
    ),
    _DB_SECONDS,
)
GEN_AI_DURATION: Final = Metric(
    "gen_ai.client.operation.duration",
    "histogram",
    "s",
    "Duration of memory operations.",
    (GEN_AI_OPERATION, ERROR_TYPE),
    _GEN_AI_SECONDS,
)
POOL_COUNT: Final = Metric(
    "db.client.connection.count",
    "up_down",
    "{connection}",
    "Open connections, by pool and state (`idle` or `used`).",
    (POOL_NAME, POOL_STATE),
)
POOL_MAX: Final = Metric(
    "db.client.connection.max",
    "up_down",
    "{connection}",
    "The most connections that may be open, by pool.",
    (POOL_NAME,),
)
POOL_PENDING: Final = Metric(
    "db.client.connection.pending_requests",
    "up_down",
    "{request}",
    "Calls that wait for a connection, by pool.",
    (POOL_NAME,),
)
QUEUE_LENGTH: Final = Metric(
    "locus_memory.queue.length",
    "up_down",
    "{job}",
    "Jobs of extraction that wait or run, as far as this process knows.",
    (QUEUE,),
)
CACHE_REQUESTS: Final = Metric(
    "locus_memory.cache.requests",
    "observed",
    "{request}",
    "Reads of the caches `store`, `checkpoint` and `embedder`, by result (`hit` or `miss`).",
    (CACHE, CACHE_RESULT),
)
EXTRACTIONS: Final = Metric(
    "locus_memory.extractions",
    "counter",
    "{extraction}",
    "Extractions, by outcome: `done`, `failed`, `dropped`, `parked` or `invalid`.",
    (OUTCOME,),
)
EXTRACTED: Final = Metric(
    "locus_memory.extraction.memories",
    "counter",
    "{memory}",
    "Memories that extractions wrote.",
)
EVENTS: Final = Metric(
    "locus_memory.events",
    "counter",
    "{event}",
    "Events of the library, by name and class of the error.",
    (EVENT, ERROR_TYPE),
)

METRICS: Final = (
    *(DB_DURATION, GEN_AI_DURATION, POOL_COUNT, POOL_MAX, POOL_PENDING),
    *(QUEUE_LENGTH, CACHE_REQUESTS, EXTRACTIONS, EXTRACTED, EVENTS),
)
"""All metrics of `instrument`."""
