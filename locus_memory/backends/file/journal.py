"""Several changes in a thread's folder, all or nothing.

The changes are written to a journal in the folder, and then carried out. If the writer dies
between, the next writer does the rest, and a reader reads the folder as it will be then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from locus_memory.backends.file.folders import (
    aside_in,
    names_in,
    open_file,
    write_synced,
)
from locus_memory.backends.folders import replace_file, sync_folder
from locus_memory.errors import BackendCorruptError

__all__ = ["JOURNAL", "change", "complete", "planned"]

JOURNAL: Final = ".journal"
"""The name of a journal."""


def change(folder: Path, written: Mapping[str, bytes], removed: Sequence[str]) -> None:
    """Write and delete files, all or nothing; the caller holds the lock of the folder.

    Args:
        folder: The folder of the files.
        written: The new contents of files by their names.
        removed: The names of the files to delete, in this order.
    """
    renamed: dict[str, str] = {}
    aside = aside_in(folder)
    try:
        for name, content in written.items():
            path = aside_in(folder)
            renamed[path.name] = name
            write_synced(path, content)
        write_synced(aside, orjson.dumps({"renamed": renamed, "removed": list(removed)}))
        sync_folder(folder)
        aside.replace(folder / JOURNAL)
    except BaseException:
        for name in (aside.name, *renamed):
            (folder / name).unlink(missing_ok=True)
        raise
    sync_folder(folder)
    _carry_out(folder, renamed, removed)


def complete(folder: Path) -> None:
    """Carry out the rest of a journal; the caller holds the lock of the folder.

    Raises:
        BackendCorruptError: The journal is damaged.
    """
    if (plan := planned(folder)) is not None:
        _carry_out(folder, *plan)


def planned(folder: Path) -> tuple[dict[str, str], list[str]] | None:
    """Return the changes of a journal, as for `change`: the files to rename and to delete.

    Raises:
        BackendCorruptError: The journal is damaged.
    """
    try:
        with open_file(folder / JOURNAL) as file:
            # If the folder is a link, the journal belongs to another program.
            names_in(folder)
            plan: Any = orjson.loads(file.read())
        renamed, removed = dict(plan["renamed"]), list(plan["removed"])
        is_ours = all(map(_is_name, [*renamed, *renamed.values(), *removed]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(folder) from error
    if not is_ours:
        raise _damaged(folder)
    return renamed, removed


def _damaged(folder: Path) -> BackendCorruptError:
    return BackendCorruptError(
        f"file {folder / JOURNAL}: is damaged, and so it is not known which checkpoints of the "
        "thread were to be deleted; delete this file to keep them all"
    )


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name


def _carry_out(folder: Path, renamed: Mapping[str, str], removed: Sequence[str]) -> None:
    for aside, name in renamed.items():
        # It may have been renamed before the writer died.
        with contextlib.suppress(FileNotFoundError):
            replace_file(folder / aside, folder / name)
    for name in removed:
        (folder / name).unlink(missing_ok=True)
    sync_folder(folder)
    (folder / JOURNAL).unlink(missing_ok=True)
