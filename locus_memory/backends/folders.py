"""The folder that a database file or the files of a backend lie in."""

from __future__ import annotations

from pathlib import Path

from locus_memory.errors import ConfigurationError

__all__ = ["make_folder"]


def make_folder(folder: Path, place: str) -> None:
    """Make a folder unless it is there; a mistyped path must not make a tree of them.

    Args:
        folder: The folder.
        place: What an error calls the database, such as `"sqlite ./agent.db"`.

    Raises:
        ConfigurationError: The folder that it lies in is missing as well.
        OSError: It cannot be made.
    """
    if folder.exists():
        return
    if not folder.parent.exists():
        raise ConfigurationError(
            f"{place}: neither {folder} nor {folder.parent} exists; make the folder first, or "
            "correct the path: only one missing folder is made"
        )
    folder.mkdir(exist_ok=True)
