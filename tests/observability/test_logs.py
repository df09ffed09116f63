"""Events as records of Python's logging."""

from __future__ import annotations

import logging

import pytest

from locus_memory.errors import BackendUnavailableError, InvalidArgumentError
from locus_memory.events import Event, emit
from locus_memory.observability import EventLog, log_events
from locus_memory.testing import FakeClock


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.DEBUG, logger="locus_memory")
    return caplog


@pytest.fixture
def bridge(lines):
    stop = log_events()
    yield lines
    stop()


def test_an_event_is_a_record_with_fields(bridge):
    emit("memory.extracted", messages=2, changes=4, memories=3)
    [record] = bridge.records
    assert (record.name, record.levelno) == ("locus_memory.events", logging.DEBUG)
    assert record.getMessage() == "memory.extracted [messages=2, changes=4, memories=3]"
    assert record.event == "memory.extracted"
    assert record.attributes == {"messages": 2, "changes": 4, "memories": 3}
    assert (record.error_type, record.left_out) == (None, 0)


def test_an_attribute_may_have_the_name_of_a_field_of_logging(bridge):
    emit("memory.extract_failed", error=TimeoutError("secret"), thread="t", module="m", attempts=1)
    [record] = bridge.records
    assert record.levelno == logging.WARNING
    assert record.attributes == {"thread": "t", "module": "m", "attempts": 1}
    assert record.error_type == "TimeoutError"
    assert "secret" not in record.getMessage()


def test_it_replaces_the_default_lines(lines):
    stop = log_events("app.memory")
    emit("memory.save_failed", error=BackendUnavailableError("no answer"), memories=1)
    stop()
    stop()
    assert [(each.name, each.levelno) for each in lines.records] == [("app.memory", logging.ERROR)]
    emit("test.only_default", error=BackendUnavailableError("no answer"))
    assert lines.records[-1].name == "locus_memory"


def test_a_failure_that_repeats_is_logged_once_a_minute(lines):
    clock = FakeClock()
    log = EventLog(logging.getLogger("locus_memory.t"), clock=clock)
    for _ in range(5):
        log.note(Event("a.failed", {}, ValueError()))
        log.note(Event("a.fine", {}))
    clock.advance(60)
    log.note(Event("a.failed", {}, ValueError()))
    failed = [each for each in lines.records if each.event == "a.failed"]
    assert [each.left_out for each in failed] == [0, 4]
    assert failed[1].getMessage().endswith("(4 more like this since the last such line)")
    assert sum(each.event == "a.fine" for each in lines.records) == 5


def test_a_level_that_is_off_costs_no_line_of_a_minute(lines):
    clock = FakeClock()
    logger = logging.getLogger("locus_memory.t")
    log = EventLog(logger, clock=clock)
    lines.set_level(logging.CRITICAL, logger="locus_memory.t")
    log.note(Event("a.failed", {}, ValueError()))
    lines.set_level(logging.DEBUG, logger="locus_memory.t")
    log.note(Event("a.failed", {}, ValueError()))
    [record] = lines.records
    assert record.left_out == 0


def test_levels_can_be_chosen(lines):
    stop = log_events(levels={"memory.extracted": logging.CRITICAL})
    emit("memory.extracted", messages=1, changes=0, memories=0)
    stop()
    assert [each.levelno for each in lines.records] == [logging.CRITICAL]
    with pytest.raises(InvalidArgumentError, match=r"'memory\.extracted' is a number such as"):
        log_events(levels={"memory.extracted": "INFO"})


def test_a_filter_that_fails_disturbs_nobody(bridge):
    def refuse(record):
        raise RuntimeError("filter")

    logger = logging.getLogger("locus_memory.events")
    logger.addFilter(refuse)
    emit("memory.extracted", messages=1, changes=0, memories=0)
    logger.removeFilter(refuse)
    assert bridge.records == []
