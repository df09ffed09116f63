"""The OpenSearch backend: OpenSearch 2 and 3, and the services of clouds that speak its protocol.

A write is one request. A search sees every write that this process made before it. Checkpoints do
not depend on searches: a thread is one document, which names those of its records.

Read `backend.py` and `store.py` first, then `connection/`, `schema.py`, `items/` and `search/`;
`checkpoints.py` and `threads.py` stand alone, over `backends/record_lists/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names
from locus_memory._internal.providers.drivers import require

require("opensearchpy", "opensearch")

if TYPE_CHECKING:
    from locus_memory.backends.opensearch.backend import OpenSearchBackend
    from locus_memory.backends.opensearch.checkpoints import (
        OpenSearchCheckpointer,
        OpenSearchDeltaStorage,
    )
    from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
    from locus_memory.backends.opensearch.options import OpenSearchOptions
    from locus_memory.backends.opensearch.store import OpenSearchStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "OpenSearchBackend": "backend",
            "OpenSearchCheckpointer": "checkpoints",
            "OpenSearchConnection": "connection.connection",
            "OpenSearchDeltaStorage": "checkpoints",
            "OpenSearchOptions": "options",
            "OpenSearchStore": "store",
        },
    )

__all__ = [
    "OpenSearchBackend",
    "OpenSearchCheckpointer",
    "OpenSearchConnection",
    "OpenSearchDeltaStorage",
    "OpenSearchOptions",
    "OpenSearchStore",
]
