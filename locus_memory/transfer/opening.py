"""The backend of an argument: one that is open already, or that of a provider string."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from locus_memory.backends.base import Backend

__all__ = ["opened"]


@asynccontextmanager
async def opened(backend: str | Backend) -> AsyncGenerator[Backend]:
    """Yield an open backend; the one of a provider string is closed afterwards."""
    if isinstance(backend, Backend):
        await backend.open()
        yield backend
        return
    from locus_memory.registry import open_backend  # noqa: PLC0415 - it imports the backends

    async with open_backend(backend) as opened:
        yield opened
