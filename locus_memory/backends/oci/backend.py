"""The Object Storage backend: both contracts over one connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.advice import Advice
from locus_memory.backends.base import ConnectedBackend
from locus_memory.backends.oci.advice import advise
from locus_memory.backends.oci.checkpoints import OCICheckpointer
from locus_memory.backends.oci.connection.connection import OCIConnection
from locus_memory.backends.oci.connection.driver import Client
from locus_memory.backends.oci.options import OCIKeywords, OCIOptions
from locus_memory.backends.oci.store import OCIStore
from locus_memory.checkpoint.chain import CheckpointerOptions

__all__ = ["OCIBackend"]


class OCIBackend(ConnectedBackend[OCIConnection, OCIStore, OCICheckpointer[Any]]):
    """A store and a checkpointer in one bucket of Object Storage, over the same threads.

    Args:
        bucket: `bucket`, `bucket/namespace`, or `oci://bucket@namespace`.
        client: An `ObjectStorageClient` of the SDK, or an `OCIConnection`, to use instead; the
            backend does not close it.
        options: How to connect, and the prefix of the names; ignored with an `OCIConnection`.
        store_options: Options of `OCIStore`.
        checkpointer_options: Options of `OCICheckpointer`.
        **keywords: The fields of `OCIOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
        MissingDriverError: The SDK is not installed.
    """

    provider = "oci"

    @checked
    def __init__(
        self,
        bucket: str | None = None,
        *,
        client: Client | OCIConnection | None = None,
        options: OCIOptions | None = None,
        store_options: Mapping[str, Any] | None = None,
        checkpointer_options: CheckpointerOptions[Any] | None = None,
        **keywords: Unpack[OCIKeywords],
    ) -> None:
        self._connect(OCIConnection, OCIOptions, bucket, options, keywords, client=client)
        self._store = OCIStore(client=self._connection, **(store_options or dict[str, Any]()))
        self._checkpointer = OCICheckpointer(
            client=self._connection, **(checkpointer_options or CheckpointerOptions[Any]())
        )

    @override
    async def advice(self) -> list[Advice]:
        return await advise(self._connection)

    @override
    async def open(self) -> None:
        """Connect now, rather than at the first use; the requests are billed, so it is one."""
        await self._connection.open()
