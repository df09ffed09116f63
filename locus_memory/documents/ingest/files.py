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
    """

    path: Path
    source: str


def files_of(path: str | Path) -> list[File]:
    """Return a file, or the files below a folder in the order of their names.

    Left out are hidden files and folders, folders of dependencies and of built files, and files
    whose suffix says that they have no text. Links to folders are not followed, and links to files
    only within the folder.

    Raises:
        InvalidArgumentError: Nothing is there.
    """
    root = Path(path)
    if root.is_file():
        return [File(root, root.name)]
    if not root.is_dir():
        raise InvalidArgumentError(f"there is no file and no folder {quote(str(path))}")
    return sorted(_below(root), key=lambda each: each.source)


def _below(root: Path) -> Iterator[File]:
    real = root.resolve()
    for folder, names, files in os.walk(root):
        names[:] = [each for each in names if not each.startswith(".") and each not in _LEFT_OUT]
        for name in files:
            path = Path(folder, name)
            suffix = path.suffix[1:].lower()
            if name.startswith(".") or suffix in _BINARY:
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(real):
                continue
            if path.is_file():
                yield File(path, path.relative_to(root).as_posix())
