"""The primary that sentinels name, asked each time a connection is made."""

from __future__ import annotations

import asyncio
from typing import Any

from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool
from typing_extensions import override

from locus_memory.backends.redis.connection.address import RedisAddress

__all__ = ["sentinel_pool"]


class _Sentinels(Sentinel):
    """Sentinels that are connected to while they are asked, so that none is left to be closed.

    Each has its part of the time. The one that answered is the first to be asked the next time.
    """

    def __init__(self, address: RedisAddress, options: dict[str, Any]) -> None:
        super().__init__([])  # type: ignore[no-untyped-call]
        self._hosts = address.hosts
        self._options = options

    @override
    async def discover_master(self, service_name: str) -> tuple[str, int]:
        for host in self._hosts:
            asked = Sentinel([host], sentinel_kwargs=self._options)  # type: ignore[no-untyped-call]
            try:
                async with asyncio.timeout(self._options["socket_connect_timeout"]), asked:
                    found: tuple[str, int] = await asked.discover_master(service_name)
            except (MasterNotFoundError, TimeoutError):
                continue
            self._hosts = [host, *(each for each in self._hosts if each != host)]
            return found
        # Outside of any `except`: the driver's own words may quote what is secret.
        raise MasterNotFoundError("no sentinel knows a primary of this service that is up")


def sentinel_pool(address: RedisAddress, options: dict[str, Any]) -> SentinelConnectionPool:
    """Return what makes connections to the primary of a service.

    Args:
        address: The sentinels and the service.
        options: The driver's options of the connections to the primary.
    """
    theirs = {**address.sentinels, "retry": options["retry"], "protocol": options["protocol"]}
    theirs |= {name: options[name] for name in options if name.startswith("socket_")}
    if theirs.pop("connection_class", None) is SSLConnection:
        theirs["ssl"] = True
    own: dict[str, Any] = {**parse_url(address.urls[0]), **options}
    own["ssl"] = own.pop("connection_class", None) is SSLConnection
    for name in ("host", "port"):
        own.pop(name, None)
    return SentinelConnectionPool(address.service, _Sentinels(address, theirs), **own)  # type: ignore[no-untyped-call]
