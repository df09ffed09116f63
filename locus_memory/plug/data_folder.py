"""The folder of the user's data, and the log of hooks in it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["data_folder", "log", "log_file"]

_LARGEST_LOG: Final = 2**20


def data_folder() -> Path:
    """Return the folder of the user's data, see https://specifications.freedesktop.org/basedir."""
    named = Path(os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA") or "")
    # A relative one is invalid: it would be in the folder of a project.
    return (named if named.is_absolute() else Path.home() / ".local" / "share") / "locus_memory"


def log_file() -> Path:
    """Return the file of what failed in hooks."""
    return data_folder() / "hook.log"


def log(error: BaseException) -> None:
    """Add a failure to the log; one of more than 1 MB begins anew."""
    from datetime import UTC, datetime  # noqa: PLC0415 - a hook must be quick

    with suppress(OSError, RuntimeError):
        data_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        path = log_file()
        is_small = path.exists() and path.stat().st_size < _LARGEST_LOG
        with path.open("a" if is_small else "w", encoding="utf-8") as file:
            file.write(f"{datetime.now(UTC).isoformat()} {type(error).__name__}: {error}\n")
