"""oracledb in its thin mode: the part of it that this backend uses, with types."""

from __future__ import annotations

from typing import Any, Final

import oracledb

from locus_memory.backends.sql.pool import LONGEST_IDLE

__all__ = [
    "DRIVER_ERRORS",
    "Binds",
    "Connection",
    "DriverError",
    "Pool",
    "Row",
    "code_of",
    "connect",
    "create_pool",
]

Pool = oracledb.AsyncConnectionPool
Connection = oracledb.AsyncConnection
DriverError = oracledb.Error
Binds = dict[str, Any]
Row = tuple[Any, ...]

DRIVER_ERRORS: Final = (oracledb.Error, oracledb.Warning, OSError)
"""What oracledb raises; it wraps most errors of the socket."""


async def connect(arguments: dict[str, Any]) -> Connection:
    """Open a connection, given the arguments of `oracledb.connect_async`."""
    connection: Connection = await oracledb.connect_async(**arguments)
    return connection


def create_pool(arguments: dict[str, Any], size: int) -> Pool:
    """Return a pool that opens at most so many connections when they are needed."""
    # Seconds, and milliseconds: a connection that was idle for long is asked first.
    asked = {"ping_interval": LONGEST_IDLE, "ping_timeout": 1000}
    return oracledb.create_pool_async(min=0, max=size, increment=1, **asked, **arguments)


def code_of(error: BaseException | None) -> str:
    """Return the code of an error of the driver or the server, such as `ORA-00001`, or ``."""
    detail = error.args[0] if isinstance(error, oracledb.Error) and error.args else None
    return str(getattr(detail, "full_code", "") or "")
