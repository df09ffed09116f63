"""The in-memory backend: both contracts, with data that ends with the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locus_memory.backends.base import PairedBackend
from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.checkpoint.chain import CheckpointerOptions

__all__ = ["InMemoryBackend"]


class InMemoryBackend(PairedBackend[InMemoryStore, MemoryCheckpointer[Any]]):
    """A store and a checkpointer in this process.

    Args:
        store_options: Options of `InMemoryStore`.
        checkpointer_options: Options of `MemoryCheckpointer`.
    """

    provider = "memory"

    def __init__(
        self,
        *,
        store_options: Mapping[str, Any] | None = None,
        checkpointer_options: CheckpointerOptions | None = None,
    ) -> None:
        self._store = InMemoryStore(**(store_options or {}))
        self._checkpointer = MemoryCheckpointer(**(checkpointer_options or CheckpointerOptions()))
