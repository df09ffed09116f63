"""What is opened and closed, by hand or by `async with`."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from locus_memory.errors import ConfigurationError

__all__ = ["Resource"]


class Resource:
    """Something that opens on first use, or when told to, and that whoever made it closes."""

    async def open(self) -> None:
        """Connect and set up now, rather than on first use."""

    async def close(self) -> None:
        """Release what was opened here; calling it again is harmless."""

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except ConfigurationError:
            # What cannot be used is not tried again, and it may be connected already.
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
