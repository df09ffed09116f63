"""The client of opensearch-py, made so that it adds no retries and keeps `Retry-After`."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson
from opensearchpy import (
    AIOHttpConnection,
    AsyncHttpConnection,
    AsyncOpenSearch,
    ConnectionError,  # noqa: A004 - the driver's name
    ConnectionTimeout,
    JSONSerializer,
    SerializationError,
    TransportError,
)
from typing_extensions import override

from locus_memory.backends.loops import sever
from locus_memory.backends.opensearch.connection.address import Host
from locus_memory.backends.opensearch.options import OpenSearchOptions
from locus_memory.errors import ConfigurationError

__all__ = [
    "Client",
    "abandon",
    "close",
    "make_client",
    "place_of_client",
    "retry_after",
    "tls_context",
]

Client = AsyncOpenSearch

_REFUSALS: Final = range(400, 600)

_LARGE: Final = 2**20
"""The bytes of a body from which aiohttp warns that sending it holds up the event loop."""

_KEPT_ALIVE: Final = 60.0
"""Seconds that an idle connection stays open."""

_FRESH: Final = 5.0
"""Seconds for which one of several nodes that answered is taken for one that answers."""

_DEAD: Final = 5.0
"""Seconds that a node is avoided after its connection failed; doubled each time."""


class _Connector(aiohttp.TCPConnector):
    """A pool of connections with a limit on the time that opening one takes."""

    def __init__(self, *, connect_timeout: float, **options: Any) -> None:
        super().__init__(**options)
        self._connect_timeout = connect_timeout

    @override
    async def connect(self, req: Any, traces: Any, timeout: aiohttp.ClientTimeout) -> Any:
        bounded = aiohttp.ClientTimeout(total=timeout.total, sock_connect=self._connect_timeout)
        return await super().connect(req, traces, bounded)


class _Session:
    """A session of aiohttp that sends large bodies without a warning."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def request(self, method: str, url: Any, *, data: bytes | None = None, **options: Any) -> Any:
        """Send a request, as the session does."""
        is_large = data is not None and len(data) > _LARGE
        body = BytesIO(data) if data is not None and is_large else data
        return self._session.request(method, url, data=body, **options)


class _Answers(AIOHttpConnection):
    """The connections to one node; an error keeps the header `Retry-After`.

    One of several nodes is greeted if it has not answered for a while. So a request is not sent to
    one that is silent, and goes to the next one, also a write that must not run twice.
    """

    def __init__(
        self,
        *args: Any,
        node_connections: int,
        connect_timeout: float,
        is_one_of_several: bool,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._node_connections = node_connections
        self._connect_timeout = connect_timeout
        self._fresh_until = -math.inf if is_one_of_several else math.inf

    @override
    async def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        loop = asyncio.get_running_loop()
        if loop.time() > self._fresh_until:
            await self._greet()
        answer = await super().perform_request(
            method, url, params, body, timeout, _REFUSALS, headers
        )
        self._fresh_until = max(self._fresh_until, loop.time() + _FRESH)
        status, answered, data = answer
        if status in _REFUSALS and status not in ignore:
            try:
                self._raise_error(status, data, answered.get("content-type"))
            except TransportError as error:
                vars(error)["retry_after"] = _seconds(answered.get("retry-after"))
                raise
        return answer

    async def _greet(self) -> None:
        """Raise the error of a node that cannot be reached, unless it answers."""
        try:
            await super().perform_request("HEAD", "/", None, None, self._connect_timeout, _REFUSALS)
        except ConnectionTimeout as error:
            silent = aiohttp.ConnectionTimeoutError("no answer to a greeting")
            raise ConnectionError("N/A", str(silent), silent) from error

    @override
    async def _create_aiohttp_session(self) -> None:
        session = aiohttp.ClientSession(
            headers=self.headers,
            skip_auto_headers=("accept", "accept-encoding"),
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=_Connector(
                connect_timeout=self._connect_timeout,
                limit=self._node_connections,
                keepalive_timeout=_KEPT_ALIVE,
                ssl=True if self._ssl_context is None else self._ssl_context,
            ),
        )
        wrapped: Any = _Session(session)
        self.session = wrapped


class _SignedAnswers(_Answers, AsyncHttpConnection):
    """The same, for a signer of requests."""


class _Serializer(JSONSerializer):
    """JSON by orjson."""

    @override
    def loads(self, s: str) -> Any:
        try:
            return orjson.loads(s)
        except ValueError as error:
            raise SerializationError(s, error) from error


def make_client(
    hosts: Sequence[Host], options: OpenSearchOptions, context: ssl.SSLContext | None
) -> Client:
    """Return a new client, which connects when it is used and never sends a request twice.

    Args:
        hosts: The nodes.
        options: How to connect.
        context: The context for TLS.
    """
    auth = options.http_auth
    secrets: dict[str, Any] = {"http_auth": auth, "ssl_context": context}
    given = [{name: value for name, value in asdict(each).items() if value} for each in hosts]
    return AsyncOpenSearch(
        hosts=given,
        connection_class=_SignedAnswers if callable(auth) else _Answers,
        serializer=_Serializer(),
        max_retries=0,
        retry_on_status=(),
        dead_timeout=_DEAD,
        timeout=options.command_timeout,
        node_connections=options.pool_size,
        connect_timeout=options.connect_timeout / len(hosts),
        is_one_of_several=len(hosts) > 1,
        **{name: value for name, value in secrets.items() if value is not None},
    )


def tls_context(options: OpenSearchOptions) -> ssl.SSLContext:
    """Return the context for TLS.

    Raises:
        ConfigurationError: A file of certificates or keys cannot be used.
    """
    if options.ssl_context is not None:
        return options.ssl_context
    try:
        given = options.ca_certs
        is_folder = given is not None and Path(given).is_dir()
        context = ssl.create_default_context(
            cafile=None if is_folder else given, capath=given if is_folder else None
        )
        if options.client_cert is not None:
            context.load_cert_chain(options.client_cert, options.client_key)
    except OSError as error:
        raise ConfigurationError(
            "opensearch: ca_certs, client_cert or client_key cannot be used: "
            f"{error.strerror or type(error).__name__}"
        ) from error
    if not options.verify_certs:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def place_of_client(client: object) -> str:
    """Return the part of the addresses of a client that messages show.

    Raises:
        ConfigurationError: It is no client of opensearch-py.
    """
    if not isinstance(client, Client):
        raise ConfigurationError(
            "opensearch: client is an opensearchpy.AsyncOpenSearch, not a "
            f"{type(client).__module__}.{type(client).__qualname__}"
        )
    hosts: list[Mapping[str, Any]] = client.transport.hosts
    return ",".join(f"{each.get('host', 'localhost')}:{each.get('port', 9200)}" for each in hosts)


def retry_after(error: BaseException) -> float | None:
    """Return the seconds after which the server wants a request again, if it told."""
    seconds: float | None = getattr(error, "retry_after", None)
    return seconds


def _seconds(header: str | None) -> float | None:
    """Return the seconds of a `Retry-After`, which is a number or a date."""
    if header is None:
        return None
    if header.strip().isdigit():
        return float(header)
    try:
        until = parsedate_to_datetime(header)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def _connections(client: Client) -> list[Any]:
    """Return the connections to each node, also to those that are avoided now."""
    transport: Any = client.transport
    return list(getattr(transport, "seed_connections", ()))


async def close(client: Client) -> None:
    """Close a client and its connections; its own `close` leaves those to avoided nodes open."""
    await client.close()
    for connection in _connections(client):
        await connection.close()


def abandon(client: Client) -> None:
    """Close the sockets of a client whose event loop is closed."""
    for connection in _connections(client):
        session, connection.session = connection.session, None
        if session is None:
            continue
        connector: Any = session.connector
        session.detach()
        held = [protocol for idle in connector._conns.values() for protocol, _ in idle]  # noqa: SLF001 - nothing public lists them
        for protocol in (*held, *connector._acquired):  # noqa: SLF001 - as above
            sever(protocol.transport)
        connector._conns.clear()  # noqa: SLF001 - or it warns of what is closed by now
