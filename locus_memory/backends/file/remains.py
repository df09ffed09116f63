"""Deleted words in the folder of the file backend."""

from __future__ import annotations

from pathlib import Path

from locus_memory.backends.remains import ByteSearch, Place, of_file

__all__ = ["find_remains"]


def find_remains(folder: Path, search: ByteSearch) -> list[Place]:
    """Return the place of a folder: each byte and each name of its files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    parts = [of_file(path, search) for path in files]
    names = sum(search.count_text(path.name) for path in folder.rglob("*"))
    problems = [part.problem for part in parts if part.problem]
    return [
        Place(
            name=str(folder),
            how=f"every byte and the name of {len(files)} files, and the checkpoints in them",
            bytes=sum(part.bytes for part in parts),
            found=names + sum(part.found for part in parts),
            problem=problems[0] if problems else None,
        )
    ]
