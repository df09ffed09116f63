"""The options of a connection to OpenSearch, in one frozen value."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict

from locus_memory._internal.options import check_fields, check_ranges
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["Auth", "OpenSearchKeywords", "OpenSearchOptions"]

Auth = tuple[str, str] | Callable[..., Any]
"""A user and a password, or a signer, such as `AWSV4SignerAsyncAuth` of opensearch-py."""

_PREFIX: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchOptions:
    """How to connect to an OpenSearch cluster, and what the names of the indexes begin with.

    Attributes:
        index_prefix: The prefix of every index; stores and checkpointers with different prefixes
            never meet. Lower-case letters, digits, `.`, `_` and `-`.
        shards: The number of shards of an index that is created. All of a namespace and all of a
            thread is in one of them.
        replicas: The number of replicas; `None`: one as soon as there is a second node.
        pool_size: How many connections an event loop opens to each node at most.
        http_auth: A user and a password, unless the URL has them, or a signer.
        verify_certs: Whether the certificate of the server is verified.
        ca_certs: A file or a folder of authorities; `None`: those of the system.
        client_cert: A file with the certificate of the client, and perhaps its key.
        client_key: A file with the key of the client.
        ssl_context: A context for TLS, in place of the four options before.
        connect_timeout: Seconds to open a connection; each of several nodes has its part of them.
        acquire_timeout: Seconds to wait for a connection that is free.
        command_timeout: Seconds for a request.
        retries: How often a request is sent again that the cluster refused because it is busy.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    index_prefix: str = "locus-"
    shards: int = 1
    replicas: int | None = None
    pool_size: int = 16
    http_auth: Auth | None = field(default=None, repr=False)
    verify_certs: bool = True
    ca_certs: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    ssl_context: ssl.SSLContext | None = None
    connect_timeout: float = 10.0
    acquire_timeout: float = 30.0
    command_timeout: float = 60.0
    retries: int = 6

    def __post_init__(self) -> None:
        check_fields(self)
        if not _PREFIX.fullmatch(self.index_prefix):
            raise ConfigurationError(
                "opensearch: index_prefix is 1 to 100 lower-case letters, digits, '.', '_' and "
                f"'-', and begins with a letter or a digit, not {quote(self.index_prefix)}"
            )
        seconds = ("connect_timeout", "acquire_timeout", "command_timeout")
        least = {"pool_size": 1, "shards": 1, "retries": 0, "replicas": 0}
        check_ranges("opensearch", self, least, positive=seconds)
        _check_auth(self.http_auth)
        if self.ssl_context is not None and not isinstance(self.ssl_context, ssl.SSLContext):
            raise ConfigurationError("opensearch: ssl_context is an ssl.SSLContext or None")


def _check_auth(auth: object) -> None:
    is_pair = isinstance(auth, tuple | list) and list(map(type, auth)) == [str, str]
    if auth is not None and not is_pair and not callable(auth):
        raise ConfigurationError(
            "opensearch: http_auth is a user and a password, a signer or None, not a "
            f"{type(auth).__name__}"
        )


class OpenSearchKeywords(TypedDict, total=False):
    """The same options by name."""

    index_prefix: str
    shards: int
    replicas: int | None
    pool_size: int
    http_auth: Auth | None
    verify_certs: bool
    ca_certs: str | None
    client_cert: str | None
    client_key: str | None
    ssl_context: ssl.SSLContext | None
    connect_timeout: float
    acquire_timeout: float
    command_timeout: float
    retries: int
