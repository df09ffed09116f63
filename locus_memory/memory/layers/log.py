"""The log layer: one small item for each model call and each pass."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from typing import Final, Literal
from uuid import uuid4

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory.events import emit
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put

__all__ = [
    "LOG_DAYS",
    "LogEntry",
    "LogKind",
    "log_put",
    "logged",
    "timed",
    "write_log",
]

LOG_DAYS: Final = 30.0
"""The days that an entry is kept."""

LogKind = Literal["distill", "gate", "condense", "consolidate", "facts", "reflect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A model call or a pass of a scope; it holds no text of anybody.

    Attributes:
        kind: What ran.
        at: The moment it began, ISO 8601 in UTC.
        duration_ms: How long it took, in milliseconds.
        ok: Whether it succeeded.
        error: The class of the error; `None` if it succeeded.
    """

    kind: LogKind
    at: str
    duration_ms: float
    ok: bool = True
    error: str | None = None


def log_put(scope: Scope, entry: LogEntry) -> Put:
    """Return the put of an entry; its key is in the order of time."""
    key = f"{entry.at}/{uuid4().hex[:8]}"
    return Put(namespace=scope.log, key=key, value=asdict(entry), text="")


@contextmanager
def timed(kind: LogKind, at: str, log: Callable[[LogEntry], None]) -> Generator[None]:
    """Hand the entry of what runs in the block to `log`, also if it fails.

    Args:
        kind: What runs.
        at: The present moment, ISO 8601 in UTC.
        log: Receives the entry.
    """
    start, failure = time.perf_counter(), None
    try:
        yield
    except BaseException as error:
        failure = type(error).__name__
        raise
    finally:
        took = round((time.perf_counter() - start) * 1_000, 3)
        log(LogEntry(kind=kind, at=at, duration_ms=took, ok=failure is None, error=failure))


@asynccontextmanager
async def logged(store: BaseStore, scope: Scope, kind: LogKind, at: str) -> AsyncGenerator[None]:
    """Write the entry of what runs in the block to the log of a scope, as `timed`."""
    entries: list[LogEntry] = []
    try:
        with timed(kind, at, entries.append):
            yield
    finally:
        await write_log(store, scope, entries)


async def write_log(store: BaseStore, scope: Scope, entries: list[LogEntry]) -> None:
    """Write entries to the log of a scope; a failure is an event, and the work goes on."""
    try:
        await store.put_batch([log_put(scope, entry) for entry in entries])
    except Exception as error:  # noqa: BLE001 - reported; the log is not worth the work
        raise_if_cancelled(error)
        emit("memory.log_failed", error=error)
