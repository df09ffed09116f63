"""Opening and closing of the adapters, with `async with` and with `with`."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from locus_memory.sync import blocking

__all__ = ["Opened"]


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
