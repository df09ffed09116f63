"""The SQLite backend: both contracts over one database file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from typing_extensions import override

from locus_memory._internal.offload import in_thread
from locus_memory._internal.options import checked
from locus_memory.backends.advice import Advice
from locus_memory.backends.base import ConnectedBackend
from locus_memory.backends.remains import ByteSearch, Place
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.backends.sqlite.upkeep.advice import advise, outdated
from locus_memory.backends.sqlite.upkeep.problems import find_problems
from locus_memory.backends.sqlite.upkeep.remains import find_remains
from locus_memory.checkpoint.chain import CheckpointerOptions

__all__ = ["SQLiteBackend"]


class SQLiteBackend(ConnectedBackend[SQLiteDatabase, SQLiteStore, SQLiteCheckpointer[Any]]):
    """A store and a checkpointer in one database file, over one writer and its readers.

    Args:
        path: The file, or `":memory:"`; created at its first use.
        database: A database to share, which the backend does not close; the options of the
            connection are ignored then.
        readers: See `SQLiteDatabase`.
        busy_timeout: See `SQLiteDatabase`.
        synchronous: See `SQLiteDatabase`.
        store_options: Options of `SQLiteStore`.
        checkpointer_options: Options of `SQLiteCheckpointer`.
    """

    provider = "sqlite"

    @checked
    def __init__(
        self,
        path: str | os.PathLike[str] = "./locus.db",
        *,
        database: SQLiteDatabase | None = None,
        readers: int = 2,
        busy_timeout: float = 30.0,
        synchronous: Literal["normal", "full"] = "normal",
        store_options: Mapping[str, Any] | None = None,
        checkpointer_options: CheckpointerOptions | None = None,
    ) -> None:
        self._owned = database is None
        self._connection = database or SQLiteDatabase(
            path, readers=readers, busy_timeout=busy_timeout, synchronous=synchronous
        )
        self._store = SQLiteStore(database=self._connection, **(store_options or {}))
        self._checkpointer = SQLiteCheckpointer(
            database=self._connection, **(checkpointer_options or CheckpointerOptions())
        )

    @override
    async def problems(self) -> list[str]:
        """Return the problems that SQLite finds, and rows whose other parts are missing."""
        return await find_problems(self._connection)

    @override
    async def advice(self) -> list[Advice]:
        return await self._connection.read(advise)

    @override
    async def outdated(self) -> list[Advice]:
        return await in_thread(outdated, self._connection.path)

    @override
    async def compact(self) -> None:
        await self._store.compact()
        # A page whose rows SQLite moves may keep pieces of them, in spite of `secure_delete`.
        await self._connection.rewrite()

    @override
    async def remains(self, search: ByteSearch) -> list[Place]:
        return await find_remains(self._connection, search)
