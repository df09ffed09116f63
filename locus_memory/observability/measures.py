"""Metrics that are read from live objects, or counted from events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from locus_memory._internal.running.cache_counts import CACHES
from locus_memory._internal.running.live import POOLS, QUEUES, PoolUse
from locus_memory.events import Event
from locus_memory.observability.conventions import (
    CACHE,
    CACHE_REQUESTS,
    CACHE_RESULT,
    ERROR_TYPE,
    EVENT,
    EVENTS,
    EXTRACTED,
    EXTRACTIONS,
    OUTCOME,
    POOL_COUNT,
    POOL_MAX,
    POOL_NAME,
    POOL_PENDING,
    POOL_STATE,
    QUEUE,
    QUEUE_LENGTH,
    Metric,
)

__all__ = ["EventCounter", "Reading", "observe"]

Reading = tuple[int, dict[str, str]]
"""A value and its attributes."""

_OUTCOMES: Final = {
    "memory.extracted": "done",
    "memory.extract_failed": "failed",
    "memory.extract_dropped": "dropped",
    "memory.extract_parked": "parked",
    "memory.extraction_invalid": "invalid",
}

_WRITTEN: Final = {"memory.extracted": "memories"}
"""The attribute of an event with the number of memories that were written."""


def observe(
    meter: Any, observation: Callable[[int, dict[str, str]], Any], is_active: Callable[[], bool]
) -> None:
    """Create the instruments whose values are read when the SDK collects.

    Args:
        meter: Creates them.
        observation: The class `opentelemetry.metrics.Observation`.
        is_active: Whether they still have values: a meter never forgets an instrument.
    """

    def reading(read: Callable[[], Iterable[Reading]]) -> Callable[[Any], list[Any]]:
        return lambda _: [observation(*each) for each in _summed(read())] if is_active() else []

    for metric, read in _READ.items():
        create = (
            meter.create_observable_counter
            if metric.kind == "observed"
            else meter.create_observable_up_down_counter
        )
        create(
            metric.name,
            [reading(read)],
            unit=metric.unit,
            description=metric.description,
        )


def _summed(readings: Iterable[Reading]) -> list[Reading]:
    """Return one reading for each set of attributes: pools of two loops may have the same name."""
    sums: dict[tuple[tuple[str, str], ...], int] = {}
    for value, attributes in readings:
        key = tuple(attributes.items())
        sums[key] = sums.get(key, 0) + value
    return [(value, dict(key)) for key, value in sums.items()]


def _of_pools(read: Callable[[PoolUse], Mapping[str, int]]) -> Iterator[Reading]:
    """Yield what is read of each pool, by the state of the connections; `""`: of any state."""
    for name, pool in POOLS.all():
        for state, value in read(pool.use()).items():
            yield value, {POOL_NAME: name, **({POOL_STATE: state} if state else {})}


def _of_caches() -> Iterator[Reading]:
    for name, counts in tuple(CACHES.items()):
        yield counts.hits, {CACHE: name, CACHE_RESULT: "hit"}
        yield counts.misses, {CACHE: name, CACHE_RESULT: "miss"}


_READ: Final[dict[Metric, Callable[[], Iterable[Reading]]]] = {
    POOL_COUNT: lambda: _of_pools(lambda use: {"used": use.used, "idle": use.idle}),
    POOL_MAX: lambda: _of_pools(lambda use: {"": use.size}),
    POOL_PENDING: lambda: _of_pools(lambda use: {"": use.waiting}),
    QUEUE_LENGTH: lambda: ((each.pending, {QUEUE: name}) for name, each in QUEUES.all()),
    CACHE_REQUESTS: _of_caches,
}


class EventCounter:
    """A subscriber that counts events.

    Args:
        meter: Creates the counters.
    """

    def __init__(self, meter: Any) -> None:
        self._events, self._extractions, self._extracted = (
            meter.create_counter(each.name, unit=each.unit, description=each.description)
            for each in (EVENTS, EXTRACTIONS, EXTRACTED)
        )

    def __call__(self, event: Event) -> None:
        """Count an event."""
        failed = {} if event.error is None else {ERROR_TYPE: type(event.error).__qualname__}
        self._events.add(1, {EVENT: event.name, **failed})
        outcome = _OUTCOMES.get(event.name)
        if outcome is not None:
            self._extractions.add(1, {OUTCOME: outcome})
        written = event.attributes.get(_WRITTEN.get(event.name, ""))
        if isinstance(written, int) and written > 0:
            self._extracted.add(written)
