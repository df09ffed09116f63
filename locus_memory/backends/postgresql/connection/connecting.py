"""New connections to a PostgreSQL server, by the arguments of the driver."""

from __future__ import annotations

import random
import re
from typing import Any, Final

from locus_memory.backends.postgresql.connection.address import each_host, is_url
from locus_memory.backends.postgresql.connection.driver import OwnConnection, asyncpg, errors
from locus_memory.backends.postgresql.connection.driver_errors import translated
from locus_memory.errors import ConfigurationError

__all__ = ["connected", "connected_to_standby", "connection_arguments"]

_PLAN_LIFETIME: Final = 60
"""Seconds until a statement is prepared again: the server keeps its plan for the tables as they
were, and a plan for empty tables reads all of a namespace."""


async def _connect(arguments: dict[str, Any]) -> OwnConnection:
    connection: OwnConnection = await asyncpg.connect(connection_class=OwnConnection, **arguments)
    return connection


_NO_FIT: Final = errors.TargetServerAttributeNotMatched
_PREFERS_STANDBY: Final = re.compile(r"[?&]target_session_attrs=prefer-standby\b")


def connection_arguments(database: str | None, **options: float | None) -> dict[str, Any]:
    """Return the arguments of `connected`: those of `asyncpg.connect`, with a URL for each host."""
    arguments: dict[str, Any] = {**options, "max_cached_statement_lifetime": _PLAN_LIFETIME}
    if database is not None and is_url(database):
        arguments["urls"] = each_host(database)
    elif database is not None:
        arguments["database"] = database
    return arguments


async def connected(where: str, arguments: dict[str, Any]) -> OwnConnection:
    """Return a new connection, to the first host that answers and fits.

    A host that is silent takes its part of the time only. The one that answered is the first to be
    tried the next time.

    Args:
        where: The database, for messages.
        arguments: See `connection_arguments`; the order of the hosts is changed here.

    Raises:
        ConfigurationError: The driver cannot read the URL or the environment.
        BackendError: The server cannot be reached, or refuses the user.
    """
    # Of the pool itself nothing is held here, so that one that is dropped is collected.
    with translated(where):
        try:
            return await _connected(arguments)
        except errors.ClientConfigurationError:
            raise
        except (ValueError, OverflowError) as error:
            # Its message quotes what may be a part of the password.
            raise ConfigurationError(
                f"{where}: the driver cannot read the URL or the environment "
                f"({type(error).__name__}); a password's special characters are written as "
                "%40 for @, %2F for / and so on"
            ) from None


async def _connected(arguments: dict[str, Any]) -> OwnConnection:
    options = dict(arguments)
    urls: list[str] = options.pop("urls", [])
    if len(urls) < 2:  # noqa: PLR2004 - several
        return await _connect({**options, "dsn": urls[0]} if urls else options)
    options["timeout"] /= len(urls)
    failures: list[Exception] = []
    # The driver knows the other hosts no more, of which it would prefer one.
    prefers = _PREFERS_STANDBY.search(urls[0]) is not None
    for wanted in ("standby", "any") if prefers else (None,):
        chosen = options if wanted is None else {**options, "target_session_attrs": wanted}
        for url in urls:
            try:
                connection = await _connect({**chosen, "dsn": url})
            except (OSError, errors.CannotConnectNowError, _NO_FIT) as error:
                failures.append(error)
            else:
                arguments["urls"] = [url, *(each for each in urls if each != url)]
                return connection
    # That a host does not fit is no reason why another one failed.
    raise next((e for e in failures if not isinstance(e, _NO_FIT)), failures[-1])


async def connected_to_standby(where: str, arguments: dict[str, Any]) -> OwnConnection:
    """Return a new connection to one of the standbys, in any order; see `connected`."""
    urls = arguments["urls"]
    chosen = {"urls": random.sample(urls, len(urls)), "target_session_attrs": "standby"}
    return await connected(where, {**arguments, **chosen})
