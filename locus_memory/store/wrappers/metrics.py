"""Counts and times of every verb, for any backend, without another library."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from locus_memory.store.base import BaseStore
from locus_memory.store.wrappers.base import StoreWrapper

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["MetricsStore", "VerbMetrics"]


@dataclass(frozen=True, slots=True)
class VerbMetrics:
    """The calls of one verb.

    Attributes:
        calls: How many have ended.
        failures: How many of these raised an error or were cancelled.
        seconds: How long they took together.
        longest: How long the longest one took, in seconds.
    """

    calls: int = 0
    failures: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    @property
    def mean(self) -> float:
        """The mean time of a call in seconds; 0 before the first one."""
        return self.seconds / self.calls if self.calls else 0.0


class MetricsStore(StoreWrapper):
    """A store that counts the calls of each verb and measures how long they take.

    For OpenTelemetry, use `locus_memory.observability.instrument` instead, which needs no wrapper.

    Args:
        store: The inner store, a backend that has one, or a provider string.
        timer: Returns seconds that never go back.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        *,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(store)
        self._timer = timer
        self._metrics: dict[str, VerbMetrics] = {}
        self._lock = Lock()

    @property
    def metrics(self) -> Mapping[str, VerbMetrics]:
        """The verbs that were called, each with its calls until now."""
        with self._lock:
            return MappingProxyType(dict(self._metrics))

    @override
    async def _call(self, verb: str, /, *args: Any, **kwargs: Any) -> Any:
        start, failed = self._timer(), True
        try:
            result = await super()._call(verb, *args, **kwargs)
            failed = False
        finally:
            if verb != "open":
                self._note(verb, self._timer() - start, failed=failed)
        return result

    def _note(self, verb: str, seconds: float, *, failed: bool) -> None:
        with self._lock:
            known = self._metrics.get(verb, VerbMetrics())
            self._metrics[verb] = VerbMetrics(
                calls=known.calls + 1,
                failures=known.failures + failed,
                seconds=known.seconds + seconds,
                longest=max(known.longest, seconds),
            )
