"""The client of one event loop: its turns, its requests and its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from locus_memory._internal.cancellation import finished
from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.backends.loops import until_the_loop_ends
from locus_memory.backends.opensearch.connection.driver import Client, abandon, close
from locus_memory.errors import BackendUnavailableError

__all__ = ["LONGEST_CLOSE", "LoopClient", "Request"]

LONGEST_CLOSE: Final = 10.0
"""Seconds that closing waits for the requests in progress."""

_IDLE: Final = 0.05
"""Seconds without a request after which the loop looks for connections that ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to the cluster.

    Attributes:
        method: `GET`, `POST`, `PUT` or `DELETE`. aiohttp sends a `PUT` or `DELETE` again by
            itself, so a write that must not run twice is a `POST`.
        path: Its path, percent-encoded.
        params: The parameters of its query.
        body: JSON, or lines of JSON.
        lines: Whether the body is lines of JSON.
        again: Whether it does no harm to run it twice, or after its caller was cancelled.
    """

    method: str
    path: str
    params: Mapping[str, Any] | None = None
    body: Any = None
    lines: bool = False
    again: bool = False

    def content(self) -> bytes | str | None:
        """Return the body as it is sent."""
        if self.body is None or isinstance(self.body, bytes | str):
            return self.body
        return orjson.dumps(self.body)


class LoopClient:
    """A client together with the event loop that its connections belong to.

    Made and used inside that loop. It is closed when the loop ends, at the latest.

    Args:
        client: The client.
        owned: Whether it is closed here.
        turns: How many requests may be in progress.
        acquire_timeout: Seconds that a request waits for its turn.
        command_timeout: Seconds that the cluster has for an answer.
        place: The name of the cluster in messages.
    """

    def __init__(
        self,
        client: Client,
        *,
        owned: bool,
        turns: int,
        acquire_timeout: float,
        command_timeout: float,
        place: str,
    ) -> None:
        self._client = client
        self._owned = owned
        self._turns = asyncio.Semaphore(turns)
        self._size = turns
        self._acquire_timeout = acquire_timeout
        self._command_timeout = command_timeout
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._used = self._loop.time()
        self._ended = False
        self._guard = until_the_loop_ends(self._end)
        self._busy = self._waiting = 0
        POOLS.add(self, f"opensearch {place}")

    def use(self) -> PoolUse:
        """Return the use of the connections now; those that are idle are not counted."""
        return PoolUse(self._busy, 0, self._size, self._waiting)

    async def start(self) -> None:
        """Let the loop know that there is something to close."""
        await anext(self._guard)

    async def send(self, request: Request) -> Any:
        """Send a request and return the JSON of its answer.

        A caller that is cancelled waits for the end of a write: a write that lands after a later
        one, which was acknowledged, would undo it.

        Raises:
            Exception: An error of the driver.
            BackendUnavailableError: No connection was free in time.
        """
        await self._wait_for_turn()
        if request.again:
            try:
                return await self._perform(request)
            finally:
                self._end_turn()
        task = asyncio.ensure_future(self._perform(request))
        # Not in the task itself: where the loop ends, it may never begin.
        task.add_done_callback(lambda _: self._end_turn())
        return await finished(task)

    async def _perform(self, request: Request) -> Any:
        if self._loop.time() - self._used > _IDLE:
            # The first pass reads the sockets, the second runs the callbacks of those that ended.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        kind = "application/x-ndjson" if request.lines else "application/json"
        try:
            return await self._client.transport.perform_request(
                request.method,
                request.path,
                params=dict(request.params) if request.params else None,
                body=request.content(),
                # Or the driver takes the parameter `timeout`, which is the server's, for its own.
                timeout=self._command_timeout,
                headers={"content-type": kind},
            )
        finally:
            self._used = self._loop.time()

    def _end_turn(self) -> None:
        self._busy -= 1
        self._turns.release()

    async def _wait_for_turn(self) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(self._acquire_timeout):
                await self._turns.acquire()
        except TimeoutError:
            raise BackendUnavailableError(
                f"opensearch {self._place}: all {self._size} connections stayed busy for "
                f"{self._acquire_timeout:g} s; raise pool_size"
            ) from None
        finally:
            self._waiting -= 1
        self._busy += 1

    def has_ended(self) -> bool:
        """Return whether the client is closed, since its loop ended or it was told to."""
        return self._ended

    async def close(self) -> None:
        """Wait for the requests in progress, but not for ever, and close the client."""
        if self._ended:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_CLOSE):
                for _ in range(self._size):
                    await self._turns.acquire()
        if not self._ended:
            await self._guard.aclose()

    async def _end(self) -> None:
        self._ended = True
        if self._owned:
            await close(self._client)

    def abandon(self) -> None:
        """Release the sockets of a client whose loop is closed, so that it cannot be awaited."""
        self._ended = True
        if self._owned:
            abandon(self._client)
