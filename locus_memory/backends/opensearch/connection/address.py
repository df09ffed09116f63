"""The addresses of OpenSearch nodes: their accepted forms, and their form in messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from locus_memory.errors import ConfigurationError

__all__ = ["Host", "hosts_of", "place_of"]

_PORTS: Final = {"http": 9200, "https": 443}
"""The ports that opensearch-py assumes."""

_PROBLEM: Final = (
    "opensearch: an address cannot be read; it is host, host:port or a URL with http:// or "
    "https://, several are separated by commas, and a '/', '?', '#', '@' or ',' in a password is "
    "percent-encoded"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The address of a node.

    Attributes:
        host: Its name or IP address.
        port: Its port.
        use_ssl: Whether it speaks TLS.
        url_prefix: The path before every other path; empty for none.
        http_auth: The user and the password of the URL.
    """

    host: str
    port: int
    use_ssl: bool = False
    url_prefix: str = ""
    http_auth: tuple[str, str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{shown}:{self.port}{self.url_prefix}"


def hosts_of(where: str | None) -> tuple[Host, ...]:
    """Return the nodes of a list of addresses, separated by commas; `None`: localhost.

    Raises:
        ConfigurationError: One cannot be read. The error quotes nothing, for any part may be the
            password.
    """
    if where is None:
        return (Host(host="localhost", port=_PORTS["http"]),)
    hosts = [_host_of(each.strip()) for each in where.split(",")]
    found = [host for host in hosts if host is not None]
    # Outside of any `except`: the context of an error may quote the password.
    if len(found) < len(hosts):
        raise ConfigurationError(_PROBLEM)
    return tuple(found)


def _host_of(address: str) -> Host | None:
    scheme, separator, rest = address.partition("://")
    scheme = {"opensearch": "http"}.get(scheme.lower(), scheme.lower()) if separator else "http"
    try:
        parts = urlsplit(f"{scheme}://{rest if separator else address}")
        port = parts.port
    except ValueError:
        return None
    if scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment:
        return None
    if any(character.isspace() for character in parts.netloc):
        return None
    auth = None
    if parts.username is not None or parts.password is not None:
        auth = unquote(parts.username or ""), unquote(parts.password or "")
    return Host(
        host=parts.hostname,
        port=_PORTS[scheme] if port is None else port,
        use_ssl=scheme == "https",
        url_prefix=parts.path.rstrip("/"),
        http_auth=auth,
    )


def place_of(hosts: tuple[Host, ...]) -> str:
    """Return the part of the addresses that messages show."""
    return ",".join(map(str, hosts))
