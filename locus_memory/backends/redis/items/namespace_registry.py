"""The registry of namespaces: one sorted set of their paths.

On a single server, the scripts that write items also keep the registry up to date. On a cluster the
registry is on another server than most items. There a namespace is registered before its first item
is written, and once more afterwards, each time with a new mark. A namespace that was found empty is
removed from the registry only if it still has the mark it had before the check.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.lua import script

__all__ = ["PAGE", "Registry"]

PAGE: Final = 1000
"""The number of namespaces that are listed at once."""


class Registry:
    """The registry of a store.

    Args:
        connection: The connection to the server.
    """

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self.name = connection.key("namespaces")
        # A name in braces has the same slot as the name itself.
        self._marks = b"{%s}:marks" % self.name

    async def page(self, low: bytes, high: str | None) -> list[bytes]:
        """Return the first paths from `low` up to, but without, `high`."""
        start = b"[" + low if low else b"-"
        stop = b"+" if high is None else b"(" + high.encode()
        command = ("ZRANGEBYLEX", self.name, start, stop, "LIMIT", 0, PAGE)
        paths: list[bytes] = await self._connection.execute(*command, again=True)
        return paths

    async def add(self, path: bytes) -> None:
        """Register a namespace of a cluster, with a new mark."""
        keys = [self.name, self._marks]
        await self._connection.run(script("register"), keys, [path, secrets.token_bytes(8)])

    async def marks(self, paths: Sequence[bytes]) -> list[bytes]:
        """Return the marks of namespaces; empty for a namespace without a mark."""
        if not paths:
            return []
        found = await self._connection.execute("HMGET", self._marks, *paths, again=True)
        return [mark or b"" for mark in found]

    async def forget(self, path: bytes, mark: bytes) -> None:
        """Unregister a namespace of a cluster, unless it was registered again since."""
        await self._connection.run(script("forget"), [self.name, self._marks], [path, mark])
