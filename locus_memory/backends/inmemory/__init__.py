"""The in-memory backend: exact, fast, gone with the process.

Its store is the reference that every other store is compared with. Its checkpoints are those of
`checkpoint/inmemory.py`.

Read `store.py` first, then `space.py` and `index.py`.
"""

from locus_memory.backends.inmemory.store import InMemoryStore

__all__ = ["InMemoryStore"]
