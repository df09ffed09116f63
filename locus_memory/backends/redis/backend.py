"""The Redis backend: both contracts over one connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.advice import Advice
from locus_memory.backends.base import ConnectedBackend
from locus_memory.backends.redis.advice import advise
from locus_memory.backends.redis.checkpoints import RedisCheckpointer, RedisCheckpointerOptions
from locus_memory.backends.redis.connection.connection import (
    Client,
    RedisConnection,
)
from locus_memory.backends.redis.items.former import record_of
from locus_memory.backends.redis.options import RedisKeywords, RedisOptions
from locus_memory.backends.redis.remains import find_remains, rewrite_files
from locus_memory.backends.redis.store import RedisStore
from locus_memory.backends.remains import ByteSearch, Place
from locus_memory.errors import BackendError
from locus_memory.events import emit

__all__ = ["RedisBackend"]


class RedisBackend(ConnectedBackend[RedisConnection, RedisStore, RedisCheckpointer[Any]]):
    """A store and a checkpointer in one Redis or Valkey, over the same connections.

    Args:
        url: See `RedisConnection`.
        client: A client of redis-py, or a `RedisConnection`, to use instead; the backend does not
            close it.
        options: How to connect, and the prefix of the keys; ignored with a `RedisConnection`.
        store_options: Options of `RedisStore`.
        checkpointer_options: Options of `RedisCheckpointer`.
        **keywords: The fields of `RedisOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
    """

    provider = "redis"

    @checked
    def __init__(
        self,
        url: str | None = None,
        *,
        client: Client | RedisConnection | None = None,
        options: RedisOptions | None = None,
        store_options: Mapping[str, Any] | None = None,
        checkpointer_options: RedisCheckpointerOptions | None = None,
        **keywords: Unpack[RedisKeywords],
    ) -> None:
        self._connect(RedisConnection, RedisOptions, url, options, keywords, client=client)
        self._store = RedisStore(client=self._connection, **(store_options or dict[str, Any]()))
        self._checkpointer = RedisCheckpointer(
            client=self._connection, **(checkpointer_options or RedisCheckpointerOptions())
        )

    @override
    async def advice(self) -> list[Advice]:
        return await advise(self._connection)

    @override
    async def outdated(self) -> list[Advice]:
        if not await record_of(self._connection):
            return []
        return [
            Advice(
                "redis.redisearch",
                "an earlier version of the library keeps texts or vectors in RediSearch: the first "
                "use moves them into the library's own indexes",
                "make a backup, stop the processes with the earlier version, and use it",
            )
        ]

    @override
    async def compact(self) -> None:
        """Erase deleted words from the keys, and let the server rewrite its files."""
        await super().compact()
        try:
            await rewrite_files(self._connection)
        except (BackendError, TimeoutError) as error:
            # Managed servers do this by themselves, sooner or later.
            emit("redis.not_rewritten", error=error)

    @override
    async def remains(self, search: ByteSearch) -> list[Place]:
        limits = "they keep deleted data until they are rewritten or expire"
        return [
            *await find_remains(self._connection, search),
            Place(name="replicas and backups", how="not read", limit=limits),
        ]
