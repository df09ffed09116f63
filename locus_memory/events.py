"""Events of the library, for subscribers, the log and OpenTelemetry.

The library sends nothing over the network: it emits an `Event`, and each subscriber decides what
to do with it. Events with an error also go to the logger `locus_memory`, so that no failure is
invisible. If the process already uses OpenTelemetry, each event is also added to the current
span.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, Final

from locus_memory._internal.quoting import quote, shorten
from locus_memory.errors import (
    BackendError,
    CheckpointError,
    ConfigurationError,
    StoreCapabilityError,
)

__all__ = ["Event", "FailureLog", "collect", "emit", "subscribe", "uncollected"]

_MINUTE: Final = 60.0
_MOST_KINDS: Final = 256
_MOST_COLLECTED: Final = 1000

_SPEAKING: Final = (BackendError, CheckpointError, ConfigurationError, StoreCapabilityError)
"""Errors whose text holds no stored value; of other errors, only the class is logged."""

_logger = logging.getLogger("locus_memory")


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the library.

    Attributes:
        name: A dotted name, such as `checkpoint.rebased`.
        attributes: JSON-like facts about it; never a stored value or a password.
        error: The exception that was handled, if any.
    """

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: BaseException | None = None


_subscribers: list[Callable[[Event], None]] = []


def subscribe(handler: Callable[[Event], None]) -> Callable[[], None]:
    """Call `handler` with every event from now on; return a function that unsubscribes it.

    A handler runs synchronously where the event is emitted, so it must be quick. If a handler
    raises, the exception is logged, and the code that emitted the event continues.
    """
    _subscribers.append(handler)

    def unsubscribe() -> None:
        if handler in _subscribers:
            _subscribers.remove(handler)

    return unsubscribe


class FailureLog:
    """A subscriber that logs events with an error as warnings.

    For each kind (event name and error class), it writes at most one line per minute; the next line
    says how many were left out. A line holds the event's name and attributes. It holds the text of
    an error only if that text is known to hold no stored value.

    Args:
        logger: The logger of the lines.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self, logger: logging.Logger, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger = logger
        self._clock = clock
        # Garbage collection may emit an event meanwhile.
        self._lock = threading.RLock()
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}

    def note(self, event: Event) -> None:
        """Log an event that has an error, unless one of its kind was logged within a minute."""
        if event.error is None:
            return
        left_out = self._left_out(event)
        if left_out is None:
            return
        more = more_like_this(left_out)
        # An error of the caller's own filter or handler must not stop the emitter.
        with suppress(Exception):
            self._logger.warning("%s%s", line_of(event), more, extra={"event": event.name})

    def _left_out(self, event: Event) -> int | None:
        """Return how many were left out before this one; `None`: this one is left out as well."""
        kind = event.name, type(event.error).__name__
        now = self._clock()
        with self._lock:
            written, left_out = self._kinds.get(kind, (now - _MINUTE, 0))
            if now - written < _MINUTE:
                self._kinds[kind] = written, left_out + 1
                return None
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            self._kinds[kind] = now, 0
            return left_out


def more_like_this(left_out: int) -> str:
    """Return the end of a line that stands for further ones."""
    return f" ({left_out} more like this since the last such line)" if left_out else ""


def line_of(event: Event) -> str:
    """Return an event as one line, without the text of an error that may hold a stored value."""
    error, text = event.error, event.name
    if error is not None:
        said = f": {error}" if isinstance(error, _SPEAKING) else ""
        text = " ".join(shorten(f"{text}: {type(error).__name__}{said}").split())
    facts = ", ".join(f"{name}={quote(value)}" for name, value in event.attributes.items())
    return f"{text} [{facts}]" if facts else text


_failures = FailureLog(_logger)
_replacing: list[FailureLog] = []


def replace_log(log: FailureLog) -> Callable[[], None]:
    """Let `log` note all events in place of the built-in log; return a function that undoes it."""
    _replacing.append(log)

    def undo() -> None:
        if log in _replacing:
            _replacing.remove(log)

    return undo


_collected: ContextVar[list[Event] | None] = ContextVar("locus_memory_collected", default=None)


@contextmanager
def collect() -> Generator[list[Event]]:
    """Collect the events of this task and of the tasks it starts; at most 1,000."""
    events: list[Event] = []
    token = _collected.set(events)
    try:
        yield events
    finally:
        _collected.reset(token)


def uncollected() -> Context:
    """Return a copy of the context in which no events are collected."""
    context = copy_context()
    context.run(_collected.set, None)
    return context


def emit(name: str, *, error: BaseException | None = None, **attributes: Any) -> None:
    """Send an event to the subscribers, the log and the current OpenTelemetry span."""
    event = Event(name, attributes, error)
    (_replacing[-1] if _replacing else _failures).note(event)
    events = _collected.get()
    if events is not None and len(events) < _MOST_COLLECTED:
        events.append(event)
    for handler in tuple(_subscribers):
        try:
            handler(event)
        except Exception:
            _logger.exception("a subscriber failed on %s", name)
    _add_to_span(event)


def _add_to_span(event: Event) -> None:
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    attributes = {
        key: value if isinstance(value, str | bool | int | float) else str(value)
        for key, value in event.attributes.items()
    }
    if event.error is not None:
        attributes["exception.type"] = type(event.error).__name__
    trace.get_current_span().add_event(f"locus_memory.{event.name}", attributes)
