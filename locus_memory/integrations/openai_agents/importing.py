"""Import of the sessions that the SDK's own `SQLiteSession` keeps, with their branches.

The tables are read by themselves, in one transaction, so that all sessions of a file are found. An
item gets its number in the log first, and is written with its moment after that. So the items of a
session are always the first ones of the original, and the next import adds the missing ones.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from locus_memory.backends.base import Backend
from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.foreign import columns_of, need_columns, sqlite_source
from locus_memory.integrations.log import Head, Log, Past
from locus_memory.integrations.reading import tell_unreadable
from locus_memory.memory.moments import read_moment
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_identifier
from locus_memory.store.json_values import encode_json
from locus_memory.store.opening import borrowed

__all__ = ["BranchSource", "CopiedBranch", "import_sessions", "open_source"]

_WHAT: Final = "the SDK's SQLiteSession"
_NAMESPACE: Final = ("openai_agents",)
_ALL: Final = 2**31
_PAGE: Final = 200

_MESSAGES: Final = ("id", "session_id", "message_data", "created_at")
_STRUCTURE: Final = ("session_id", "message_id", "branch_id", "sequence_number")

_NAMES: Final = """
    SELECT DISTINCT session_id, 'main' FROM agent_messages
    WHERE :session IS NULL OR session_id = :session ORDER BY 1
"""
# Messages beside the structure of their session are orphans, which the SDK never shows.
_JOINED: Final = """
    FROM agent_messages AS m LEFT JOIN message_structure AS s ON s.message_id = m.id
    WHERE (s.branch_id IS NOT NULL OR NOT EXISTS (
      SELECT 1 FROM message_structure AS t WHERE t.session_id = m.session_id))
"""
_BRANCHES: Final = f"""
    SELECT DISTINCT m.session_id, coalesce(s.branch_id, 'main') {_JOINED}
    AND (:session IS NULL OR m.session_id = :session) ORDER BY 1, 2
"""
_ITEMS: Final = """
    SELECT id, message_data, created_at FROM agent_messages
    WHERE session_id = :session AND :branch = 'main' ORDER BY id
"""
_BRANCH_ITEMS: Final = f"""
    SELECT m.id, m.message_data, m.created_at {_JOINED}
    AND m.session_id = :session AND coalesce(s.branch_id, 'main') = :branch
    ORDER BY s.sequence_number, m.id
"""


@dataclass(frozen=True, slots=True)
class CopiedBranch:
    """The result of the import of one branch of a session.

    Attributes:
        session_id: The id of the session.
        branch: Its branch.
        items: Number of items of the original that can be read.
        saved: Number of items that this import stored.
        unreadable: Number of items that cannot be read, and are left out, as the SDK does.
        conflicts: 1 if the target has other items in the branch, which stay as they are.
    """

    session_id: str
    branch: str
    items: int = 0
    saved: int = 0
    unreadable: int = 0
    conflicts: int = 0


class BranchSource:
    """The tables of a `SQLiteSession`, or of an `AdvancedSQLiteSession` with its branches."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        need_columns(connection, "agent_messages", _MESSAGES)
        if columns_of(connection, "message_structure"):
            need_columns(connection, "message_structure", _STRUCTURE)
            self._names, self._items = _BRANCHES, _BRANCH_ITEMS
        else:
            self._names, self._items = _NAMES, _ITEMS
        self._connection = connection

    def names(self, session_id: str | None) -> list[tuple[str, str]]:
        """Return the sessions and their branches; `None`: of all sessions."""
        return self._connection.execute(self._names, {"session": session_id}).fetchall()

    def items(self, session_id: str, branch: str, place: Namespace) -> tuple[list[Past], int]:
        """Return the items of a branch that can be read, the oldest first, and how many cannot."""
        found: list[Past] = []
        unreadable = 0
        rows = self._connection.execute(self._items, {"session": session_id, "branch": branch})
        for number, content, moment in rows:
            try:
                found.append(Past(_item(content), read_moment(moment) or datetime.now(UTC)))
            except (ValueError, TypeError) as error:
                unreadable += 1
                tell_unreadable(place, str(number), error)
        return found, unreadable


@asynccontextmanager
async def open_source(where: str) -> AsyncGenerator[BranchSource]:
    """Open the file of a `SQLiteSession`, to read it only.

    Args:
        where: The path of the file, with or without `sqlite:`.

    Raises:
        ConfigurationError: There is no file, or it has other tables.
    """
    with sqlite_source(where, _WHAT) as connection:
        yield BranchSource(connection)


async def import_sessions(
    source: BranchSource,
    where: str | BaseStore | Backend,
    *,
    session_id: str | None = None,
    namespace: Namespace = _NAMESPACE,
    on_item: Callable[[str, int], None] = lambda _, __: None,
) -> list[CopiedBranch]:
    """Copy sessions; a `LocusSession` of the same id returns the same items in the same order.

    A session that has the first items already gets the others, and one that has gone on since stays
    as it is. So does one with other items: it is counted in `conflicts`.

    Args:
        source: See `open_source`.
        where: The target, as for `LocusSession`.
        session_id: Only this session; `None`: all.
        namespace: The namespace of the sessions, as for `LocusSession`.
        on_item: Called with a session's id and the number of its items that are done.

    Raises:
        InvalidArgumentError: A session's id is empty; nothing was written.
        BackendError: The target failed.
    """
    names = source.names(session_id)
    for name, branch in names:
        check_identifier(name, "session_id")
        check_identifier(branch, "branch")
    async with borrowed(where) as store:
        await store.open()
        copying = _Copying(source, store, namespace, on_item)
        return [await copying.branch(*name) for name in names]


@dataclass(frozen=True, slots=True)
class _Copying:
    """One call of `import_sessions`."""

    source: BranchSource
    store: BaseStore
    namespace: Namespace
    on_item: Callable[[str, int], None]

    async def branch(self, session_id: str, branch: str) -> CopiedBranch:
        place = (*self.namespace, session_id, branch)
        items, unreadable = self.source.items(session_id, branch, place)
        log = Log(self.store, place, None)
        tail = await log.tail(_ALL)
        known = [] if tail is None else [entry.item for entry in tail.entries]
        same = all(one == past.item for one, past in zip(known, items, strict=False))
        done = CopiedBranch(session_id, branch, len(items), unreadable=unreadable)
        if tail is None or not same:
            return replace(done, conflicts=1)
        missing = items[len(known) :]
        saved = await self._add(log, tail.head, missing, session_id, len(known))
        return replace(done, saved=saved, conflicts=int(saved < len(missing)))

    async def _add(
        self, log: Log, head: Head, items: Sequence[Past], session_id: str, known: int
    ) -> int:
        """Append items; return how many, fewer if another process has written meanwhile."""
        # Without batches, a kill could leave a gap in a page.
        size = _PAGE if self.store.capabilities.batch_operations else 1
        for start in range(0, len(items), size):
            page = items[start : start + size]
            after = await log.restore(head, page)
            if after is None:
                return start
            head = after
            self.on_item(session_id, known + start + len(page))
        return len(items)


def _item(content: Any) -> dict[str, Any]:
    """Return an item of the SDK.

    Raises:
        ValueError: It is no JSON, or a store cannot hold it.
    """
    item = json.loads(content)
    if not isinstance(item, dict):
        raise InvalidArgumentError("an item is an object")
    encode_json(item)
    return item
