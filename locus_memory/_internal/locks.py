"""Locks between processes, which the operating system releases when their process ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]

if sys.platform == "win32":  # pragma: no cover - one platform per run
    import msvcrt

    def _acquire(handle: int, *, shared: bool, wait: bool) -> None:
        del shared  # Windows has no shared locks
        try:
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise error if wait else BlockingIOError from error
else:
    import fcntl

    def _acquire(handle: int, *, shared: bool, wait: bool) -> None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)


@contextmanager
def locked(
    path: Path, *, shared: bool = False, wait: bool = True, mode: int = 0o600
) -> Generator[None]:
    """Hold the lock of this name; a missing lock file is created with this mode, and stays.

    Threads of one process exclude each other like processes. A shared lock in a read-only folder is
    no lock: there are no writers there.

    Raises:
        BlockingIOError: Another thread or process has it, and `wait` is false.
        OSError: The lock file cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, mode)
    except OSError:
        if not shared:
            raise
        yield
        return
    try:
        _acquire(handle, shared=shared, wait=wait)
        yield
    finally:
        os.close(handle)
