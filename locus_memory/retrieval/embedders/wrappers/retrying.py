"""A wrapper that retries when an endpoint fails temporarily."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from typing_extensions import override

from locus_memory._internal.running.retrying import Patience
from locus_memory.events import emit
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.wrappers.base import EmbedderWrapper

__all__ = ["RetryingEmbedder"]

_PASSING: Final[tuple[type[Exception], ...]] = (ConnectionError, TimeoutError)
"""`ModelUnavailableError` is a `ConnectionError`."""


class RetryingEmbedder(EmbedderWrapper):
    """A wrapper that retries when the inner embedder cannot be reached, is overloaded or too slow.

    Between two attempts it waits a random time, up to a bound that doubles. The event
    `embedder.retried` reports each failure; the last error is raised unchanged.

    Args:
        embedder: The inner embedder.
        attempts: How often it is called, with the first call.
        longest_wait: At most this many seconds between two attempts.
        passing: The temporary errors; by default connection errors and timeouts.
        sleep: Waits for a number of seconds.

    Raises:
        InvalidArgumentError: Fewer than 1 attempt, or a negative wait.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        attempts: int = 4,
        longest_wait: float = 20.0,
        passing: tuple[type[Exception], ...] = _PASSING,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(embedder)
        self._patience = Patience(attempts, longest_wait, passing, sleep)

    @override
    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> Sequence[Sequence[float]]:
        return await self._patience.retrying(self._report)(self.inner.embed, texts, kind=kind)

    def _report(self, error: BaseException | None, attempt: int) -> None:
        emit("embedder.retried", error=error, embedder=self.name, attempt=attempt)
