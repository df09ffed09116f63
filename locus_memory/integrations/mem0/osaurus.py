"""The import of the memory database of Osaurus: pinned facts, episodes and a person's overrides.

The tables are those of `MemoryDatabase.swift` of Osaurus since its version 5:
https://github.com/osaurus-ai/osaurus. A database that is encrypted by SQLCipher is no SQLite file
to others; Osaurus can write a plain copy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from locus_memory.integrations.foreign import need_columns, sqlite_source
from locus_memory.integrations.mem0.export import Exported
from locus_memory.integrations.mem0.importing import MemorySource
from locus_memory.memory.moments import read_moment

__all__ = ["open_osaurus"]

_NEEDED: Final = {
    "identity": ("overrides", "generated_at"),
    "pinned_facts": ("id", "agent_id", "content", "status", "created_at"),
    "episodes": ("id", "agent_id", "summary", "status", "conversation_at"),
}
_ROWS: Final = """
    SELECT 'pinned', id, content, created_at, agent_id FROM pinned_facts WHERE status = 'active'
    UNION SELECT 'episode', id, summary, conversation_at, agent_id FROM episodes
    WHERE status = 'active'
    UNION SELECT 'override', value, value, generated_at, NULL FROM identity, json_each(overrides)
"""


@contextmanager
def open_osaurus(where: str) -> Generator[MemorySource]:
    """Read the memory database of Osaurus, by default `~/.osaurus/memory/memory.sqlite`.

    Args:
        where: The path of the file, with or without `sqlite:`.

    Raises:
        ConfigurationError: There is no file, it is encrypted or damaged, or it has other tables.
    """
    with sqlite_source(where, "Osaurus' memory") as connection:
        for table, needed in _NEEDED.items():
            need_columns(connection, table, needed)
        rows: list[tuple[Any, ...]] = connection.execute(_ROWS).fetchall()
        if wrong := {layer for layer, _, content, *_ in rows if not isinstance(content, str)}:
            raise sqlite3.DatabaseError(f"a row of {min(wrong)} has no text")
        yield MemorySource(exported=[_memory(*row) for row in rows], name="osaurus")


def _memory(layer: str, row: object, content: str, at: object, agent: object) -> Exported:
    metadata = {"layer": layer} | ({"agent_id": agent} if isinstance(agent, str) else {})
    # An identifier of Osaurus may be that of a row of another table as well.
    return Exported(f"{layer}:{row}", content, at=read_moment(at), metadata=metadata)
