"""Contract 2: checkpoints, the delta engine, and the storage that a backend supplies.

`DeltaCheckpointer` in `chain.py` is the only checkpointer with logic: it decides what a record
holds. A backend supplies an ordered log of records per thread, `storage.py`, and nothing else.

Read `base.py` and `storage.py` first, then `chain.py` and `delta.py`; `encoding/` creates the
payload of a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.checkpoint.base import (
        UNSET,
        BaseCheckpointer,
        Checkpointable,
        CheckpointerCapabilities,
        CheckpointInfo,
        StorageStats,
        Unset,
    )
    from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
    from locus_memory.checkpoint.delta import apply, diff
    from locus_memory.checkpoint.differences import StateDifference, compare
    from locus_memory.checkpoint.record import Record, RecordHead
    from locus_memory.checkpoint.storage import DeltaStorage
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BaseCheckpointer": "base",
            "CheckpointInfo": "base",
            "Checkpointable": "base",
            "CheckpointerCapabilities": "base",
            "CheckpointerOptions": "chain",
            "DeltaCheckpointer": "chain",
            "DeltaStorage": "storage",
            "Record": "record",
            "RecordHead": "record",
            "StateDifference": "differences",
            "StorageStats": "base",
            "UNSET": "base",
            "Unset": "base",
            "apply": "delta",
            "compare": "differences",
            "diff": "delta",
        },
    )

__all__ = [
    "UNSET",
    "BaseCheckpointer",
    "CheckpointInfo",
    "Checkpointable",
    "CheckpointerCapabilities",
    "CheckpointerOptions",
    "DeltaCheckpointer",
    "DeltaStorage",
    "Record",
    "RecordHead",
    "StateDifference",
    "StorageStats",
    "Unset",
    "apply",
    "compare",
    "diff",
]
