"""The folder of a database file or of a backend's files."""

from __future__ import annotations

from pathlib import Path

from locus_memory._internal.private_files import PRIVATE_FOLDER
from locus_memory.errors import ConfigurationError

__all__ = ["make_folder"]


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
