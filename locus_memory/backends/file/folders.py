"""What the file backend asks of the file system: listing, reading and writing, nothing followed.

A name in the folder may be anything: a link to somewhere else, a pipe that never ends, a file
where a folder should be. None of them is taken for what it is not.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from locus_memory.errors import BackendCorruptError

__all__ = [
    "ASIDE",
    "aside_in",
    "discard",
    "is_folder",
    "names_in",
    "open_file",
    "remove_asides",
    "sync_folder",
    "write_synced",
]

ASIDE: Final = ".tmp"
"""The end of the name of a file that is written before it is renamed."""

# Windows has none of these, and no links or pipes that anybody may make.
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
_AS_BYTES: Final = getattr(os, "O_BINARY", 0)


def is_folder(path: Path) -> bool:
    """Whether there is a folder, and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder; nothing if there is no folder.

    Raises:
        BackendCorruptError: There is something else in its place.
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
        return [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []


def open_file(path: Path) -> BinaryIO:
    """Return an ordinary file, opened to read.

    Raises:
        BackendCorruptError: It is something else.
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
    """Return a name for a file that is renamed once it is whole."""
    return folder / f".{uuid4().hex}{ASIDE}"


def remove_asides(folder: Path, *, keep: frozenset[str] = frozenset()) -> None:
    """Remove files that were never renamed; only for who knows that nobody writes there."""
    for name in names_in(folder):
        if name.startswith(".") and name.endswith(ASIDE) and name not in keep:
            (folder / name).unlink(missing_ok=True)


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file that lasts."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make a rename last; not every system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def discard(folder: Path) -> None:
    """Remove a folder that is out of sight, with the files in it; a folder in it stays."""
    for name in names_in(folder):
        with contextlib.suppress(IsADirectoryError, PermissionError):
            (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
