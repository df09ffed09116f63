"""The backend of OCI Object Storage: a store and checkpoints as objects of one bucket.

An item is an object, and so is the newest state of a thread. Each write is one conditional request
on one object, so it is atomic. The calls of the SDK block, and run in threads.

Read `backend.py` and `store.py` first, then `schema.py`, `items/` and `connection/`;
`checkpoints.py` and `records.py` stand alone, over `backends/record_lists/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.backends.oci.backend import OCIBackend
    from locus_memory.backends.oci.checkpoints import OCICheckpointer, OCIDeltaStorage
    from locus_memory.backends.oci.connection.connection import OCIConnection
    from locus_memory.backends.oci.options import OCIOptions
    from locus_memory.backends.oci.store import OCIStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "OCIBackend": "backend",
            "OCICheckpointer": "checkpoints",
            "OCIConnection": "connection.connection",
            "OCIDeltaStorage": "checkpoints",
            "OCIOptions": "options",
            "OCIStore": "store",
        },
    )

__all__ = [
    "OCIBackend",
    "OCICheckpointer",
    "OCIConnection",
    "OCIDeltaStorage",
    "OCIOptions",
    "OCIStore",
]
