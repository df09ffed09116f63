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
    from locus_memory.backends.file.checkpoints import FileCheckpointer as FileCheckpointer
    from locus_memory.backends.inmemory.checkpoints import (
        InMemoryDeltaStorage as InMemoryDeltaStorage,
    )
    from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer as MemoryCheckpointer
    from locus_memory.backends.oci.checkpoints import OCIBucketCheckpointer as OCIBucketCheckpointer
    from locus_memory.backends.oci.checkpoints import OCICheckpointer as OCICheckpointer
    from locus_memory.backends.opensearch.checkpoints import (
        OpenSearchCheckpointer as OpenSearchCheckpointer,
    )
    from locus_memory.backends.oracle.checkpoints import OracleCheckpointer as OracleCheckpointer
    from locus_memory.backends.postgresql.checkpoints import (
        PostgreSQLCheckpointer as PostgreSQLCheckpointer,
    )
    from locus_memory.backends.redis.checkpoints import RedisCheckpointer as RedisCheckpointer
    from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer as SQLiteCheckpointer
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
    from locus_memory.checkpoint.four_verbs import CheckpointMetadata, DeltaCheckpoint
    from locus_memory.checkpoint.record import Record, RecordHead
    from locus_memory.checkpoint.storage import DeltaStorage
    from locus_memory.registry import get_checkpointer as get_checkpointer
    from locus_memory.registry import list_checkpointers as list_checkpointers
    from locus_memory.registry import register_checkpointer as register_checkpointer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BaseCheckpointer": "base",
            "CheckpointInfo": "base",
            "CheckpointMetadata": "four_verbs",
            "Checkpointable": "base",
            "CheckpointerCapabilities": "base",
            "CheckpointerOptions": "chain",
            "DeltaCheckpoint": "four_verbs",
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
        unlisted={
            "FileCheckpointer": "locus_memory.backends.file.checkpoints",
            "InMemoryDeltaStorage": "locus_memory.backends.inmemory.checkpoints",
            "MemoryCheckpointer": "locus_memory.backends.inmemory.checkpoints",
            "OCIBucketCheckpointer": "locus_memory.backends.oci.checkpoints",
            "OCICheckpointer": "locus_memory.backends.oci.checkpoints",
            "OpenSearchCheckpointer": "locus_memory.backends.opensearch.checkpoints",
            "OracleCheckpointer": "locus_memory.backends.oracle.checkpoints",
            "PostgreSQLCheckpointer": "locus_memory.backends.postgresql.checkpoints",
            "RedisCheckpointer": "locus_memory.backends.redis.checkpoints",
            "SQLiteCheckpointer": "locus_memory.backends.sqlite.checkpoints",
            "get_checkpointer": "locus_memory.registry",
            "list_checkpointers": "locus_memory.registry",
            "register_checkpointer": "locus_memory.registry",
        },
    )

__all__ = [
    "UNSET",
    "BaseCheckpointer",
    "CheckpointInfo",
    "CheckpointMetadata",
    "Checkpointable",
    "CheckpointerCapabilities",
    "CheckpointerOptions",
    "DeltaCheckpoint",
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
