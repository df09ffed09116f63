"""Locks between processes, by the operating system: gone with the process that holds them."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]

if sys.platform == "win32":  # pragma: no cover - one platform a run
    import msvcrt

    def _acquire(handle: int, *, shared: bool) -> None:
        del shared  # there is no such thing there
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def _acquire(handle: int, *, shared: bool) -> None:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Generator[None]:
    """Hold the lock of this name; a lock file is made when missing, and stays.

    Threads of one process exclude each other as processes do. A shared lock in a folder that
    cannot be written is no lock at all: nobody writes there.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        if not shared:
            raise
        yield
        return
    try:
        _acquire(handle, shared=shared)
        yield
    finally:
        os.close(handle)
