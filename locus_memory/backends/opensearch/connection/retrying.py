"""Attempts of a request: how many, and how long the pauses are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception
from tenacity.wait import wait_random_exponential

from locus_memory.backends.opensearch.connection.driver import retry_after
from locus_memory.backends.opensearch.connection.driver_errors import was_never_sent
from locus_memory.events import emit

__all__ = ["Retrying"]

T = TypeVar("T")

_LONGEST_PAUSE: Final = 20.0
"""Seconds; a cluster that asks for a longer pause is unavailable."""

_BACKOFF: Final = wait_random_exponential(multiplier=0.1, max=5)


class Retrying:
    """Repeats what failed.

    Args:
        place: The name of the cluster in events.
        retries: How often it is repeated at most.
        nodes: The number of nodes; a request that found no connection is sent to each.
    """

    def __init__(self, place: str, *, retries: int, nodes: int) -> None:
        self._place = place
        self._retries = retries
        self._nodes = nodes

    async def run(
        self, attempt: Callable[[], Awaitable[T]], is_worth: Callable[[BaseException], bool]
    ) -> T:
        """Return the result of the first attempt that succeeds.

        Args:
            attempt: What to do.
            is_worth: Whether another attempt is worth it after an error.

        Raises:
            Exception: The error of the last attempt.
        """
        try:
            return await attempt()
        except Exception as error:
            if not is_worth(error):
                raise
            failures = [error]

        async def repeated() -> T:
            # Tenacity comes in after a failure only: it takes as long as a request.
            if failures:
                raise failures.pop()
            return await attempt()

        retrying = AsyncRetrying(
            retry=retry_if_exception(is_worth),
            stop=self._is_enough,
            wait=_pause,
            before_sleep=self._report,
            reraise=True,
        )
        return await retrying(repeated)

    def _is_enough(self, state: RetryCallState) -> bool:
        error = _error_of(state)
        most = self._retries
        if error is not None:
            if (retry_after(error) or 0) > _LONGEST_PAUSE:
                return True
            if was_never_sent(error):
                most = min(most, self._nodes)
        return state.attempt_number > most

    def _report(self, state: RetryCallState) -> None:
        error = _error_of(state)
        if isinstance(error, Exception):
            emit("opensearch.retry", error=error, place=self._place, attempt=state.attempt_number)


def _error_of(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()


def _pause(state: RetryCallState) -> float:
    """Return the seconds until the next attempt: those that the server wants, or more each time."""
    error = _error_of(state)
    wanted = None if error is None else retry_after(error)
    return _BACKOFF(state) if wanted is None else wanted
