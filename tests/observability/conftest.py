from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from locus_memory.observability import instrument


class Recorded:
    """The spans and metrics that were recorded, in memory."""

    def __init__(self):
        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader])

    def instrument(self, **options):
        return instrument(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    @property
    def spans(self):
        return self._exporter.get_finished_spans()

    def named(self, name):
        """Return the attributes of the spans of a name."""
        return [dict(span.attributes) for span in self.spans if span.name == name]

    def clear(self):
        self._exporter.clear()

    def points(self, metric):
        """Return the values of a metric by their attributes, which are sorted."""
        data = self._reader.get_metrics_data()
        return {
            tuple(sorted(point.attributes.items())): point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
        }

    def value(self, metric, **attributes):
        """Return the sum of the values whose attributes include these; dots are underscores."""
        wanted = set(attributes.items())
        return sum(
            point.value
            for key, point in self.points(metric).items()
            if wanted <= {(name.rpartition(".")[2], value) for name, value in key}
        )


@pytest.fixture
def recorded():
    found = Recorded()
    yield found
    found.tracers.shutdown()
    found.meters.shutdown()


@pytest.fixture
def instrumented(recorded):
    undo = recorded.instrument()
    yield recorded
    undo()
