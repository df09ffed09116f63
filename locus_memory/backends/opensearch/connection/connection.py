"""One OpenSearch cluster, shared by any number of tasks and event loops."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, Unpack

import orjson
from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory._internal.resource import warn_unless_closed
from locus_memory.backends.base import SharedConnection
from locus_memory.backends.loops import LoopLocal, PerLoop
from locus_memory.backends.opensearch.connection.address import hosts_of, place_of
from locus_memory.backends.opensearch.connection.client import LONGEST_CLOSE, LoopClient, Request
from locus_memory.backends.opensearch.connection.driver import (
    Client,
    make_client,
    tls_context,
)
from locus_memory.backends.opensearch.connection.driver_errors import (
    FAILURES,
    IndexLostError,
    described_item,
    error_of,
    is_index_lost,
    is_lost,
    is_refused,
    is_refused_item,
    status_of,
    translated,
    was_never_sent,
)
from locus_memory.backends.opensearch.connection.opening import Maker, probe
from locus_memory.backends.opensearch.connection.retrying import Retrying
from locus_memory.backends.opensearch.options import OpenSearchKeywords, OpenSearchOptions
from locus_memory.backends.opensearch.schema import Features, Index
from locus_memory.errors import (
    BackendCorruptError,
    BackendUnavailableError,
    ConfigurationError,
    LocusMemoryError,
)
from locus_memory.events import emit

__all__ = ["Item", "OpenSearchConnection", "connection_for"]

T = TypeVar("T")

Item = dict[str, Any]
"""The answer to one operation of a bulk request: `status`, `_id`, `_seq_no`, perhaps `error`."""


@dataclass(slots=True)
class _Writes:
    """The writes to an index, and how many of them the last refresh has shown to searches."""

    count: int = 0
    shown: int = 0


_writes: Final[defaultdict[tuple[str, str], _Writes]] = defaultdict(_Writes)
"""By cluster and index, for all connections of this process."""


class OpenSearchConnection(SharedConnection):
    """An OpenSearch cluster that any number of tasks and event loops share.

    It connects on first use, and again after a node went away. Each event loop has a client with
    connections of its own.

    A request that the cluster refused because it is busy (429) is sent again after a pause, which
    the header `Retry-After` may set. A request that found no connection is sent to another node.
    A request whose connection broke is sent again only if it says that this does no harm.

    Args:
        hosts: `host`, `host:port` or a URL, with a user and a password if necessary; several are
            separated by commas. `localhost:9200` by default.
        client: An `AsyncOpenSearch` to use instead, in its own event loop; it is never closed
            here. It may send a request twice on its own, unless it was made with `max_retries=0`.
        options: How to connect, and what the indexes begin with.
        **keywords: The fields of `OpenSearchOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option that cannot work.

    Attributes:
        place: The name of the cluster in messages.
        options: The options.
        plain_hosts: The nodes to which connections are not encrypted; none are known of a client
            that was passed in.
    """

    @checked
    def __init__(
        self,
        hosts: str | None = None,
        *,
        client: Client | None = None,
        options: OpenSearchOptions | None = None,
        **keywords: Unpack[OpenSearchKeywords],
    ) -> None:
        self.options = Keywords(self, keywords).all_into(OpenSearchOptions, options=options)
        self._hosts = hosts_of(hosts)
        if self.options.http_auth is not None and any(host.http_auth for host in self._hosts):
            raise ConfigurationError(
                "opensearch: the user is given twice, in the address and as http_auth"
            )
        self._given = client
        self.place = place_of(self._hosts) if client is None else _place_of(client)
        self.plain_hosts = [
            host.host for host in self._hosts if client is None and not host.use_ssl
        ]
        uses_tls = client is None and any(host.use_ssl for host in self._hosts)
        self._context = tls_context(self.options) if uses_tls else None
        self._clients: PerLoop[LoopClient] = PerLoop(
            f"opensearch {self.place}", None if client is None else "pass addresses"
        )
        self._retrying = Retrying(self.place, retries=self.options.retries, nodes=len(self._hosts))
        self._features: Features | None = None
        self._ready: set[str] = set()
        self._generations: dict[str, int] = {}
        self._lock = threading.Lock()
        self._making: LoopLocal[asyncio.Lock] = LoopLocal()
        self._refreshing: LoopLocal[asyncio.Lock] = LoopLocal()
        if client is None:
            warn_unless_closed(self, f"opensearch {self.place}", self._clients.is_open)

    @property
    def trusts_all(self) -> bool:
        """Whether TLS is used, and the certificate of the cluster is not verified."""
        return self._context is not None and self._context.verify_mode is ssl.CERT_NONE

    @property
    def features(self) -> Features:
        """The features of the cluster; those of an unknown one before the connection is open."""
        return self._features or Features()

    def index(self, index: Index) -> str:
        """Return the name of an index in requests, which is an alias."""
        return self.options.index_prefix + index.suffix

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        ignore: Collection[int] = (),
        again: bool = False,
    ) -> Any:
        """Send a request and return the JSON of the answer.

        Args:
            method: See `Request`: a write that must not run twice is a `POST`.
            path: Its path, percent-encoded.
            body: JSON, or its bytes.
            params: The parameters of its query.
            ignore: The statuses of refusals whose JSON is returned. An index that does not exist
                is an error all the same.
            again: Whether it does no harm to run it twice, or after its caller was cancelled.

        Raises:
            BackendError: See `locus_memory.errors`.
            ConfigurationError: The user or the password is refused, or lacks a right.
        """
        sent = Request(method=method, path=path, params=params, body=body, again=again)
        with translated(self.place):
            try:
                return await self._patiently(sent)
            except FAILURES as error:
                if is_index_lost(error) or status_of(error) not in ignore:
                    raise
                return dict(error_of(error))

    async def bulk(
        self, lines: Sequence[bytes], index: Index, *, again: bool = False
    ) -> list[Item]:
        """Send operations in one request and return the answer to each, in order.

        An operation that a busy cluster refused is sent again with the others that it refused.

        Args:
            lines: The lines of the request: an action, then perhaps its document.
            index: The index of operations that name none.
            again: As for `request`.

        Returns:
            An answer for each operation; one that failed has an `error`, see `refusal`.

        Raises:
            BackendError: See `locus_memory.errors`; some operations may have run.
            BackendCorruptError: The index does not exist.
        """
        operations = _operations(lines)
        answers: list[Item] = [{} for _ in operations]
        left = list(range(len(operations)))

        async def attempt() -> None:
            nonlocal left
            found = await self._bulk([operations[place] for place in left], index, again=again)
            for place, item in zip(left, found, strict=True):
                answers[place] = item
            left = [place for place in left if is_refused_item(answers[place])]
            if left:
                raise self.refusal(answers[left[0]])

        try:
            await self._retrying.run(attempt, lambda _: bool(left))
        except LocusMemoryError:
            if not left or any(not item for item in answers):
                raise
        for item in answers:
            if "error" in item and isinstance(refusal := self.refusal(item), IndexLostError):
                raise refusal
        return answers

    async def _bulk(self, operations: list[bytes], index: Index, *, again: bool) -> list[Item]:
        sent = Request(
            method="POST",
            path=f"/{self.index(index)}/_bulk",
            params={"require_alias": "true", "timeout": "10s"},
            body=b"".join(operations),
            lines=True,
            again=again,
        )
        with translated(self.place):
            answer = await self._patiently(sent)
        return [item for each in answer["items"] for item in each.values()]

    async def mget(self, wanted: Sequence[Mapping[str, Any]], index: Index) -> list[Item]:
        """Return documents by their ids in one request, as they are now, in order.

        If a shard is about to start, for example that of a new index, it is asked again.

        Args:
            wanted: The `_id` and the `routing` of each, perhaps `_source`.
            index: The index.

        Returns:
            An answer for each; `found` tells whether there is a document.

        Raises:
            BackendError: See `locus_memory.errors`.
            BackendCorruptError: The index does not exist.
        """
        path = f"/{self.index(index)}/_mget"
        is_starting = False

        async def attempt() -> list[Item]:
            nonlocal is_starting
            is_starting = False
            answer = await self.request("POST", path, {"docs": wanted}, again=True)
            docs: list[Item] = answer["docs"]
            for found in docs:
                if "error" in found:
                    is_starting = True
                    raise self.refusal(found)
            return docs

        return await self._retrying.run(
            attempt, lambda error: is_starting and isinstance(error, BackendUnavailableError)
        )

    def refusal(self, item: Item) -> LocusMemoryError:
        """Return the error of an operation of a bulk request that failed."""
        return described_item(item, self.place)

    async def ensure(self, index: Index) -> None:
        """Create an index or bring it up to date, once for each connection.

        Raises:
            BackendError: See `locus_memory.errors`.
            ConfigurationError: The user may not create it, or a newer library made it.
        """
        name = self.index(index)
        self._check_open()
        if name in self._ready:
            return
        async with self._making.get(asyncio.Lock):
            if name not in self._ready:
                await self.open()
                await self._maker().make(name, index)
                self._ready.add(name)

    def _maker(self) -> Maker:
        shards, replicas = self.options.shards, self.options.replicas
        return Maker(self.request, self.place, self.features, shards=shards, replicas=replicas)

    async def version(self, index: Index) -> int:
        """Return the version of an index, which is only read; 0 if it is not there or not ours.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        return await self._maker().version(self.index(index))

    async def with_index(self, index: Index, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `work` on an index, which exists before.

        If somebody deleted the index meanwhile, its data is lost, and the call says so. The next
        call starts with an empty one.

        Raises:
            BackendCorruptError: The index was deleted.
            BackendError: See `ensure`, or the error of `work`.
        """
        await self.ensure(index)
        try:
            return await work()
        except IndexLostError as error:
            raise self.forget(index) from error

    def forget(self, index: Index) -> BackendCorruptError:
        """Return the error of an index that somebody deleted; the next call creates it again."""
        name = self.index(index)
        with self._lock:
            self._generations[name] = self.generation(index) + 1
            self._ready.discard(name)
        emit("opensearch.index_lost", place=self.place, index=name)
        return BackendCorruptError(
            f"opensearch {self.place}: the index {name} was deleted, with all of its data; the "
            "next call starts with an empty one"
        )

    def generation(self, index: Index) -> int:
        """Return how often the index was found to be deleted."""
        return self._generations.get(self.index(index), 0)

    def dirty(self, index: Index) -> None:
        """Note a write to an index, acknowledged or not, for `refresh_if_dirty`."""
        with self._lock:
            self._written(index).count += 1

    async def refresh_if_dirty(self, index: Index) -> None:
        """Let searches see the writes of this process to an index.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        writes = self._written(index)
        count = writes.count
        if writes.shown >= count:
            return
        async with self._refreshing.get(asyncio.Lock):
            count = max(count, writes.count)
            if writes.shown < count:
                await self.refresh(index)
                writes.shown = max(writes.shown, count)

    async def refresh(self, index: Index) -> None:
        """Let searches see all writes to an index, by whatever process.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        await self.request("POST", f"/{self.index(index)}/_refresh", again=True)

    def _written(self, index: Index) -> _Writes:
        return _writes[self.features.cluster or self.place, self.index(index)]

    @override
    async def open(self) -> None:
        """Connect, and ask for the features of the cluster, now rather than on first use.

        Raises:
            BackendUnavailableError: It cannot be reached.
            ConfigurationError: It refuses the user or the password.
            BackendClosedError: After `close`.
        """
        self._check_open()
        if self._features is None:
            self._features = await probe(self.request, self.place)

    def _check_open(self) -> None:
        if self._clients.is_closed:
            raise self._clients.refusal()

    @override
    async def close(self) -> None:
        """Finish the requests in progress and end the connections; a second call is harmless."""
        await self._clients.close(LONGEST_CLOSE)

    async def _patiently(self, request: Request) -> Any:
        return await self._retrying.run(
            partial(self._attempt, request), lambda error: self._is_worth_another(error, request)
        )

    def _is_worth_another(self, error: BaseException, request: Request) -> bool:
        if self._clients.is_closed or not isinstance(error, FAILURES):
            return False
        return is_refused(error) or was_never_sent(error) or (request.again and is_lost(error))

    async def _attempt(self, request: Request) -> Any:
        here = self._clients.here() or await self._clients.opened(self._open_client)
        try:
            return await here.send(request)
        except FAILURES as error:
            if self._clients.is_closed:
                raise self._clients.refusal() from error
            raise

    async def _open_client(self) -> LoopClient:
        client = self._given or make_client(self._hosts, self.options, self._context)
        here = LoopClient(
            client,
            owned=self._given is None,
            turns=self.options.pool_size * len(self._hosts),
            acquire_timeout=self.options.acquire_timeout,
            command_timeout=self.options.command_timeout,
            place=self.place,
        )
        await here.start()
        return here


def _operations(lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines of each operation, in one text each: its action, and perhaps a document."""
    operations: list[bytes] = []
    rest = iter(lines)
    for action in rest:
        has_document = "delete" not in orjson.loads(action)
        operations.append(action + b"\n" + (next(rest) + b"\n" if has_document else b""))
    return operations


def _place_of(client: object) -> str:
    if not isinstance(client, Client):
        raise ConfigurationError(
            "opensearch: client is an opensearchpy.AsyncOpenSearch, not a "
            f"{type(client).__module__}.{type(client).__qualname__}"
        )
    hosts: list[Mapping[str, Any]] = client.transport.hosts
    return ",".join(f"{each.get('host', 'localhost')}:{each.get('port', 9200)}" for each in hosts)


def connection_for(
    hosts: str | None, client: Client | OpenSearchConnection | None, options: OpenSearchOptions
) -> tuple[OpenSearchConnection, bool]:
    """Return the connection to use, and whether the caller owns it and has to close it.

    Args:
        hosts: See `OpenSearchConnection`.
        client: A client of opensearch-py, or a connection to share.
        options: How to connect; ignored if `client` is a connection.
    """
    if isinstance(client, OpenSearchConnection):
        return client, False
    return OpenSearchConnection(hosts, client=client, options=options), True
