"""The file backend: one file per record, and no store.

A record is written to a temporary file, synced and renamed into place. A deletion of several
records is written to a journal first. Locks of the operating system keep processes apart.

Read `checkpoints.py` first, then `threads.py` and `journal.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.backends.file.backend import FileBackend
    from locus_memory.backends.file.checkpoints import FileCheckpointer, FileDeltaStorage
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "FileBackend": "backend",
            "FileCheckpointer": "checkpoints",
            "FileDeltaStorage": "checkpoints",
        },
    )

__all__ = [
    "FileBackend",
    "FileCheckpointer",
    "FileDeltaStorage",
]
