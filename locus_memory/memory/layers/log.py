"""The log layer: one small item for each model call and each pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self
from uuid import uuid4

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Put

__all__ = ["LOG_DAYS", "LogEntry", "LogKind", "log_put", "read_log"]

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

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Self:
        """Return the entry of a stored value.

        Raises:
            InvalidArgumentError: The value is not an entry.
        """
        try:
            return cls(**value)
        except TypeError as error:
            raise InvalidArgumentError("a stored value that is not a log entry") from error


def log_put(scope: Scope, entry: LogEntry) -> Put:
    """Return the put of an entry; its key is in the order of time."""
    key = f"{entry.at}/{uuid4().hex[:8]}"
    return Put(namespace=scope.log, key=key, value=asdict(entry), text="")


async def read_log(store: BaseStore, scope: Scope) -> AsyncIterator[LogEntry]:
    """Yield the entries of a scope, the oldest first.

    Raises:
        BackendError: The store failed.
    """
    async for item in scan_all(store, scope.log):
        yield LogEntry.from_value(item.value)
