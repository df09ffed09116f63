"""The Redis backend: both contracts over one connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.base import Backend
from locus_memory.backends.redis.checkpoints import RedisCheckpointer, RedisCheckpointerOptions
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.connection.driver import Client
from locus_memory.backends.redis.store import RedisStore

__all__ = ["RedisBackend"]


class RedisBackend(Backend):
    """A store and a checkpointer in one Redis or Valkey, over one set of connections.

    Args:
        url: See `RedisConnection`.
        client: A client of redis-py's, or a `RedisConnection`, to use instead; it is then not
            closed here. The options of a `RedisConnection` that is shared hold.
        key_prefix: See `RedisConnection`.
        pool_size: See `RedisConnection`.
        cluster: See `RedisConnection`.
        connect_timeout: See `RedisConnection`.
        command_timeout: See `RedisConnection`.
        acquire_timeout: See `RedisConnection`.
        store_options: Options of `RedisStore`.
        checkpointer_options: Options of `RedisCheckpointer`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    provider = "redis"

    @checked
    def __init__(
        self,
        url: str | None = None,
        *,
        client: Client | RedisConnection | None = None,
        key_prefix: str = "locus:",
        pool_size: int = 16,
        cluster: bool | None = None,
        connect_timeout: float = 10.0,
        command_timeout: float | None = 60.0,
        acquire_timeout: float = 30.0,
        store_options: Mapping[str, Any] | None = None,
        checkpointer_options: RedisCheckpointerOptions | None = None,
    ) -> None:
        self._owned = not isinstance(client, RedisConnection)
        self._connection = (
            client
            if isinstance(client, RedisConnection)
            else RedisConnection(
                url,
                client=client,
                key_prefix=key_prefix,
                pool_size=pool_size,
                cluster=cluster,
                connect_timeout=connect_timeout,
                command_timeout=command_timeout,
                acquire_timeout=acquire_timeout,
            )
        )
        self._store = RedisStore(client=self._connection, **(store_options or {}))
        options: RedisCheckpointerOptions = checkpointer_options or {}
        self._checkpointer: RedisCheckpointer = RedisCheckpointer(
            client=self._connection, **options
        )

    @property
    @override
    def store(self) -> RedisStore:
        """The store."""
        return self._store

    @property
    @override
    def checkpointer(self) -> RedisCheckpointer:
        """The checkpointer."""
        return self._checkpointer

    @override
    async def open(self) -> None:
        """Connect now, rather than on first use."""
        await self._store.open()

    @override
    async def close(self) -> None:
        """End the connections, unless the connection was passed in."""
        await self._store.close()
        await self._checkpointer.close()
        if self._owned:
            await self._connection.close()
