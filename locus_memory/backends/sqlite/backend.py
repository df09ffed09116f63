"""The SQLite backend: both contracts over one database file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from locus_memory.backends.base import Backend
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.backends.sqlite.connection import SQLiteDatabase
from locus_memory.backends.sqlite.store import SQLiteStore

__all__ = ["SQLiteBackend"]


class SQLiteBackend(Backend):
    """A store and a checkpointer in one database file, over one writer and its readers.

    Args:
        path: The file, or `":memory:"`; made on first use.
        store_options: Options of `SQLiteStore`.
        checkpointer_options: Options of `SQLiteCheckpointer`.
    """

    provider = "sqlite"

    def __init__(
        self,
        path: str | os.PathLike[str] = "./locus.db",
        *,
        store_options: Mapping[str, Any] | None = None,
        checkpointer_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._database = SQLiteDatabase(path)
        self._store = SQLiteStore(database=self._database, **(store_options or {}))
        self._checkpointer = SQLiteCheckpointer(
            database=self._database, **(checkpointer_options or {})
        )

    @property
    def store(self) -> SQLiteStore:
        """The store."""
        return self._store

    @property
    def checkpointer(self) -> SQLiteCheckpointer:
        """The checkpointer."""
        return self._checkpointer

    async def open(self) -> None:
        """Open the file and set it up now, rather than on first use."""
        await self._store.open()
        await self._checkpointer.open()

    async def close(self) -> None:
        """Close the file."""
        await self._store.close()
        await self._checkpointer.close()
        await self._database.close()
