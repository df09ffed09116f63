"""The options of a connection to Object Storage, in one frozen value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypedDict, get_args
from urllib.parse import urlsplit

from locus_memory._internal.options import check_fields, check_ranges
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["Authentication", "OCIKeywords", "OCIOptions"]

Authentication = Literal["api_key", "security_token", "instance_principal", "resource_principal"]
"""How requests are signed."""

_PREFIX: Final = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)+")
_LONGEST_PREFIX: Final = 64
_OURS: Final = {"items", "threads", "packs"}
"""The folders below a prefix; in the prefix itself they would mix the data of two prefixes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OCIOptions:
    """How to connect to Object Storage, and the prefix of the objects' names.

    Attributes:
        prefix: The folder of all objects; stores and checkpointers with different prefixes never
            meet. A `/` at its end is added.
        authentication: `"api_key"` and `"security_token"` read a profile of the configuration
            file; `"instance_principal"` and `"resource_principal"` need none.
        config_file: The configuration file; `None`: the SDK's default, `~/.oci/config`.
        profile: The profile in that file; `None`: `DEFAULT`.
        region: The region, such as `eu-frankfurt-1`; `None`: that of the profile or principal.
        service_endpoint: The URL of the service, in place of the region's.
        pool_size: How many requests of an event loop there are at the same time, each in a thread.
        connect_timeout: Seconds to wait for a connection.
        read_timeout: Seconds to wait for the next bytes of an answer.
        acquire_timeout: Seconds to wait while there are as many requests.
        attempts: How often a request is sent at most.
        retry_seconds: No attempt starts later than this many seconds after the first.

    Raises:
        ConfigurationError: An option is invalid.
    """

    prefix: str = "locus/"
    authentication: Authentication = "api_key"
    config_file: str | None = None
    profile: str | None = None
    region: str | None = None
    service_endpoint: str | None = None
    pool_size: int = 16
    connect_timeout: float = 10.0
    read_timeout: float = 60.0
    acquire_timeout: float = 30.0
    attempts: int = 6
    retry_seconds: float = 60.0

    def __post_init__(self) -> None:
        check_fields(self)
        prefix = self.prefix if self.prefix.endswith("/") else f"{self.prefix}/"
        object.__setattr__(self, "prefix", prefix)
        _check_prefix(prefix)
        seconds = ("connect_timeout", "read_timeout", "acquire_timeout")
        least = {"pool_size": 1, "attempts": 1, "retry_seconds": 0}
        choices = {"authentication": get_args(Authentication)}
        check_ranges("oci", self, least, positive=seconds, one_of=choices)
        if self.service_endpoint is not None:
            _check_endpoint(self.service_endpoint)


def _check_prefix(prefix: str) -> None:
    if not _PREFIX.fullmatch(prefix) or len(prefix) > _LONGEST_PREFIX:
        raise ConfigurationError(
            f"oci: prefix is at most {_LONGEST_PREFIX} letters, digits, '-', '_' and '.', in "
            f"folders separated by '/', not {quote(prefix)}"
        )
    reserved = _OURS.intersection(prefix.split("/"))
    if reserved:
        raise ConfigurationError(
            f"oci: prefix has the folder {min(reserved)!r}, which the library uses itself"
        )


def _check_endpoint(endpoint: str) -> None:
    """Refuse an endpoint that the SDK refuses only at the first request."""
    try:
        parts = urlsplit(endpoint)
        is_right = parts.scheme in {"http", "https"} and bool(parts.hostname)
        is_right = is_right and parts.path in {"", "/"} and (parts.port or 1) > 0
    except ValueError:
        is_right = False
    else:
        is_right = is_right and not (parts.query or parts.fragment or "@" in parts.netloc)
    if not is_right:
        raise ConfigurationError(
            "oci: service_endpoint is a URL such as "
            "'https://objectstorage.eu-frankfurt-1.oraclecloud.com', without user and path"
        )


class OCIKeywords(TypedDict, total=False):
    """The same options by name."""

    prefix: str
    authentication: Literal["api_key", "security_token", "instance_principal", "resource_principal"]
    config_file: str | None
    profile: str | None
    region: str | None
    service_endpoint: str | None
    pool_size: int
    connect_timeout: float
    read_timeout: float
    acquire_timeout: float
    attempts: int
    retry_seconds: float
