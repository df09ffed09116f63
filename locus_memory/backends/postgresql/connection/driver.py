"""asyncpg, which has annotations only in part: it is imported here and nowhere else."""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped] # it does not say so

__all__ = ["DRIVER_ERRORS", "Connection", "OwnConnection", "Pool", "Record", "asyncpg", "errors"]

errors = asyncpg.exceptions
Pool = asyncpg.Pool
Connection = Any
Record = Any

DRIVER_ERRORS: Final = (
    errors.PostgresError,
    errors.InterfaceError,
    errors.InternalClientError,
    OSError,
)
"""What asyncpg raises; timeouts and refused connections are `OSError`s."""


class OwnConnection(asyncpg.Connection):  # type: ignore[misc] # it is untyped
    """A connection opened here, whose statements have names that those of no other one have.

    asyncpg counts prepared statements. A pooler in transaction mode that nobody mentioned lends one
    session to many processes, where such a name may stand for another process's statement: a read
    that deletes. With names of its own it is an error.
    """

    def _get_unique_id(self, prefix: str) -> str:
        return f"__locus_{prefix}_{token_hex(8)}__"

    async def reset(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncpg's own
        """Roll back what was not committed; nothing here sets anything in a session."""
        if self.is_in_transaction():
            async with asyncio.timeout(timeout):
                await self.execute("ROLLBACK")
