"""The settings of the web application, checked before a port is opened."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from locus_memory.errors import ConfigurationError
from locus_memory.store.item import Namespace, check_namespace

__all__ = ["DEFAULT_PORT", "Settings", "address_in", "is_loopback"]

DEFAULT_PORT: Final = 8484

_MEGABYTE: Final = 2**20
_SHORTEST: Final = 16
"""The fewest characters of a token."""

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_LAST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the web application.

    Attributes:
        host: The address to listen on; one that other machines reach needs a token.
        port: The port to listen on; 0: any free one.
        token: The bearer token that each request must show; `None`: none.
        read_only: Whether each request that could write is refused.
        allowed_hosts: Further names by which clients may address the server, without a port.
        namespace: The namespace of the agent's memories.
        documents: The namespace of the documents.
        max_body_bytes: The largest body of a request.
        database: The database's name on answers; it holds no password.

    Raises:
        ConfigurationError: A setting that cannot work, or a token is missing.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str | None = field(default=None, repr=False)
    read_only: bool = False
    allowed_hosts: tuple[str, ...] = ()
    namespace: Namespace = ("locus_memory",)
    documents: Namespace = ("documents",)
    max_body_bytes: int = 16 * _MEGABYTE
    database: str = ""

    def __post_init__(self) -> None:
        check_namespace(self.namespace)
        check_namespace(self.documents)
        if not self.host:
            raise ConfigurationError("the host is empty: give an address, such as 127.0.0.1")
        if not 0 <= self.port <= _LAST_PORT:
            raise ConfigurationError(f"a port is a number from 0 to 65535, not {self.port}")
        if self.max_body_bytes < 1:
            raise ConfigurationError("max_body_bytes is at least 1")
        self._check_token()

    def _check_token(self) -> None:
        if self.token is None:
            if not is_loopback(self.host):
                raise ConfigurationError(
                    f"other machines reach {self.host}: set a token with --token or "
                    "LOCUS_MEMORY_TOKEN, or listen on 127.0.0.1"
                )
        elif len(self.token) < _SHORTEST or not _TOKEN.fullmatch(self.token):
            # The token is a secret: it is not quoted.
            raise ConfigurationError(
                f"a token has at least {_SHORTEST} printable ASCII characters and no space"
            )


def is_loopback(host: str) -> bool:
    """Return whether a host name or address can only be this machine."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = address_in(name)
    return address is not None and address.is_loopback


def address_in(name: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is in digits; `None`: it is a name."""
    try:
        return ip_address(name)
    except ValueError:
        return None
