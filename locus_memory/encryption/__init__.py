"""Encryption at rest: the keys, checkpoints over any backend, both contracts, and rotation.

`EncryptingStore` of `locus_memory.store.wrappers` encrypts items with the same keys. Nothing here
depends on a database.

Read `keys.py` first, then `storage.py` and `checkpointer.py`; `backend.py` joins both contracts,
and `rotation.py` changes the key of all data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.encryption.backend import EncryptingBackend
    from locus_memory.encryption.checkpointer import EncryptingCheckpointer
    from locus_memory.encryption.keys import EncryptionKeys
    from locus_memory.encryption.rotation import RotationReport, rotate
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "EncryptingBackend": "backend",
            "EncryptingCheckpointer": "checkpointer",
            "EncryptionKeys": "keys",
            "RotationReport": "rotation",
            "rotate": "rotation",
        },
    )

__all__ = [
    "EncryptingBackend",
    "EncryptingCheckpointer",
    "EncryptionKeys",
    "RotationReport",
    "rotate",
]
