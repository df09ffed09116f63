"""New connections to a PostgreSQL server, by the arguments of the driver."""

from __future__ import annotations

from typing import Any, Final

from locus_memory.backends.postgresql.connection.address import is_url, shuffled
from locus_memory.backends.postgresql.connection.driver import (
    ClientConfigurationError,
    Connection,
    connect,
)
from locus_memory.backends.postgresql.connection.driver_errors import translated
from locus_memory.errors import ConfigurationError

__all__ = ["connected", "connected_to_standby", "connection_arguments"]

_PLAN_LIFETIME: Final = 60
"""Seconds until a statement is prepared again: the server keeps its plan for the tables as they
were, and a plan for empty tables reads all of a namespace."""


def connection_arguments(database: str | None, **options: float | None) -> dict[str, Any]:
    """Return what `asyncpg.connect` takes."""
    arguments: dict[str, Any] = {**options, "max_cached_statement_lifetime": _PLAN_LIFETIME}
    if database is not None:
        arguments["dsn" if is_url(database) else "database"] = database
    return arguments


async def connected(where: str, arguments: dict[str, Any]) -> Connection:
    """Return a new connection.

    Raises:
        ConfigurationError: The driver cannot read the URL or the environment.
        BackendError: The server cannot be reached, or refuses the user.
    """
    # Of the pool itself nothing is held here, so that one that is dropped is collected.
    with translated(where):
        try:
            return await connect(arguments)
        except ClientConfigurationError:
            raise
        except (ValueError, OverflowError) as error:
            # Its message quotes what may be a part of the password.
            raise ConfigurationError(
                f"{where}: the driver cannot read the URL or the environment "
                f"({type(error).__name__}); a password's special characters are written as "
                "%40 for @, %2F for / and so on"
            ) from None


async def connected_to_standby(where: str, arguments: dict[str, Any]) -> Connection:
    """Return a new connection to one of the standbys; see `connected`."""
    chosen = {"dsn": shuffled(arguments["dsn"]), "target_session_attrs": "standby"}
    return await connected(where, {**arguments, **chosen})
