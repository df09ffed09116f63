"""The address of a database: a name or a URL, its hosts, and its form in messages."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from locus_memory._internal.providers.address import split_hosts
from locus_memory.errors import ConfigurationError

__all__ = ["attributes", "check_standbys", "described", "each_host", "is_url"]

_URL: Final = re.compile(r"postgres(ql)?://", re.IGNORECASE)

_PLACE: Final = re.compile(r"([\w.-]|\[[\da-f:.]+\]|:\d+(?!\d)|,)*(/[\w-]*)?", re.IGNORECASE)
"""Hosts, ports and the database of a URL."""


def is_url(database: str) -> bool:
    """Whether it is a URL, not a name."""
    return _URL.match(database) is not None


def described(database: str | None) -> str:
    """Return how messages name the database: never with what may be a password."""
    if database is None:
        return "postgresql"
    if not is_url(database):
        # Anything else may hold a password, such as the `host=... password=...` of libpq.
        if not database or not set("\0=@/").isdisjoint(database):
            raise ConfigurationError(
                "postgresql: a database is a name, or a URL that begins with postgresql://"
            )
        return f"postgresql {database}"
    parts = split_hosts(database)
    # A password whose special characters are not escaped ends up in any of the parts.
    place = parts.netloc.rpartition("@")[2] + parts.path
    escaped = "@" not in parts.query + parts.fragment and _PLACE.fullmatch(place)
    return f"postgresql {place}" if escaped else "postgresql"


def _of_several_hosts(database: str | None) -> bool:
    """Whether a URL has several hosts."""
    if database is None or "://" not in database:
        return False
    parts = split_hosts(database)
    return "," in parts.netloc.rpartition("@")[2] or "host=" in parts.query


def each_host(url: str) -> list[str]:
    """Return a URL for each host of a URL; `url` itself if it has one."""
    parts = split_hosts(url)
    user, at, hosts = parts.netloc.rpartition("@")
    if "," in hosts:
        return [parts._replace(netloc=user + at + host).geturl() for host in hosts.split(",")]
    query = parse_qsl(parts.query, keep_blank_values=True)
    listed = {name: value.split(",") for name, value in query if name in ("host", "port")}
    # As for libpq, one port is that of all hosts.
    ports = listed.get("port", [])
    return [
        parts._replace(
            query=urlencode(
                [(n, v) for n, v in query if n not in listed]
                + [("host", host)]
                + ([("port", ports[place % len(ports)])] if ports else [])
            )
        ).geturl()
        for place, host in enumerate(listed.get("host", []))
    ] or [url]


def check_standbys(database: str | None, *, borrowed: bool) -> None:
    """Refuse to read from standbys where there can be none.

    Raises:
        ConfigurationError: There is one host, or the caller's pool.
    """
    if borrowed or not _of_several_hosts(database):
        raise ConfigurationError(
            "postgresql: standby_reads needs a URL with several hosts, such as "
            "postgresql://host1,host2/mydb, and no pool"
        )


def attributes(database: str | None) -> dict[str, Any]:
    """Return which of several hosts to connect to, unless the URL says: one that takes writes."""
    if database is None or not _of_several_hosts(database) or "target_session_attrs=" in database:
        return {}
    return {"target_session_attrs": "read-write"}
