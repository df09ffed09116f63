from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from locus_memory.events import Event, emit, subscribe

ROOT = Path(__file__).parents[1]


@pytest.fixture
def seen():
    events: list[Event] = []
    stop = subscribe(events.append)
    yield events
    stop()


def test_subscribers_are_told(seen):
    error = ValueError("bad")
    emit("checkpoint.rebased", error=error, thread_id="t", depth=3)
    emit("plain")
    assert seen == [
        Event("checkpoint.rebased", {"thread_id": "t", "depth": 3}, error),
        Event("plain", {}),
    ]


def test_stopping_is_final_and_may_be_repeated():
    events: list[Event] = []
    stop = subscribe(events.append)
    stop()
    stop()
    emit("unheard")
    assert events == []


def test_a_failing_subscriber_is_harmless(seen, caplog):
    def fail(event):
        raise RuntimeError("subscriber")

    events: list[Event] = []
    stops = [subscribe(fail), subscribe(events.append)]
    with caplog.at_level(logging.ERROR, logger="locus_memory"):
        emit("told", n=1)
    for stop in stops:
        stop()
    assert [event.name for event in (*seen, *events)] == ["told", "told"]
    assert "a subscriber failed on told" in caplog.text


def test_a_subscriber_may_stop_itself_while_it_is_told(seen):
    stops = []

    def once(event):
        stops[0]()

    stops.append(subscribe(once))
    emit("first")
    emit("second")
    assert [event.name for event in seen] == ["first", "second"]


class Span:
    """Records what is added to it."""

    def __init__(self):
        self.events = []

    def add_event(self, name, attributes):
        self.events.append((name, attributes))


def test_the_current_span_is_told(monkeypatch):
    span = Span()
    trace = ModuleType("opentelemetry.trace")
    trace.get_current_span = lambda: span
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", trace)
    emit("store.slow", error=TimeoutError(), seconds=1.5, where=("a", "b"))
    assert span.events == [
        (
            "locus_memory.store.slow",
            {"seconds": 1.5, "where": "('a', 'b')", "exception.type": "TimeoutError"},
        )
    ]


def test_telemetry_is_never_imported():
    before = "opentelemetry.trace" in sys.modules
    emit("quiet")
    assert ("opentelemetry.trace" in sys.modules) is before


def test_every_event_is_documented():
    documented = (ROOT / "docs" / "errors-and-events.md").read_text(encoding="utf-8")
    emitted = {
        name
        for path in (ROOT / "locus_memory").rglob("*.py")
        for name in re.findall(r'\bemit\(\s*"([a-z_.]+)"', path.read_text(encoding="utf-8"))
    }
    assert len(emitted) > 30
    assert [name for name in sorted(emitted) if f"| `{name}` |" not in documented] == []
    listed = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", documented, re.MULTILINE)
    assert listed == sorted(set(listed))
    assert set(listed) == emitted
