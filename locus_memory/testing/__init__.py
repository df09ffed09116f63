"""Conformance suites and fakes, for this library's backends and for yours."""
