from __future__ import annotations

import ast
import asyncio
import logging
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from locus_memory.errors import BackendUnavailableError, InvalidArgumentError, ModelAnswerError
from locus_memory.events import Event, FailureLog, collect, emit, subscribe, uncollected
from locus_memory.observability import level_of
from locus_memory.testing import FakeClock

ROOT = Path(__file__).parents[1]
HOOKS = ROOT / "locus_memory" / "memory" / "providers" / "hooks.py"


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


@pytest.fixture
def log(caplog):
    """A log of failures over a clock that is moved."""
    clock = FakeClock()
    caplog.set_level(logging.INFO, logger="locus_memory")
    made = FailureLog(logging.getLogger("locus_memory"), clock=clock)
    made.clock = clock
    return made


def test_a_failure_is_a_warning(caplog):
    stops = [subscribe(lambda event: None), subscribe(lambda event: None)]
    emit("test.failed_once", error=BackendUnavailableError("no answer"), verb="put")
    emit("test.fine", verb="put")
    for stop in stops:
        stop()
    [record] = [each for each in caplog.records if each.event.startswith("test.")]
    assert (record.levelno, record.event) == (logging.WARNING, "test.failed_once")
    told = "test.failed_once: BackendUnavailableError: no answer [verb='put']"
    assert record.getMessage() == told


def test_a_kind_is_logged_once_a_minute_with_how_many_were_left_out(log, caplog):
    for _ in range(5):
        log.note(Event("a.failed", {}, ValueError()))
    log.note(Event("a.failed", {}, TypeError()))
    log.note(Event("b.failed", {}, ValueError()))
    assert [each.getMessage() for each in caplog.records] == [
        "a.failed: ValueError",
        "a.failed: TypeError",
        "b.failed: ValueError",
    ]
    log.clock.advance(59)
    log.note(Event("a.failed", {}, ValueError()))
    assert len(caplog.records) == 3
    log.clock.advance(1)
    log.note(Event("a.failed", {}, ValueError()))
    log.clock.advance(60)
    log.note(Event("a.failed", {}, ValueError()))
    assert [each.getMessage() for each in caplog.records[3:]] == [
        "a.failed: ValueError (5 more like this since the last such line)",
        "a.failed: ValueError",
    ]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("hunter2"),
        InvalidArgumentError("hunter2"),
        ModelAnswerError("hunter2"),
        type("Foreign\nError", (Exception,), {})("hunter2"),
    ],
)
def test_no_line_quotes_what_somebody_said(log, caplog, error):
    log.note(Event("a.failed", {"text": "x\n" * 1000}, error))
    [record] = caplog.records
    assert "hunter2" not in record.getMessage()
    assert len(record.getMessage()) < 400
    assert record.exc_info is None


def test_the_log_never_disturbs_the_work(log, caplog):
    def refuse(record):
        raise RuntimeError("filter")

    logger = logging.getLogger("locus_memory")
    logger.addFilter(refuse)
    log.note(Event("a.failed", {}, ValueError()))
    logger.removeFilter(refuse)
    assert caplog.records == []


def test_kinds_without_end_take_no_memory_without_end(log, caplog):
    for number in range(1000):
        log.note(Event(f"kind{number}", {}, ValueError()))
    assert len(caplog.records) == 1000
    assert len(log._kinds) <= 256


def test_a_failure_is_visible_where_nobody_set_logging_up():
    code = "from locus_memory.events import emit; emit('a.failed', error=ValueError('secret'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "a.failed: ValueError\n")


async def test_what_happens_in_a_context_is_collected():
    with collect() as events:
        emit("first")
        await asyncio.create_task(_emit("second"))
        await asyncio.create_task(_emit("elsewhere"), context=uncollected())
        with collect() as inner:
            emit("within")
    emit("later")
    assert [event.name for event in events] == ["first", "second"]
    assert [event.name for event in inner] == ["within"]


async def _emit(name):
    emit(name)


def emissions():
    """Return the name and the keywords of each call of `emit`, or for a hook, in the package."""
    for path in (ROOT / "locus_memory").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            if ast.unparse(node.func) == "emit" and path != HOOKS:
                assert isinstance(node.args[0], ast.Constant), path
                yield node.args[0].value, set(named)
            elif ast.unparse(node.func) == "call_hook":
                event = named.pop("event", ast.Constant("agent.memory_failed"))
                assert isinstance(event, ast.Constant), path
                yield event.value, {"error", "hook", *named} - {"seconds"}


@pytest.mark.slow
def test_every_event_is_documented():
    emitted = {}
    for name, keywords in emissions():
        emitted.setdefault(name, []).append(keywords)
    assert len(emitted) > 30

    page = (ROOT / "docs" / "errors-and-events.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \| ([a-z, ]+) \| (.*?) \|", page, re.MULTILINE)
    assert [name for name, _, _ in rows] == sorted(emitted)
    for name, levels, attributes in rows:
        calls = emitted[name]
        with_error = {"error" in keywords for keywords in calls}
        given = {level_of(Event(name, {}, ValueError() if each else None)) for each in with_error}
        assert levels == ", ".join(sorted(logging.getLevelName(each).lower() for each in given))
        told, known = set(re.findall(r"`(\w+)`", attributes)), set().union(*calls) - {"error"}
        # What is passed on as `**known` has no name here.
        assert told > known - {None} if None in known else told == known, name
