"""The file backend: one file a record."""

from locus_memory.backends.file.checkpoints import FileCheckpointer, FileDeltaStorage

__all__ = ["FileCheckpointer", "FileDeltaStorage"]
