"""Reads that are repeated when the database cannot be reached, for any backend."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from locus_memory._internal.running.retrying import Patience
from locus_memory.errors import BackendUnavailableError
from locus_memory.events import emit
from locus_memory.store.base import BaseStore
from locus_memory.store.batches import as_names
from locus_memory.store.item import Namespace
from locus_memory.store.wrappers.base import READS, StoreWrapper

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["RetryingStore"]


class RetryingStore(StoreWrapper):
    """A store that repeats what is safe to repeat when the database cannot be reached.

    These are the reads and `open`. A write is made once, because after `BackendUnavailableError`
    nobody knows whether it was done:

    - An unconditional `put` that is repeated may overwrite a later write of another process, and
      counts two versions.
    - A `put` with `if_version` that was done loses against itself. If another process deleted the
      item meanwhile, `if_version=0` brings it back.
    - A `delete` that is repeated may delete an item that was put again, and returns False.

    The caller decides what a lost write means. It can read the item, and write again with the
    version that it read.

    Between two attempts it waits a random time, up to a bound that doubles. The event
    `store.retried` reports each failure; the last error is raised unchanged.

    Args:
        store: The inner store, a backend that has one, or a provider string.
        attempts: How often a verb is called, with the first call.
        longest_wait: At most this many seconds between two attempts.
        sleep: Waits for a number of seconds.

    Raises:
        InvalidArgumentError: Fewer than 1 attempt, or a negative wait.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        *,
        attempts: int = 4,
        longest_wait: float = 5.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._patience = Patience(attempts, longest_wait, (BackendUnavailableError,), sleep)
        super().__init__(store)

    @override
    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        # An iterator can be read once.
        return await super().get_batch(as_names(keys))

    @override
    async def _call(self, verb: str, /, *args: Any, **kwargs: Any) -> Any:
        if verb not in (*READS, "open"):
            return await super()._call(verb, *args, **kwargs)

        def report(error: BaseException | None, attempt: int) -> None:
            emit("store.retried", error=error, verb=verb, attempt=attempt)

        return await self._patience.retrying(report)(super()._call, verb, *args, **kwargs)
