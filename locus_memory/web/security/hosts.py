"""The names by which a client may address the server; they defeat DNS rebinding.

A foreign page can make its own name point to this machine. The browser then sends that name in
`Host`, so a name that nobody allowed is refused. An address in digits cannot be rebound.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from locus_memory.web.settings import Settings, address_in, is_loopback

__all__ = ["is_allowed_host", "is_same_origin"]


def is_allowed_host(host: str, settings: Settings) -> bool:
    """Return whether a `Host` header names this server.

    Args:
        host: The value of the header, with or without a port.
        settings: The settings of the application.
    """
    name = _name_of(host)
    if name is None:
        return False
    if is_loopback(name):
        return True
    known = {each.lower() for each in (*settings.allowed_hosts, settings.host)}
    return name in known or (not is_loopback(settings.host) and address_in(name) is not None)


def is_same_origin(origin: str, host: str) -> bool:
    """Return whether an `Origin` header is a page of the server that `Host` names."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _name_of(host: str) -> str | None:
    """Return the name of a `Host` header in lower case; `None` if it is not valid."""
    try:
        parts = urlsplit(f"//{host}")
        # The port is only checked when it is read.
        _ = parts.port
    except ValueError:
        return None
    plain = parts.netloc == host and "@" not in host and not parts.path
    return parts.hostname.rstrip(".") if plain and parts.hostname else None
