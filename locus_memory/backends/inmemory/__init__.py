"""The in-memory backend: exact, fast, gone with the process."""

from locus_memory.backends.inmemory.store import InMemoryStore

__all__ = ["InMemoryStore"]
