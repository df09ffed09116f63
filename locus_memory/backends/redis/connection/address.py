"""The address of a Redis server: its accepted forms, and its form in messages."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit

from redis.asyncio import ConnectionPool

from locus_memory.errors import ConfigurationError

__all__ = ["to_place", "to_url"]

_SCHEMES: Final = {"valkey": "redis", "valkeys": "rediss"}

_DEFAULT: Final = "redis://localhost:6379"

_DATABASE: Final = re.compile(r"(/([0-9]+/?)?)?")
"""The path of a URL; the driver takes what is no number for database 0."""


def to_url(where: str | None) -> str:
    """Return the URL of `host`, `host:port`, `host:port/db` or of a URL; `None`: localhost.

    Raises:
        ConfigurationError: The driver cannot read it.
    """
    if where is None:
        return _DEFAULT
    scheme, separator, rest = where.partition("://")
    kind = _SCHEMES.get(scheme.lower(), scheme)
    url = f"{kind}://{rest}" if separator else where and f"redis://{where}"
    problem = _problem(url)
    # Outside of any `except`: an error's context may quote the password.
    if problem is not None:
        raise ConfigurationError(f"redis: {problem}")
    return url


def _problem(url: str) -> str | None:
    """Return what the driver cannot make of a URL, without what may be its password."""
    try:
        ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except TypeError as error:
        return f"an option of the url is unknown: {error}"
    except Exception:  # noqa: BLE001 - an error of the driver or of urllib may quote the password
        return (
            "the url cannot be read; it is redis://, rediss:// or unix://, and a '/', '?', "
            "'#' or '@' in its password is percent-encoded"
        )
    if parts.scheme != "unix" and not _DATABASE.fullmatch(unquote(parts.path)):
        return "the url cannot be read; what follows the port is the number of a database"
    return None


def to_place(url: str) -> str:
    """Return what of a URL may be shown: host, port and database, or the socket's path."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    host = parts.hostname or "localhost"
    shown = f"[{host}]" if ":" in host else host
    database = parts.path.strip("/")
    return f"{shown}:{parts.port or 6379}" + (f"/{database}" if database else "")
