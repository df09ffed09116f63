"""Files that only their owner can read, whatever the umask."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE

__all__ = ["PRIVATE_FOLDER", "create_private", "private", "replace_file"]

PRIVATE_FOLDER = 0o700
"""The mode of a folder that only its owner can enter."""


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
