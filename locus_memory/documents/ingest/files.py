"""The files of a folder that are documents; no file is opened here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError

__all__ = ["File", "files_of"]

_LEFT_OUT: Final = frozenset(
    [
        "__pycache__",
        "node_modules",
        "venv",
        "env",
        "dist",
        "build",
        "target",
        "vendor",
        "site-packages",
    ]
)
"""Folders of code that others wrote, or that a tool made."""

_BINARY: Final = frozenset(
    [
        "png",
        "jpg",
        "jpeg",
        "gif",
        "bmp",
        "ico",
        "webp",
        "tif",
        "tiff",
        "heic",
        "psd",
        "svgz",
        "mp3",
        "wav",
        "flac",
        "ogg",
        "m4a",
        "aac",
        "mp4",
        "mov",
        "avi",
        "mkv",
        "webm",
        "zip",
        "gz",
        "tgz",
        "bz2",
        "xz",
        "zst",
        "7z",
        "rar",
        "tar",
        "jar",
        "war",
        "whl",
        "egg",
        "iso",
        "dmg",
        "exe",
        "dll",
        "so",
        "dylib",
        "a",
        "o",
        "obj",
        "lib",
        "class",
        "pyc",
        "pyo",
        "pyd",
        "wasm",
        "bin",
        "dat",
        "db",
        "sqlite",
        "sqlite3",
        # What SQLite keeps beside an open database.
        "db-wal",
        "db-shm",
        "db-journal",
        "parquet",
        "feather",
        "npy",
        "npz",
        "pkl",
        "pickle",
        "pt",
        "pth",
        "onnx",
        "safetensors",
        "gguf",
        "woff",
        "woff2",
        "ttf",
        "otf",
        "eot",
        "doc",
        "xls",
        "ppt",
    ]
)
"""Suffixes of files without a text."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that may be a document.

    Attributes:
        path: The path.
        source: The path relative to the folder that was given, with `/`.
        error: Why it cannot be listed, if it is a folder; `None`: it is a file.
        folder: The folder that was given, resolved; `None`: the file was given alone.
    """

    path: Path
    source: str
    error: OSError | None = None
    folder: Path | None = None

    @property
    def shown(self) -> str:
        """The source as a text: bytes of a name that are no characters are escaped."""
        return self.source.encode("utf-8", "backslashreplace").decode("utf-8")


def files_of(path: str | Path) -> list[File]:
    """Return a file, or the files below a folder in the order of their names.

    Left out are hidden files and folders, folders of dependencies and of built files, and files
    whose suffix says that they have no text. Links to folders are not followed, and links to files
    only within the folder. A folder in it that cannot be listed stands for its files.

    Raises:
        InvalidArgumentError: Nothing is there, the path is empty or cannot be looked at, or the
            folder itself cannot be listed.
    """
    if not str(path):
        # It would be the current folder.
        raise InvalidArgumentError("a path is not empty: '.' is the current folder")
    root = Path(path)
    try:
        is_file, is_folder = root.is_file(), root.is_dir()
    except OSError as error:
        # Such as a name that is too long, or a folder above it that may not be entered.
        raise InvalidArgumentError(
            f"{quote(str(path))} cannot be read: {error.strerror}"
        ) from error
    if is_file:
        return [File(root, root.name)]
    if not is_folder:
        raise InvalidArgumentError(f"there is no file and no folder {quote(str(path))}")
    return sorted(_below(root), key=lambda each: each.source)


def _below(root: Path) -> Iterator[File]:
    real = root.resolve()
    closed: list[OSError] = []
    for folder, names, files in os.walk(root, onerror=closed.append):
        names[:] = [each for each in names if not each.startswith(".") and each not in _LEFT_OUT]
        for name in files:
            path = Path(folder, name)
            if not name.startswith(".") and path.suffix[1:].lower() not in _BINARY:
                yield from _file(path, root, real)
    for error in closed:
        path = Path(os.fsdecode(error.filename))
        if path == root:
            raise InvalidArgumentError(
                f"the folder {quote(str(root))} cannot be listed: {error.strerror}"
            )
        yield File(path, path.relative_to(root).as_posix(), error)


def _file(path: Path, root: Path, real: Path) -> Iterator[File]:
    """Yield a file, unless it is none, or a link that leads nowhere or out of the folder."""
    try:
        is_file = path.is_file() and (
            not path.is_symlink() or path.resolve(strict=True).is_relative_to(real)
        )
    except OSError:
        # Reading it says why.
        is_file = True
    if is_file:
        yield File(path, path.relative_to(root).as_posix(), folder=real)
