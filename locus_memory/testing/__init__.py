"""Conformance suites and fakes, for this library's backends and for yours."""

from locus_memory.testing.fakes import FakeClock, FakeEmbedder
from locus_memory.testing.store import StoreConformance

__all__ = ["FakeClock", "FakeEmbedder", "StoreConformance"]
