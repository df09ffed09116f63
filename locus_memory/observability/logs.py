"""Events as records of Python's logging, each with a level and structured fields."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import Event, FailureLog, line_of, more_like_this, replace_log

__all__ = ["EventLog", "level_of", "log_events"]

_ERRORS: Final = frozenset(
    (
        *("agent.documents_failed", "agent.hook_failed", "agent.memory_failed"),
        *("agent.resources_failed", "agent.trim_failed"),
        *("checkpoint.not_pruned", "checkpoint.unreadable_parent", "documents.embed_failed"),
        *("integrations.call_failed", "integrations.checkpoint_unreadable"),
        *("integrations.item_unreadable", "integrations.line_skipped"),
        "integrations.search_failed",
        *("memory.embed_failed", "memory.extract_dropped", "memory.extract_parked"),
        *("memory.queue_unreadable", "memory.record_unreadable"),
        *("memory.save_failed", "memory.scope_failed"),
        *("opensearch.index_lost", "postgresql.vectors_lost"),
        *("redis.evicts", "redis.not_moved"),
        *("registry.plugin_failed", "resource.unclosed", "retention.skipped", "web.failed"),
    )
)
"""The events that a person should always look at."""

_NORMAL: Final = frozenset(
    (
        *("agent.thread_repaired", "checkpoint.removed", "conversation.summarized"),
        *("conversation.noted", "conversation.trimmed", "documents.ingested", "memory.condensed"),
        *("memory.duplicate_dropped", "memory.expired", "memory.extracted", "memory.injected"),
        "memory.outdated",
        *("memory.secret_dropped", "opensearch.unchecked_index"),
    )
)
"""The events of normal operation."""

_NO_LEVELS: Final[Mapping[str, int]] = MappingProxyType({})


def level_of(event: Event) -> int:
    """Return the level of an event, a number of `logging`.

    `ERROR`: a person should always look at it. `WARNING`: another failure that was survived.
    `DEBUG`: normal operation. `INFO`: any other event. The tables of `docs/errors-and-events.md`
    say which events these are.
    """
    if event.name in _ERRORS:
        return logging.ERROR
    if event.error is not None:
        return logging.WARNING
    return logging.DEBUG if event.name in _NORMAL else logging.INFO


class EventLog(FailureLog):
    """A log of all events, each a record with structured fields.

    A record has the attributes `event` (the name), `attributes` (a dict), `error_type` (the name of
    the error's class, or `None`) and `left_out`. Of the events with an error, each kind has at most
    one record a minute; `left_out` says how many were left out before it.

    Args:
        logger: The logger of the records.
        levels: Levels by the names of events, in place of `level_of`.
        clock: Returns monotonic seconds.

    Raises:
        InvalidArgumentError: A level is not a number.
    """

    def __init__(
        self,
        logger: logging.Logger,
        *,
        levels: Mapping[str, int] = _NO_LEVELS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(logger, clock=clock)
        given: Mapping[str, object] = levels
        for name, level in given.items():
            if not isinstance(level, int) or isinstance(level, bool):
                raise InvalidArgumentError(
                    f"the level of {quote(name)} is a number such as logging.INFO, not "
                    f"{quote(level)}"
                )
        self._levels = dict(levels)

    @override
    def note(self, event: Event) -> None:
        """Log an event, unless its level is off or one of its kind was logged within a minute."""
        level = self._levels.get(event.name)
        level = level_of(event) if level is None else level
        if not self._logger.isEnabledFor(level):
            return
        left_out = 0 if event.error is None else self._left_out(event)
        if left_out is None:
            return
        fields: dict[str, Any] = {
            "event": event.name,
            "attributes": dict(event.attributes),
            "error_type": None if event.error is None else type(event.error).__name__,
            "left_out": left_out,
        }
        # An error of the caller's own filter or handler must not stop the emitter.
        with suppress(Exception):
            self._logger.log(level, "%s%s", line_of(event), more_like_this(left_out), extra=fields)


def log_events(
    logger: str | logging.Logger = "locus_memory.events",
    *,
    levels: Mapping[str, int] = _NO_LEVELS,
) -> Callable[[], None]:
    """Write all events to a logger, in place of the lines that failures have by default.

    ```python
    logging.basicConfig(level=logging.INFO)
    stop = log_events(levels={"memory.extracted": logging.INFO})
    ```

    Args:
        logger: The logger of the records, or its name.
        levels: Levels by the names of events, in place of `level_of`.

    Returns:
        A function that undoes it.

    Raises:
        InvalidArgumentError: A level is not a number.
    """
    made = logging.getLogger(logger) if isinstance(logger, str) else logger
    return replace_log(EventLog(made, levels=levels))
