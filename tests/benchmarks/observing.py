"""The cost of spans and metrics: a put of SQLite with and without them, in alternation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from statistics import median

from opentelemetry.context import attach, detach
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, set_span_in_context
from rows import Row

from locus_memory import get_store
from locus_memory.backends.sqlite import SQLiteStore
from locus_memory.observability import instrument
from locus_memory.observability.conventions import DB_COLLECTION, DB_DURATION, DB_OPERATION
from locus_memory.observability.databases import database_attributes

NS = ("users", "ada", "memories")
ROUNDS, WARM, PUTS = 34, 4, 30
VALUE = {
    "type": "preference",
    "content": "Ada prefers green tea over coffee in the afternoon, and never takes sugar. " * 4,
    "metadata": {"importance": 0.7, "thread_id": "t-1", "message_ids": ["a", "b", "c"]},
}


@contextmanager
def instrumented(**options):
    """Instrument the process, with an SDK that exports to memory in batches; yields the SDK."""
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    meters = MeterProvider([InMemoryMetricReader()])
    undo = instrument(tracer_provider=tracers, meter_provider=meters, **options)
    try:
        yield tracers, meters
    finally:
        undo()
        tracers.shutdown()
        meters.shutdown()


def inside_bare_span(put, place, tracers, meters):
    """Return a put inside the least calls of the SDK that record the same span and metric."""
    attributes = {**database_attributes(SQLiteStore, place), DB_OPERATION: "put"}
    attributes[DB_COLLECTION] = "items"
    start_span = tracers.get_tracer("bare").start_span
    record = meters.get_meter("bare").create_histogram(DB_DURATION.name, "s").record

    async def bare(*args):
        span = start_span("put items", kind=SpanKind.CLIENT, attributes=attributes)
        token = attach(set_span_in_context(span))
        start = time.perf_counter()
        version = await put(*args)
        seconds = time.perf_counter() - start
        detach(token)
        span.end()
        record(seconds, attributes)
        return version

    return bare


async def timed(put, keys: Iterator[int]) -> float:
    """Return the processor time of puts of new items, one after another, in microseconds each."""
    begin = time.process_time()
    for number in islice(keys, PUTS):
        await put(NS, f"{number:08}", VALUE)
    return (time.process_time() - begin) / PUTS * 1e6


async def compared(keys: Iterator[int], *puts) -> list[list[float]]:
    """Return the times of each put in each round; in a round, each has each place in turn.

    So a cost that comes in turns, such as that of a checkpoint of SQLite, and what a place after
    another put costs, fall on all alike.
    """
    rounds = []
    for _ in range(ROUNDS):
        times = [0.0] * len(puts)
        for first in range(len(puts)):
            order = [(first + place) % len(puts) for place in range(len(puts))]
            for each in order + order[::-1]:
                times[each] += await timed(puts[each], keys) / (2 * len(puts))
        rounds.append(times)
    return [list(each) for each in zip(*rounds[WARM:], strict=True)]


def ratio(ours: list[float], bare: list[float]) -> float:
    """Return the median of the ratios of the rounds."""
    return median(one / two for one, two in zip(ours, bare, strict=True))


def against(what: str, bar: float, ours: list[float], bare: list[float], told: str = "") -> Row:
    detail = f"{median(ours):.0f} us / {median(bare):.0f} us{told}"
    return Row(f"SQLite: {what}", ratio(ours, bare), bar, detail)


async def observing(folder: Path) -> list[Row]:
    """Puts of SQLite with and without spans and metrics, in turns; processor time."""
    keys = count()
    async with get_store(f"sqlite:{folder}/observing.db") as store:
        # The verb as it is before anything is instrumented.
        plain = type(store).put.__get__(store)
        with instrumented() as sdk:
            least = inside_bare_span(plain, store.place, *sdk)
            without, bare, full = await compared(keys, plain, least, store.put)
        with instrumented(database_spans=False):
            no_spans, metrics = await compared(keys, plain, store.put)
        never, undone = await compared(keys, plain, store.put)
    alone = f"; the SDK's own / without: {ratio(bare, without):.3f}"
    return [
        against("put, instrumentation undone / never done", 1.05, undone, never),
        against("put with spans and metrics / without", 1.25, full, without),
        against("put with spans and metrics / with the SDK's own alone", 1.05, full, bare, alone),
        against("put with metrics only / without", 1.15, metrics, no_spans),
    ]
