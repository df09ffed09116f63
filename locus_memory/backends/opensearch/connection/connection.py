"""One OpenSearch cluster, shared by any number of tasks and event loops."""

from __future__ import annotations

import asyncio
import random
import ssl
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory._internal.resource import warn_unless_closed
from locus_memory.backends.base import SharedConnection
from locus_memory.backends.loops import LONGEST_CLOSE, LoopLocal, PerLoop
from locus_memory.backends.opensearch.connection.address import hosts_of, place_of
from locus_memory.backends.opensearch.connection.client import OpenSearchClient
from locus_memory.backends.opensearch.connection.driver import (
    Client,
    make_client,
    place_of_client,
    retry_after,
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
from locus_memory.backends.opensearch.connection.opening import make_index, probe, version_of
from locus_memory.backends.opensearch.options import OpenSearchKeywords, OpenSearchOptions
from locus_memory.backends.opensearch.schema import Features, Index
from locus_memory.errors import (
    BackendCorruptError,
    BackendUnavailableError,
    ConfigurationError,
    LocusMemoryError,
)
from locus_memory.events import emit

__all__ = ["Item", "OpenSearchConnection"]

T = TypeVar("T")

_CONFLICT: Final = 409

_PAUSE: Final = 0.1
_LONGEST_BACKOFF: Final = 5.0
"""The longest pause before the second attempt, and before any, in seconds; the pause is random."""

_LONGEST_PAUSE: Final = 20.0
"""Seconds; a cluster that asks for a longer pause is unavailable."""

_MOST_NAMES: Final = 1_000
_MOST_BYTES: Final = 4_000_000
"""About the most operations and bytes of one request; the server takes 100 MB by default."""

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
        self.place = place_of(self._hosts) if client is None else place_of_client(client)
        self.plain_hosts = [
            host.host for host in self._hosts if client is None and not host.use_ssl
        ]
        uses_tls = client is None and any(host.use_ssl for host in self._hosts)
        self._context = tls_context(self.options) if uses_tls else None
        self._clients: PerLoop[OpenSearchClient] = PerLoop(
            f"opensearch {self.place}", None if client is None else "pass addresses"
        )
        self._features: Features | None = None
        # Of each index that is there, the lengths of vectors that it has fields for.
        self._ready: dict[str, set[int]] = {}
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
            method: `GET`, `POST`, `PUT` or `DELETE`. aiohttp sends a `PUT` or `DELETE` again by
                itself, so a write that must not run twice is a `POST`.
            path: Its path, percent-encoded.
            body: JSON, or the bytes of lines of JSON.
            params: The parameters of its query.
            ignore: The statuses of refusals whose JSON is returned. An index that does not exist
                is an error all the same.
            again: Whether it does no harm to run it twice, or after its caller was cancelled.

        Raises:
            BackendError: See `locus_memory.errors`.
            ConfigurationError: The user or the password is refused, or lacks a right.
        """
        with translated(self.place):
            for attempt in count():
                try:
                    return await self._attempt(method, path, params, body, again=again)
                except FAILURES as error:
                    if not is_index_lost(error) and status_of(error) in ignore:
                        return dict(error_of(error))
                    if not await self._may_repeat(error, attempt, self._most(error, again=again)):
                        raise
        return None

    def _most(self, error: BaseException, *, again: bool) -> int:
        """Return how often a request is repeated after an error."""
        is_worth = is_refused(error) or (again and is_lost(error))
        if was_never_sent(error):
            return min(self.options.retries, len(self._hosts))
        return self.options.retries if is_worth else 0

    async def _may_repeat(self, error: Exception, attempt: int, most: int) -> bool:
        """Return whether there is another attempt, after the pause that comes before it."""
        wanted = retry_after(error)
        if attempt >= most or (wanted or 0) > _LONGEST_PAUSE or self._clients.is_closed:
            return False
        emit("opensearch.retry", error=error, place=self.place, attempt=attempt + 1)
        longest = min(_PAUSE * 2.0**attempt, _LONGEST_BACKOFF)
        await asyncio.sleep(random.uniform(0, longest) if wanted is None else wanted)  # noqa: S311 - no secret
        return True

    async def _attempt(self, *request: Any, again: bool) -> Any:
        here = self._clients.here() or await self._clients.opened(self._open_client)
        try:
            return await here.send(*request, again=again)
        except FAILURES as error:
            if self._clients.is_closed:
                raise self._clients.refusal() from error
            raise

    async def on(
        self,
        index: Index,
        path: str,
        body: Any = None,
        *,
        method: str = "POST",
        params: Mapping[str, Any] | None = None,
        ignore: Collection[int] = (),
        again: bool = True,
    ) -> Any:
        """Send a request to an index, which exists before, and return the JSON of the answer.

        If somebody deleted the index meanwhile, its data is lost, and the call says so. The next
        call starts with an empty one.

        Args:
            index: The index.
            path: The path behind its name.
            body: As for `request`.
            method: As for `request`.
            params: As for `request`.
            ignore: As for `request`.
            again: As for `request`.

        Raises:
            BackendCorruptError: The index was deleted.
            BackendError: See `ensure` and `request`.
        """
        await self.ensure(index)
        try:
            return await self.request(
                method,
                f"/{self.index(index)}/{path}",
                body,
                params=params,
                ignore=ignore,
                again=again,
            )
        except IndexLostError as error:
            raise self._forget(index) from error

    async def bulk(
        self, operations: Sequence[bytes], index: Index, *, again: bool = False
    ) -> list[Item]:
        """Send operations in as few requests as possible, and return the answer to each, in order.

        An operation that a busy cluster refused is sent again with the others that it refused.

        Args:
            operations: The lines of each: an action, then perhaps its document.
            index: The index.
            again: Whether it does no harm to run them twice. If not, those are sent again that
                lost against another writer: they are scripts, which have not run.

        Returns:
            An answer for each operation; one that failed has an `error`, see `refusal`.

        Raises:
            BackendError: See `locus_memory.errors`; some operations may have run.
            BackendCorruptError: The index was deleted.
        """

        async def send(wanted: Sequence[bytes]) -> list[Item]:
            params = {"require_alias": "true", "timeout": "10s"}
            body = b"".join(wanted)
            answer = await self.on(index, "_bulk", body, params=params, again=again)
            return [item for each in answer["items"] for item in each.values()]

        def is_passing(item: Item) -> bool:
            return is_refused_item(item) or (item["status"] == _CONFLICT and not again)

        answers: list[Item] = []
        for part in _parts(operations):
            answers += await self._each(send, part, is_passing)
        for item in answers:
            if isinstance(error := self.refusal(item), IndexLostError):
                raise self._forget(index) from error
        return answers

    async def mget(self, wanted: Sequence[Mapping[str, Any]], index: Index) -> list[Item]:
        """Return documents by their ids, as they are now, in order.

        If a shard is about to start, for example that of a new index, it is asked again.

        Args:
            wanted: The `_id` and the `routing` of each, perhaps `_source`.
            index: The index.

        Returns:
            An answer for each; `found` tells whether there is a document.

        Raises:
            BackendError: See `locus_memory.errors`.
            BackendCorruptError: The index was deleted.
        """

        async def send(some: Sequence[Mapping[str, Any]]) -> list[Item]:
            docs: list[Item] = (await self.on(index, "_mget", {"docs": some}))["docs"]
            return docs

        def is_passing(item: Item) -> bool:
            return isinstance(self.refusal(item), BackendUnavailableError)

        answers: list[Item] = []
        for start in range(0, len(wanted), _MOST_NAMES):
            answers += await self._each(send, wanted[start : start + _MOST_NAMES], is_passing)
        for error in filter(None, map(self.refusal, answers)):
            raise self._forget(index) if isinstance(error, IndexLostError) else error
        return answers

    async def _each(
        self,
        send: Callable[[Sequence[T]], Awaitable[list[Item]]],
        wanted: Sequence[T],
        is_passing: Callable[[Item], bool],
    ) -> list[Item]:
        """Return the answer to each part of a request; what is refused for a moment is repeated."""
        answers = await send(wanted)
        for attempt in count():
            left = [place for place, item in enumerate(answers) if is_passing(item)]
            error = self.refusal(answers[left[0]]) if left else None
            if error is None or not await self._may_repeat(error, attempt, self.options.retries):
                break
            try:
                found = await send([wanted[place] for place in left])
            except BackendUnavailableError:
                # What the others answered is known.
                break
            for place, item in zip(left, found, strict=True):
                answers[place] = item
        return answers

    def refusal(self, item: Item) -> LocusMemoryError | None:
        """Return the error of a part of a request; `None`: it did not fail."""
        return described_item(item, self.place) if "error" in item else None

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
                await make_index(self.request, self.place, self.features, self.options, index)
                self._ready[name] = set()

    async def version(self, index: Index) -> int:
        """Return the version of an index, which is only read; 0 if it is not there or not ours.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        return await version_of(self.request, self.place, self.index(index))

    def _forget(self, index: Index) -> BackendCorruptError:
        """Return the error of an index that somebody deleted; the next call creates it again."""
        name = self.index(index)
        self._ready.pop(name, None)
        emit("opensearch.index_lost", place=self.place, index=name)
        return BackendCorruptError(
            f"opensearch {self.place}: the index {name} was deleted, with all of its data; the "
            "next call starts with an empty one"
        )

    def dimensions(self, index: Index) -> set[int]:
        """Return the lengths of vectors that the index is known to have fields for, to be kept."""
        return self._ready.get(self.index(index), set())

    def dirty(self, index: Index) -> None:
        """Note a write to an index, acknowledged or not, for `refresh_if_dirty`."""
        with self._lock:
            self._written(index).count += 1

    async def refresh_if_dirty(self, index: Index) -> None:
        """Let searches see the writes of this process to an index.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        await self.ensure(index)
        writes = self._written(index)
        if writes.shown < writes.count:
            async with self._refreshing.get(asyncio.Lock):
                count = writes.count
                if writes.shown < count:
                    await self.refresh(index)
                    writes.shown = max(writes.shown, count)

    async def refresh(self, index: Index) -> None:
        """Let searches see all writes to an index, by whatever process.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        await self.on(index, "_refresh")

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

    async def _open_client(self) -> OpenSearchClient:
        client = self._given or make_client(self._hosts, self.options, self._context)
        here = OpenSearchClient(
            client,
            self.options,
            owned=self._given is None,
            size=self.options.pool_size * len(self._hosts),
            place=self.place,
        )
        await here.start()
        return here


def _parts(operations: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yield operations in parts that fit into one request."""
    part: list[bytes] = []
    size = 0
    for each in operations:
        if part and (len(part) >= _MOST_NAMES or size + len(each) > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += len(each)
    if part:
        yield part
