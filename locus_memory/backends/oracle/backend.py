"""The Oracle backend: both contracts over the connections of one pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.advice import Advice
from locus_memory.backends.base import ConnectedBackend
from locus_memory.backends.oracle.advice import advise, outdated
from locus_memory.backends.oracle.checkpoints import OracleCheckpointer
from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.backends.oracle.connection.driver import Pool
from locus_memory.backends.oracle.items.queries import LOST_VECTORS
from locus_memory.backends.oracle.options import OracleKeywords, OracleOptions
from locus_memory.backends.oracle.store import OracleStore
from locus_memory.checkpoint.chain import CheckpointerOptions

__all__ = ["OracleBackend"]


class OracleBackend(ConnectedBackend[OraclePool, OracleStore, OracleCheckpointer[Any]]):
    """A store and a checkpointer in one schema of a database, over the same connections.

    Args:
        dsn: See `OraclePool`.
        pool: A pool of oracledb, or an `OraclePool`, to use instead; it is not closed here.
        options: How to connect, and where the tables are; ignored with an `OraclePool`.
        store_options: Options of `OracleStore`.
        checkpointer_options: Options of `OracleCheckpointer`.
        **keywords: The fields of `OracleOptions` by name, in place of `options`.
    """

    provider = "oracle"

    @checked
    def __init__(
        self,
        dsn: str | None = None,
        *,
        pool: Pool | OraclePool | None = None,
        options: OracleOptions | None = None,
        store_options: Mapping[str, Any] | None = None,
        checkpointer_options: CheckpointerOptions | None = None,
        **keywords: Unpack[OracleKeywords],
    ) -> None:
        self._connect(OraclePool, OracleOptions, dsn, options, keywords, pool=pool)
        self._store = OracleStore(pool=self._connection, **(store_options or dict[str, Any]()))
        self._checkpointer = OracleCheckpointer(
            pool=self._connection, **(checkpointer_options or CheckpointerOptions())
        )

    @override
    async def problems(self) -> list[str]:
        """Return the number of lost vectors, which a search does not detect."""
        await self._connection.open()
        if not self._connection.features.has_vectors:
            return []
        ((lost,),) = await self._connection.fetch(LOST_VECTORS, {})
        return [f"oracle: items without their vector: {lost}"] if lost else []

    @override
    async def advice(self) -> list[Advice]:
        return await advise(self._connection)

    @override
    async def outdated(self) -> list[Advice]:
        return await outdated(self._connection)
