"""The checkpointer that keeps its records in memory."""

from __future__ import annotations

from typing import Unpack

from locus_memory.checkpoint.base import StateT
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.inmemory import InMemoryDeltaStorage

__all__ = ["InMemoryDeltaStorage", "MemoryCheckpointer"]


class MemoryCheckpointer(DeltaCheckpointer[StateT]):
    """Checkpoints in memory, lost with the process; takes the options of `DeltaCheckpointer`."""

    def __init__(self, **options: Unpack[CheckpointerOptions[StateT]]) -> None:
        super().__init__(InMemoryDeltaStorage(), **options)
