"""The methods of LangGraph's TTL sweeper, which the stores of the library do not need.

An expired item is immediately invisible, and the database or the store removes it. Programs that
start and stop the sweeper of LangGraph's stores keep working: the results of these methods are
available at once, and may also be awaited, as LangGraph's asynchronous stores require.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Self

__all__ = ["NoSweeper", "Number", "Sweeping"]


class Number(int):
    """A number that may be awaited."""

    def __await__(self) -> Generator[None, None, Self]:
        yield from ()
        return self


class NoSweeper(Future[None]):
    """A future that is done, and may be awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.set_result(None)

    def __await__(self) -> Generator[None, None, Self]:
        yield from ()
        return self


class Sweeping:
    """The methods of a TTL sweeper, which do nothing: expired items need no sweeper."""

    def sweep_ttl(self) -> Number:
        """Return 0, the number of items left to delete; may be awaited."""
        return Number(0)

    def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> NoSweeper:
        """Return a future that is done; may be awaited."""
        del sweep_interval_minutes
        return NoSweeper()

    def stop_ttl_sweeper(self, timeout: float | None = None) -> Number:
        """Return 1, which means true: no sweeper runs; may be awaited."""
        del timeout
        return Number(1)
