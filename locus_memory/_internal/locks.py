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

    def _acquire(handle: int, *, shared: bool, wait: bool) -> None:
        del shared  # there is no such thing there
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
def locked(path: Path, *, shared: bool = False, wait: bool = True) -> Generator[None]:
    """Hold the lock of this name; a lock file is made when missing, and stays.

    Threads of one process exclude each other as processes do. A shared lock in a folder that
    cannot be written is no lock at all: nobody writes there.

    Raises:
        BlockingIOError: Somebody has it, and `wait` is false.
        OSError: The lock file cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
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
