"""Leases: which process does a work, and until when."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self
from uuid import uuid4

__all__ = ["Lease"]

_running: set[str] = set()
"""The tokens of this process's leases."""

_START: Final = 19


class Lease:
    """A right to do a work until a moment, which other processes can check.

    It outlives a process that is killed, so it names the process. On the same machine, others see
    immediately that the process ended; on another machine they wait until the lease ends.

    Args:
        until: Seconds since the epoch.
    """

    def __init__(self, until: float) -> None:
        self.token = uuid4().hex
        self.until = until

    def __enter__(self) -> Self:
        _running.add(self.token)
        return self

    def __exit__(self, *exception: object) -> None:
        _running.discard(self.token)

    def to_value(self) -> dict[str, Any]:
        """Return the lease as plain JSON."""
        pid = os.getpid()
        return {
            "host": socket.gethostname(),
            "pid": pid,
            "started": _started(pid),
            "token": self.token,
            "until": self.until,
        }

    @staticmethod
    def holds(value: Any, now: float) -> bool:
        """Return whether a process may still work under a lease that `to_value` returned.

        Args:
            value: The lease; `None`: there is none.
            now: Seconds since the epoch.
        """
        if not isinstance(value, Mapping) or value.get("until", 0) <= now:
            return False
        if value.get("host") != socket.gethostname():
            return True
        pid, started = value.get("pid"), value.get("started")
        now_started = _started(pid) if isinstance(pid, int) else None
        # The system reuses the number of a process that ended.
        if now_started is None or (started and now_started and started != now_started):
            return False
        return pid != os.getpid() or value.get("token") in _running


def _started(pid: int) -> str | None:
    """Return the start of a process, in ticks since the boot; `None`: it ended.

    The start is known on Linux, and an empty text elsewhere; outside of Posix, no process is known
    to have ended. See
    https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html; the name of the process is in
    parentheses and may contain some.
    """
    try:
        if os.name == "posix":
            os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except (OverflowError, PermissionError):
        pass
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    # A process that ended but was not waited for still has its number.
    return None if fields[0] in ("Z", "X") else fields[_START]
