"""The history database of mem0: each change of each memory.

The schema is that of `mem0/memory/storage.py` of mem0ai 2.2.1; releases before 1.0 have the same
columns, or further ones. A row has no user: only the vector store of mem0 knows it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from locus_memory.integrations.foreign import need_columns, sqlite_source
from locus_memory.memory.moments import read_moment

__all__ = ["History", "PastVersion", "open_history"]

_WHAT: Final = "mem0's history"
_NEEDED: Final = ("memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at")
_TICK: Final = timedelta(microseconds=1)
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)

_ROWS: Final = """
    SELECT memory_id, old_memory, new_memory, event, created_at, updated_at FROM history
    ORDER BY memory_id, rowid
"""
_EVENTS: Final = frozenset(("ADD", "UPDATE", "DELETE"))


@dataclass(frozen=True, slots=True)
class PastVersion:
    """A change of a memory; `content` is `None` for its deletion."""

    at: datetime
    content: str | None


class History:
    """The changes of each memory, the oldest first, by its id.

    The rows of a memory are in the order in which mem0 wrote them. Where their moments are the
    same, or missing, as of the deletions of early releases, a change is a microsecond after the
    one before it.

    Attributes:
        unreadable: Number of rows that are no change.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        need_columns(connection, "history", _NEEDED)
        self.unreadable = 0
        self._changes: dict[str, list[PastVersion]] = {}
        for row in connection.execute(_ROWS):
            self.unreadable += not self._add(*row)

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of the memories."""
        return iter(self._changes)

    def of(self, memory_id: str) -> list[PastVersion]:
        """Return the changes of a memory."""
        return self._changes.get(memory_id, [])

    def _add(
        self, memory_id: object, old: object, new: object, event: object, *moments: object
    ) -> bool:
        """Add the change of a row; false: it is none."""
        if not isinstance(memory_id, str) or event not in _EVENTS:
            return False
        before, after = (each if isinstance(each, str) else None for each in (old, new))
        if event != "DELETE" and after is None:
            return False
        created, updated = map(read_moment, moments)
        changes = self._changes.setdefault(memory_id, [])
        if not changes and event != "ADD" and before is not None:
            # The row of its creation is gone, but not its content.
            changes.append(PastVersion(created or _NEVER, before))
        moment = (created if event == "ADD" else None) or updated or _NEVER
        if changes:
            moment = max(moment, changes[-1].at + _TICK)
        changes.append(PastVersion(moment, None if event == "DELETE" else after))
        return True


@contextmanager
def open_history(where: str) -> Generator[History]:
    """Read the history database of mem0, by default `~/.mem0/history.db`.

    Args:
        where: The path of the file, with or without `sqlite:`.

    Raises:
        ConfigurationError: There is no file, or it has other tables.
    """
    with sqlite_source(where, _WHAT) as connection:
        yield History(connection)
