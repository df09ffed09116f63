"""The folder of a database file or of a backend's files, and files that only their owner reads."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Final

from locus_memory.errors import ConfigurationError

__all__ = [
    "PRIVATE_FOLDER",
    "create_private",
    "make_folder",
    "private",
    "publish",
    "replace_file",
    "sync_folder",
]

PRIVATE_FOLDER: Final = 0o700
"""The mode of a folder that only its owner can enter."""

_UNSYNCABLE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EROFS}
)
"""What a system says whose folders cannot be synced, such as Windows."""


def make_folder(folder: Path, place: str) -> None:
    """Create a folder unless it exists, but only one: a mistyped path must not create a tree.

    Only its owner can enter it.

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
    folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
    sync_folder(folder.parent)


def publish(partial: Path, path: Path) -> None:
    """Give a complete file its name, durably: a loss of power leaves no half of it, and no hole.

    Raises:
        OSError: The disk failed.
    """
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    replace_file(partial, path)
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


def private(path: str, flags: int) -> int:
    """Open a file for `open(opener=...)`; a new one is readable by its owner alone."""
    return os.open(path, flags, 0o600)


def create_private(path: Path) -> None:
    """Create an empty file for others to open, unless the path exists or cannot be written.

    An existing file is not opened: closing it would end the locks of SQLite on it.
    """
    with suppress(OSError):
        os.close(private(os.path.realpath(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def replace_file(made: Path, place: Path) -> None:
    """Give a complete file its name; it gets the mode of the file that it replaces.

    Raises:
        OSError: It cannot be renamed.
    """
    with suppress(FileNotFoundError):
        made.chmod(S_IMODE(place.stat().st_mode))
    made.replace(place)
