"""The cost of spans and metrics: a put of SQLite with and without them, in alternation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from statistics import median

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rows import Row

from locus_memory import get_store
from locus_memory.observability import instrument

NS = ("users", "ada", "memories")
ROUNDS, WARM, PUTS = 34, 4, 60
VALUE = {
    "type": "preference",
    "content": "Ada prefers green tea over coffee in the afternoon, and never takes sugar. " * 4,
    "metadata": {"importance": 0.7, "thread_id": "t-1", "message_ids": ["a", "b", "c"]},
}


@contextmanager
def instrumented(**options):
    """Instrument the process, with an SDK that exports to memory in batches."""
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
    meters = MeterProvider([InMemoryMetricReader()])
    undo = instrument(tracer_provider=tracers, meter_provider=meters, **options)
    try:
        yield
    finally:
        undo()
        tracers.shutdown()
        meters.shutdown()


async def timed(put, keys: Iterator[int]) -> float:
    """Return the processor time of puts of new items, one after another, in microseconds each."""
    begin = time.process_time()
    for number in islice(keys, PUTS):
        await put(NS, f"{number:08}", VALUE)
    return (time.process_time() - begin) / PUTS * 1e6


async def observing(folder: Path) -> list[Row]:
    """Puts of SQLite with and without spans and metrics, in alternation; processor time."""
    keys = count()
    async with get_store(f"sqlite:{folder}/observing.db") as store:
        # The verb as it is before anything is instrumented.
        plain = type(store).put.__get__(store)

        async def against_plain() -> tuple[float, str]:
            pairs = [
                (await timed(plain, keys), await timed(store.put, keys)) for _ in range(ROUNDS)
            ]
            bare, ours = (median(each) for each in zip(*pairs[WARM:], strict=True))
            return ours / bare, f"{ours:.0f} us / {bare:.0f} us"

        with instrumented():
            full = await against_plain()
        with instrumented(database_spans=False):
            metrics = await against_plain()
        off = await against_plain()
    return [
        Row("SQLite: put, instrumentation undone / never done", off[0], 1.05, off[1]),
        Row("SQLite: put with spans and metrics / without", full[0], 1.25, full[1]),
        Row("SQLite: put with metrics only / without", metrics[0], 1.15, metrics[1]),
    ]
