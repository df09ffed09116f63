"""asyncpg, which is only partly typed: what is used of it, and nothing else."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from secrets import token_hex
from typing import Any, Final, Protocol, cast

import asyncpg  # type: ignore[import-untyped] # it has annotations, but does not say so

__all__ = [
    "DRIVER_ERRORS",
    "CannotConnectNowError",
    "ClientConfigurationError",
    "Connection",
    "InterfaceError",
    "InternalClientError",
    "InvalidCachedStatementError",
    "InvalidSchemaNameError",
    "LockNotAvailableError",
    "Pool",
    "PostgresConnectionError",
    "PostgresError",
    "Record",
    "TargetServerAttributeNotMatched",
    "UndefinedTableError",
    "UniqueViolationError",
    "connect",
]

Pool = asyncpg.Pool
CannotConnectNowError = asyncpg.exceptions.CannotConnectNowError
ClientConfigurationError = asyncpg.exceptions.ClientConfigurationError
InterfaceError = asyncpg.InterfaceError
InternalClientError = asyncpg.InternalClientError
InvalidCachedStatementError = asyncpg.exceptions.InvalidCachedStatementError
InvalidSchemaNameError = asyncpg.exceptions.InvalidSchemaNameError
LockNotAvailableError = asyncpg.exceptions.LockNotAvailableError
PostgresConnectionError = asyncpg.exceptions.PostgresConnectionError
PostgresError = asyncpg.PostgresError
TargetServerAttributeNotMatched = asyncpg.exceptions.TargetServerAttributeNotMatched
UndefinedTableError = asyncpg.exceptions.UndefinedTableError
UniqueViolationError = asyncpg.exceptions.UniqueViolationError

DRIVER_ERRORS: Final = (PostgresError, InterfaceError, InternalClientError, OSError)
"""What asyncpg raises; timeouts and refused connections are `OSError`s."""


class Record(Protocol):
    """A row, by name and by position."""

    def __getitem__(self, key: str | int, /) -> Any: ...

    def __len__(self) -> int: ...


class Connection(Protocol):
    """A connection of asyncpg; see https://magicstack.github.io/asyncpg/current/api/."""

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109 - asyncpg's own
        """Return the tag of a statement; seconds of its own instead of `command_timeout`."""
        ...

    async def fetch(self, query: str, *args: Any) -> list[Record]:
        """Return all rows."""
        ...

    async def fetchrow(self, query: str, *args: Any) -> Record | None:
        """Return the first row, if there is one."""
        ...

    async def fetchval(self, query: str, *args: Any) -> Any:
        """Return the first value of the first row, or `None`."""
        ...

    def transaction(self, *, isolation: str) -> AbstractAsyncContextManager[None]:
        """Return a transaction, or a savepoint inside of one."""
        ...

    def get_settings(self) -> Any:
        """Return what the server reported of its settings."""
        ...

    def is_closed(self) -> bool:
        """Whether it is known to be closed."""
        ...

    def is_in_transaction(self) -> bool:
        """Whether the server said so after the last statement."""
        ...

    async def close(self) -> None:
        """Take leave of the server."""
        ...

    def terminate(self) -> None:
        """Close the socket at once."""
        ...


class _Connection(asyncpg.Connection):  # type: ignore[misc] # it is untyped
    """A connection whose prepared statements have names that no other one has.

    asyncpg counts them. A pooler in transaction mode that nobody mentioned lends one session to
    many processes, where such a name may stand for another process's statement: a read that
    deletes. With names of its own it is an error.
    """

    def _get_unique_id(self, prefix: str) -> str:
        return f"__locus_{prefix}_{token_hex(8)}__"


async def connect(arguments: dict[str, Any]) -> Connection:
    """Open a connection, given what `asyncpg.connect` takes."""
    return cast("Connection", await asyncpg.connect(connection_class=_Connection, **arguments))
