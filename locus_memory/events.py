"""What happened inside, for whoever wants to know.

The library never logs a failure away and never phones home: it emits an `Event`, and
subscribers do with it what they like. When the process already uses OpenTelemetry, each
event is also added to the current span.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Event", "emit", "subscribe"]

_logger = logging.getLogger("locus_memory")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        name: A dotted name, such as `checkpoint.rebased`.
        attributes: JSON-like facts about it; never a stored value or a password.
        error: The exception that was survived, if there was one.
    """

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: BaseException | None = None


_subscribers: list[Callable[[Event], None]] = []


def subscribe(handler: Callable[[Event], None]) -> Callable[[], None]:
    """Call `handler` with every event from now on; returns a function that stops it.

    A handler runs where the event happens, so it must be quick. One that raises is logged
    and never disturbs the work that emitted the event.
    """
    _subscribers.append(handler)

    def unsubscribe() -> None:
        if handler in _subscribers:
            _subscribers.remove(handler)

    return unsubscribe


def emit(name: str, *, error: BaseException | None = None, **attributes: Any) -> None:
    """Tell the subscribers, and the current OpenTelemetry span, what happened."""
    event = Event(name, attributes, error)
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
