"""The file backend: checkpoints in a folder, and no store."""

from __future__ import annotations

import os
from pathlib import Path

from typing_extensions import override

from locus_memory._internal.offload import in_thread
from locus_memory._internal.options import checked
from locus_memory.backends.advice import Advice, on_folder
from locus_memory.backends.base import Backend
from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.file.remains import find_remains
from locus_memory.backends.remains import ByteSearch, Place
from locus_memory.checkpoint.chain import CheckpointerOptions

__all__ = ["FileBackend"]


class FileBackend(Backend):
    """Checkpoints as files in one folder.

    Args:
        base_dir: The folder; created at its first use.
        busy_timeout: See `FileDeltaStorage`.
        checkpointer_options: Options of `FileCheckpointer`.
    """

    provider = "file"

    @checked
    def __init__(
        self,
        base_dir: str | os.PathLike[str] = "./checkpoints",
        *,
        busy_timeout: float = 30.0,
        checkpointer_options: CheckpointerOptions | None = None,
    ) -> None:
        self._folder = Path(base_dir)
        self._checkpointer: FileCheckpointer = FileCheckpointer(
            base_dir,
            busy_timeout=busy_timeout,
            **(checkpointer_options or CheckpointerOptions()),
        )

    @property
    def checkpointer(self) -> FileCheckpointer:
        """The checkpointer."""
        return self._checkpointer

    @override
    async def advice(self) -> list[Advice]:
        return await in_thread(lambda: list(on_folder("file", self._folder)))

    @override
    async def remains(self, search: ByteSearch) -> list[Place]:
        return await in_thread(find_remains, self._folder, search)

    async def open(self) -> None:
        """Create the folder now, rather than at its first use."""
        await self._checkpointer.open()

    async def close(self) -> None:
        """Release the resources of the checkpointer."""
        await self._checkpointer.close()
