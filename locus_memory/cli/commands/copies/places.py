"""The two databases of a copy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from locus_memory.cli.options.session import Session
from locus_memory.inspection.errors import CommandError, UsageError

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["Place", "run_with"]

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Place:
    """A database of a copy.

    Attributes:
        url: A provider string.
        must_exist: Whether a missing file is an error.
    """

    url: str
    must_exist: bool

    def check(self) -> None:
        """Refuse a database that is not there.

        Raises:
            UsageError: The URL is invalid, or names data of this process alone.
            CommandError: The database does not exist.
        """
        session = Session(self.url, as_json=False)
        address, _ = session.resolve()
        if address.provider == "memory" or address.hint == ":memory:":
            raise UsageError(f"{self.url} ends with this command: name a database that stays")
        path = session.path
        if self.must_exist and path is not None and not path.exists():
            raise CommandError(f"no database at {address}")


def run_with(
    source: Place, target: Place, work: Callable[[Backend, Backend], Awaitable[Answer]]
) -> Answer:
    """Open two databases, do the work and close them.

    Raises:
        UsageError: A URL is invalid, or both name the same database.
        CommandError: A database does not exist.
    """
    import asyncio  # noqa: PLC0415 - help must be quick

    source.check()
    target.check()
    _refuse_same(source, target)
    return asyncio.run(_run(source, target, work))


def _refuse_same(source: Place, target: Place) -> None:
    one, other = Session(source.url, as_json=False), Session(target.url, as_json=False)
    same_path = one.path is not None and other.path is not None
    if source.url == target.url or (
        same_path and one.path.resolve() == other.path.resolve()  # type: ignore[union-attr] # it is no None
    ):
        raise UsageError("--from and --to are the same database")


async def _run(
    source: Place, target: Place, work: Callable[[Backend, Backend], Awaitable[Answer]]
) -> Answer:
    from locus_memory.registry import open_backend  # noqa: PLC0415 - help must be quick

    async with AsyncExitStack() as stack:
        opened: list[Backend] = []
        for place in (source, target):
            backend = open_backend(place.url)
            # A backend that failed to open may still hold resources.
            stack.push_async_callback(backend.close)
            await backend.open()
            opened.append(backend)
        return await work(*opened)
