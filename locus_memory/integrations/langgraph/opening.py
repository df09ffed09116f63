"""Opening and closing of the adapters, with `async with` and with `with`, and their sweepers.

LangGraph's stores have a sweeper of expired items, which the stores of the library do not need: an
expired item is immediately invisible, and the database or the store removes it. Programs that start
and stop the sweeper keep working: the results of its methods are available at once, and may also be
awaited, as LangGraph's asynchronous stores require.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from locus_memory.sync import blocking

__all__ = ["NoSweeper", "Number", "Opened", "Sweeping"]


class Opened:
    """An object that opens on first use or on request; `a` means async, as in LangGraph."""

    async def aopen(self) -> None:
        """Connect and set up now, rather than on first use."""

    async def aclose(self) -> None:
        """Release the resources that were opened here; calling it again is harmless."""

    def close(self) -> None:
        """Do what `aclose` does."""
        blocking(self).aclose()

    async def __aenter__(self) -> Self:
        await self.aopen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        blocking(self).aopen()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Done:
    """What is available at once, and may be awaited."""

    def __await__(self) -> Generator[None, None, Self]:
        yield from ()
        return self


class Number(_Done, int):
    """A number that may be awaited."""


class NoSweeper(_Done, Future[None]):
    """A future that is done, and may be awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.set_result(None)


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
