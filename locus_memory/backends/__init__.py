"""The backends: one folder per database, with the same file names in each.

Import a backend from its own folder or through the registry. The modules beside the folders hold
code that several backends share, so a backend is a connection, a schema and two classes.

Read `base.py` and `providers.py` first, then `checked_store.py`, over which each store is written,
and `inmemory/`, the smallest backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend, ComposedBackend
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Backend": "base",
            "ComposedBackend": "base",
        },
    )

__all__ = [
    "Backend",
    "ComposedBackend",
]
