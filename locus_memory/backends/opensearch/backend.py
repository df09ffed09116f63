"""The OpenSearch backend: both contracts over one connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.advice import Advice
from locus_memory.backends.base import ConnectedBackend
from locus_memory.backends.opensearch.advice import advise, outdated
from locus_memory.backends.opensearch.checkpoints import OpenSearchCheckpointer
from locus_memory.backends.opensearch.connection.connection import (
    OpenSearchConnection,
)
from locus_memory.backends.opensearch.connection.driver import Client
from locus_memory.backends.opensearch.options import OpenSearchKeywords, OpenSearchOptions
from locus_memory.backends.opensearch.store import OpenSearchStore
from locus_memory.checkpoint.chain import CheckpointerOptions

__all__ = ["OpenSearchBackend"]


class OpenSearchBackend(
    ConnectedBackend[OpenSearchConnection, OpenSearchStore, OpenSearchCheckpointer[Any]]
):
    """A store and a checkpointer in one OpenSearch cluster, over the same connections.

    Args:
        hosts: See `OpenSearchConnection`.
        client: A client of opensearch-py, or an `OpenSearchConnection`, to use instead; the backend
            does not close it.
        options: How to connect, and the prefix of the indexes; ignored with a connection.
        store_options: Options of `OpenSearchStore`.
        checkpointer_options: Options of `OpenSearchCheckpointer`.
        **keywords: The fields of `OpenSearchOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
    """

    provider = "opensearch"

    @checked
    def __init__(
        self,
        hosts: str | None = None,
        *,
        client: Client | OpenSearchConnection | None = None,
        options: OpenSearchOptions | None = None,
        store_options: Mapping[str, Any] | None = None,
        checkpointer_options: CheckpointerOptions[Any] | None = None,
        **keywords: Unpack[OpenSearchKeywords],
    ) -> None:
        self._connect(
            OpenSearchConnection, OpenSearchOptions, hosts, options, keywords, client=client
        )
        self._store = OpenSearchStore(
            client=self._connection, **(store_options or dict[str, Any]())
        )
        self._checkpointer = OpenSearchCheckpointer(
            client=self._connection, **(checkpointer_options or CheckpointerOptions[Any]())
        )

    @override
    async def advice(self) -> list[Advice]:
        return await advise(self._connection)

    @override
    async def outdated(self) -> list[Advice]:
        return await outdated(self._connection)
