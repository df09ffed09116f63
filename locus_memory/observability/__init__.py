"""Traces, metrics and log records of what this process does, for the operator's own tools.

Nothing is sent by the library: OpenTelemetry's SDK or the logging module of the program decide
where the data goes. Until `instrument` is called, no verb does more than before.

Read `instrumentation.py` first, then `recording.py` for a single call, and `conventions.py` for all
names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.observability.conventions import METRICS, Metric
    from locus_memory.observability.instrumentation import instrument
    from locus_memory.observability.logs import EventLog, level_of, log_events
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "METRICS": "conventions",
            "EventLog": "logs",
            "Metric": "conventions",
            "instrument": "instrumentation",
            "level_of": "logs",
            "log_events": "logs",
        },
    )

__all__ = ["METRICS", "EventLog", "Metric", "instrument", "level_of", "log_events"]
