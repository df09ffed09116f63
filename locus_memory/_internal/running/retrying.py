"""Repeated calls, with random waits between them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from locus_memory.errors import InvalidArgumentError, MemoryConflict, VersionConflictError

if TYPE_CHECKING:
    from tenacity import AsyncRetrying

__all__ = ["Patience", "until_first"]

_Result = TypeVar("_Result")

_ATTEMPTS: Final = 500
_LONGEST_WAIT: Final = 0.05
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a call is made, and how long to wait in between.

    Attributes:
        attempts: How often it is made, with the first call.
        longest_wait: At most this many seconds between two attempts. The wait is random, below a
            bound that doubles.
        passing: The errors after which it is made again; the last one is raised unchanged.
        sleep: Waits for a number of seconds.

    Raises:
        InvalidArgumentError: Fewer than 1 attempt, or a negative wait.
    """

    attempts: int
    longest_wait: float
    passing: tuple[type[Exception], ...]
    sleep: Callable[[float], Awaitable[None]]

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidArgumentError(f"attempts is at least 1, not {self.attempts}")
        if not self.longest_wait >= 0:
            raise InvalidArgumentError(f"longest_wait is at least 0, not {self.longest_wait}")

    def retrying(self, report: Callable[[BaseException | None, int], None]) -> AsyncRetrying:
        """Return tenacity's loop for one call.

        Args:
            report: Called before each wait, with the error and the number of the attempt.
        """
        # It takes 40 ms to import, and most programs never retry.
        from tenacity import (  # noqa: PLC0415
            AsyncRetrying,
            RetryCallState,
            retry_if_exception_type,
            stop_after_attempt,
        )
        from tenacity.wait import wait_random_exponential  # noqa: PLC0415

        def told(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            report(error, state.attempt_number)

        return AsyncRetrying(
            stop=stop_after_attempt(self.attempts),
            wait=wait_random_exponential(max=self.longest_wait),
            retry=retry_if_exception_type(self.passing),
            before_sleep=told,
            sleep=self.sleep,
            reraise=True,
        )


async def until_first(once: Callable[[], Awaitable[_Result]]) -> _Result:
    """Return the result of a change, which is planned again while other writers are first.

    Args:
        once: Reads what is there, and writes the change under the condition that it still is.

    Raises:
        VersionConflictError: Others were first 500 times.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return await once()
        except MemoryConflict:
            raise
        except VersionConflictError:
            # Other writers must not stay in step with this one.
            await asyncio.sleep(random.random() * _LONGEST_WAIT)  # noqa: S311 - no secret
    return await once()
