"""The folder of a database file or of a backend's files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from locus_memory.errors import ConfigurationError

__all__ = ["make_folder", "publish", "sync_folder"]

_UNSYNCABLE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EROFS}
)
"""What a system says whose folders cannot be synced, such as Windows."""


def make_folder(folder: Path, place: str) -> None:
    """Create a folder unless it exists, but only one: a mistyped path must not create a tree.

    Args:
        folder: The folder.
        place: The name of the database in errors, such as `"sqlite ./agent.db"`.

    Raises:
        ConfigurationError: Its parent folder is missing as well.
        OSError: It cannot be created.
    """
    if folder.exists():
        return
    if not folder.parent.exists():
        raise ConfigurationError(
            f"{place}: neither {folder} nor {folder.parent} exists; create the folder first, or "
            "correct the path: only one missing folder is created"
        )
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def publish(partial: Path, path: Path) -> None:
    """Give a complete file its name, durably: a loss of power leaves no half of it, and no hole.

    Raises:
        OSError: The disk failed.
    """
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    partial.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: what was created, renamed and deleted there.

    Raises:
        OSError: The disk failed.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _UNSYNCABLE:
            raise
