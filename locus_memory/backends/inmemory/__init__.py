"""The in-memory backend: exact and fast; its data ends with the process.

Its store is the reference for the tests of every other store. Its checkpoints are those of
`checkpoint/inmemory.py`.

Read `store.py` first, then `space.py` and `index.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.backends.inmemory.backend import InMemoryBackend
    from locus_memory.backends.inmemory.checkpoints import InMemoryDeltaStorage, MemoryCheckpointer
    from locus_memory.backends.inmemory.store import InMemoryStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "InMemoryBackend": "backend",
            "InMemoryDeltaStorage": "checkpoints",
            "InMemoryStore": "store",
            "MemoryCheckpointer": "checkpoints",
        },
    )

__all__ = [
    "InMemoryBackend",
    "InMemoryDeltaStorage",
    "InMemoryStore",
    "MemoryCheckpointer",
]
