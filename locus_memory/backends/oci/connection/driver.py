"""The SDK of OCI: what is used of it, and nothing else. It is imported at the first client.

The SDK is 500 MB of files. `import oci` loads none of its services, and only its client of Object
Storage is loaded here. The code is checked without it.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from locus_memory._internal.providers.drivers import require
from locus_memory._internal.providers.oci_credentials import credentials
from locus_memory.backends.oci.options import OCIOptions
from locus_memory.errors import ConfigurationError

__all__ = [
    "About",
    "Client",
    "CutAnswerError",
    "Found",
    "Listed",
    "Page",
    "Place",
    "check_client",
    "client_factory",
    "close_client",
    "date_of",
    "delete_object",
    "get_namespace",
    "get_object",
    "host_of",
    "list_objects",
    "look_at",
    "put_object",
    "sdk",
]

PAGE: Final = 1000
"""The most names of one list."""

_UNTOLD: Final = frozenset({401, 403, 404, 405, 501})
"""The statuses where the user may not ask, there is no rule, or a compatible service has none."""


Client = Any
"""`oci.object_storage.ObjectStorageClient`, which has no types.

See https://docs.oracle.com/iaas/tools/python/.
"""


Place = tuple[str, str]
"""An Object Storage namespace, and a bucket in it."""

Listed = Any
"""An object of a list, with its `name` and its `size` in bytes."""

Page = Any
"""A page of a list: `objects`, and `next_start_with`, the name that begins the next page."""


class CutAnswerError(ConnectionError):
    """The body of an answer is shorter than announced."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object.

    Attributes:
        body: Its content.
        etag: Its entity tag, a new one with each write.
    """

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class About:
    """What a bucket is like, as far as the user may know it.

    Attributes:
        bucket: The answer of the service on the bucket, or `None`.
        retention: The rules that forbid to change objects.
        lifecycle: The rules that delete or archive objects.
    """

    bucket: Any
    retention: Sequence[Any]
    lifecycle: Sequence[Any]


def sdk() -> Any:
    """Return the SDK with its client of Object Storage.

    Raises:
        MissingDriverError: It is not installed.
    """
    require("oci.object_storage", "oci")
    return require("oci", "oci")


def check_client(client: object) -> None:
    """Refuse a client that is not one of Object Storage.

    Raises:
        ConfigurationError: It is something else.
    """
    if not isinstance(client, sdk().object_storage.ObjectStorageClient):
        raise ConfigurationError(
            "oci: client is an oci.object_storage.ObjectStorageClient, not a "
            f"{type(client).__module__}.{type(client).__qualname__}"
        )


def client_factory(options: OCIOptions) -> Callable[[], Client]:
    """Return a function that creates a client of its own for each thread.

    A client of the SDK closes the connections of all its threads when a condition fails, so threads
    do not share one.
    """
    oci = sdk()

    @cache
    def signing(process: int) -> tuple[dict[str, Any], Any]:
        # The clients share a signer, which may have to ask for a token; a fork has its own.
        del process
        return credentials(
            oci,
            authentication=options.authentication,
            config_file=options.config_file,
            profile=options.profile,
            region=options.region,
        )

    def make() -> Client:
        config, signer = signing(os.getpid())
        given: dict[str, Any] = {} if signer is None else {"signer": signer}
        if options.service_endpoint is not None:
            given["service_endpoint"] = options.service_endpoint.rstrip("/")
        return oci.object_storage.ObjectStorageClient(
            config,
            timeout=(options.connect_timeout, options.read_timeout),
            retry_strategy=oci.retry.NoneRetryStrategy(),
            # It would refuse requests for half a minute after some failures.
            circuit_breaker_strategy=oci.circuit_breaker.NoCircuitBreakerStrategy(),
            **given,
        )

    return make


def close_client(client: Client) -> None:
    """Close the connections of a client that was created here."""
    client.base_client.session.close()


def _options(**given: Any) -> dict[str, Any]:
    """Return the options of a call, which the SDK sends once: the retries are ours."""
    named = {name: value for name, value in given.items() if value is not None}
    return {"retry_strategy": sdk().retry.NoneRetryStrategy(), **named}


def get_namespace(client: Client) -> str:
    """Return the Object Storage namespace of the tenancy."""
    namespace: str = client.get_namespace(**_options()).data
    return namespace


def get_object(client: Client, place: Place, name: str, newer_than: str | None = None) -> Found:
    """Return an object.

    Args:
        client: The client.
        place: The bucket.
        name: The name of the object.
        newer_than: An entity tag; status 304 is the error if the object still has it.

    Raises:
        CutAnswerError: The connection ended within the body.
    """
    options = _options(if_none_match=newer_than)
    answer = client.get_object(*place, name, **options)
    body: bytes = answer.data.content
    length = answer.headers.get("content-length")
    if length is not None and int(length) != len(body):
        raise CutAnswerError(f"the answer has {len(body)} of {length} bytes")
    return Found(body, answer.headers["etag"])


def put_object(
    client: Client, place: Place, name: str, body: bytes, *, etag: str | None, is_new: bool
) -> str:
    """Write an object; return its new entity tag.

    Args:
        client: The client.
        place: The bucket.
        name: The name of the object.
        body: Its content.
        etag: The entity tag that it must have now; `None`: any.
        is_new: Whether it must not exist.
    """
    digest = hashlib.md5(body, usedforsecurity=False).digest()
    options = _options(
        if_match=etag,
        if_none_match="*" if is_new else None,
        # The signature does not cover the body.
        content_md5=base64.b64encode(digest).decode(),
        content_type="application/octet-stream",
    )
    answer = client.put_object(*place, name, body, **options)
    written: str = answer.headers["etag"]
    return written


def delete_object(client: Client, place: Place, name: str, etag: str | None) -> None:
    """Delete an object, if it has the entity tag; `None`: any."""
    client.delete_object(*place, name, **_options(if_match=etag))


def list_objects(
    client: Client, place: Place, prefix: str, *, start: str | None, end: str | None, limit: int
) -> Page:
    """Return a page of the objects whose names begin with the prefix.

    Args:
        client: The client.
        place: The bucket.
        prefix: The start of the names.
        start: The first possible name, or `None`.
        end: The first name behind the last possible one, or `None`.
        limit: At most this many objects, or one, and at most `PAGE`.
    """
    options = _options(
        prefix=prefix, start=start, end=end, limit=min(max(limit, 1), PAGE), fields="name,size"
    )
    return client.list_objects(*place, **options).data


def date_of(client: Client) -> float | None:
    """Return the time of the service, in seconds since the epoch; a refusal has it as well."""
    try:
        headers = client.get_namespace(**_options()).headers
    except sdk().exceptions.ServiceError as error:
        headers = error.headers or {}
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return None


def host_of(client: Client) -> tuple[str, bool]:
    """Return the host of the service, and whether the connection to it is encrypted."""
    parts = urlsplit(client.base_client.endpoint)
    return parts.hostname or "", parts.scheme == "https"


def look_at(client: Client, place: Place) -> About:
    """Return what a bucket is like; of what the user may not read, nothing."""

    def asked(ask: Callable[..., Any]) -> Any:
        try:
            return ask(*place, **_options()).data
        except sdk().exceptions.ServiceError as error:
            if error.status not in _UNTOLD:
                raise
            return None

    retention = asked(client.list_retention_rules)
    lifecycle = asked(client.get_object_lifecycle_policy)
    return About(
        asked(client.get_bucket),
        [] if retention is None else retention.items,
        [] if lifecycle is None else lifecycle.items,
    )
