"""A wrapper that retries when an endpoint fails temporarily."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential
from typing_extensions import override

from locus_memory.errors import InvalidArgumentError
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
        InvalidArgumentError: Fewer than 1 attempt.
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
        if attempts < 1:
            raise InvalidArgumentError(f"attempts is at least 1, not {attempts}")
        self._attempts = attempts
        self._longest_wait = longest_wait
        self._passing = passing
        self._sleep = sleep

    @override
    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> Sequence[Sequence[float]]:
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._attempts),
            wait=wait_random_exponential(max=self._longest_wait),
            retry=retry_if_exception_type(self._passing),
            before_sleep=self._report,
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(self.inner.embed, texts, kind=kind)

    def _report(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        emit("embedder.retried", error=error, embedder=self.name, attempt=state.attempt_number)
