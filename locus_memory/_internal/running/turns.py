"""Turns: one call after another, whichever event loops and threads they come from."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import asynccontextmanager

__all__ = ["Turns"]


class Turns:
    """A line of calls, in the order in which they came; an `asyncio.Lock` serves one loop alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Future[None] | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for the calls before this one; those after it wait until the block ends."""
        own = Future[None]()
        with self._lock:
            before, self._last = self._last, own
        try:
            if before is not None:
                await asyncio.shield(asyncio.wrap_future(before))
        except BaseException:
            # Whoever gives up passes the turn on when it comes.
            if before is not None:
                before.add_done_callback(lambda _: own.set_result(None))
            raise
        try:
            yield
        finally:
            own.set_result(None)
