"""The file system functions of the file backend: list, read and write, without following links.

A name in the folder may be anything: a link to another folder, a pipe that never ends, a file
where a folder should be. Each of them is recognised.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from locus_memory.backends.folders import private
from locus_memory.errors import BackendCorruptError

__all__ = [
    "ASIDE",
    "aside_in",
    "discard",
    "is_folder",
    "names_in",
    "open_file",
    "remove_asides",
    "write_synced",
]

ASIDE: Final = ".tmp"
"""The end of the name of a temporary file, before it is renamed."""

# Windows has none of these, and no links or pipes that every user may create.
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
_AS_BYTES: Final = getattr(os, "O_BINARY", 0)


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder, not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder; none if the folder does not exist.

    Raises:
        BackendCorruptError: The path is not a folder.
    """
    try:
        kind = folder.lstat().st_mode
    except FileNotFoundError:
        return []
    if not stat.S_ISDIR(kind):
        raise BackendCorruptError(
            f"file {folder}: is {_kind(kind)} where a folder should be; it is not followed or "
            "read: move it away"
        )
    try:
        return os.listdir(folder)  # noqa: PTH208 - without a path for each name it is faster
    except FileNotFoundError:
        return []


def open_file(path: Path) -> BinaryIO:
    """Open an ordinary file to read.

    Raises:
        BackendCorruptError: The path is not an ordinary file.
        OSError: It cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _NO_LINK | _NO_WAIT | _AS_BYTES)
    except OSError:
        if path.is_symlink():
            raise _no_file(path, stat.S_IFLNK) from None
        raise
    kind = os.fstat(handle).st_mode
    if not stat.S_ISREG(kind):
        os.close(handle)
        raise _no_file(path, kind)
    return os.fdopen(handle, "rb")


def _no_file(path: Path, kind: int) -> BackendCorruptError:
    return BackendCorruptError(
        f"file {path}: is {_kind(kind)} where a record should be; it is not followed or read: "
        "move it away"
    )


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFREG: "a file",
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a pipe",
    }
    return kinds.get(stat.S_IFMT(mode), "a device or socket")


def aside_in(folder: Path) -> Path:
    """Return the path of a new temporary file, which is renamed once it is complete."""
    return folder / f".{uuid4().hex}{ASIDE}"


def remove_asides(folder: Path) -> None:
    """Delete temporary files that were never renamed, if no process writes to the folder."""
    for name in names_in(folder):
        if name.startswith(".") and name.endswith(ASIDE):
            (folder / name).unlink(missing_ok=True)


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file durably; only its owner can read it."""
    with open(path, "xb", opener=private) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def discard(folder: Path) -> None:
    """Delete a folder that nothing uses, with the files in it; a folder inside it stays."""
    for name in names_in(folder):
        with contextlib.suppress(IsADirectoryError, PermissionError):
            (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
