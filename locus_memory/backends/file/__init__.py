"""The file backend: one file a record, and no store.

A record is written aside, synced and renamed into place; a removal of several is written to a
journal first. Locks of the operating system keep processes apart.

Read `checkpoints.py` first, then `threads.py` and `journal.py`.
"""

from locus_memory.backends.file.checkpoints import FileCheckpointer, FileDeltaStorage

__all__ = ["FileCheckpointer", "FileDeltaStorage"]
