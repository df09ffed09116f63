"""The client of one event loop: its turns, its requests and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson
from typing_extensions import override

from locus_memory._internal.cancellation import finished
from locus_memory._internal.running.live import PoolUse
from locus_memory.backends.loops import LoopClient, Turns
from locus_memory.backends.opensearch.connection.driver import Client, abandon, close
from locus_memory.backends.opensearch.options import OpenSearchOptions

__all__ = ["OpenSearchClient"]

_IDLE: Final = 0.05
"""Seconds without a request after which the loop looks for connections that ended."""


class OpenSearchClient(LoopClient):
    """A client together with the event loop that its connections belong to.

    Made and used inside that loop. It is closed when the loop ends, at the latest.

    Args:
        client: The client.
        options: How long a request waits for its turn, and for an answer.
        owned: Whether the client is closed here.
        size: How many requests may be in progress.
        place: The name of the cluster in messages.
    """

    def __init__(
        self, client: Client, options: OpenSearchOptions, *, owned: bool, size: int, place: str
    ) -> None:
        self._client = client
        self._options = options
        turns = Turns(size, options.acquire_timeout, f"opensearch {place}")
        self._running: set[asyncio.Task[Any]] = set()
        super().__init__(turns, f"opensearch {place}", owned=owned)

    @override
    def use(self) -> PoolUse:
        """Return the use of the connections now; those that are idle are not counted."""
        return PoolUse(len(self._running), 0, self._turns.size, self._turns.waiting)

    async def send(
        self, method: str, path: str, params: Mapping[str, Any] | None, body: Any, *, again: bool
    ) -> Any:
        """Send a request and return the JSON of its answer.

        A caller that is cancelled waits for the end of a write: a write that lands after a later
        one, which was acknowledged, would undo it.

        Args:
            method: See `OpenSearchConnection.request`, as the others.
            path: Its path.
            params: The parameters of its query.
            body: Its body.
            again: Whether it does no harm to run it twice, or after its caller was cancelled.

        Raises:
            Exception: An error of the driver.
            BackendUnavailableError: No connection was free in time.
        """
        await self._turns.take()
        task = asyncio.ensure_future(self._perform(method, path, params, body))
        self._running.add(task)
        # Not in the task itself: where the loop ends, it may never begin.
        task.add_done_callback(self._end_turn)
        return await (task if again else finished(task))

    async def _perform(
        self, method: str, path: str, params: Mapping[str, Any] | None, body: Any
    ) -> Any:
        if self._loop.time() - self._used > _IDLE:
            # The first pass reads the sockets, the second runs the callbacks of those that ended.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        are_lines = isinstance(body, bytes)
        try:
            return await self._client.transport.perform_request(
                method,
                path,
                params=dict(params) if params else None,
                body=body if are_lines or body is None else orjson.dumps(body),
                # Or the driver takes the parameter `timeout`, which is the server's, for its own.
                timeout=self._options.command_timeout,
                headers={"content-type": f"application/{'x-ndjson' if are_lines else 'json'}"},
            )
        finally:
            self._used = self._loop.time()

    def _end_turn(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._turns.release()

    @override
    async def _shut(self) -> None:
        await close(self._client)

    def abandon(self) -> None:
        """Release the sockets of a client whose loop is closed, so that it cannot be awaited."""
        self._ended = True
        if self._owned:
            abandon(self._client)
