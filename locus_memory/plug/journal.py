"""What hooks have begun to keep and not yet kept: a file each, for whoever comes next.

The last hook of a session may fail, run out of time or be killed, and no other one of it follows.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson

from locus_memory.plug.data_folder import data_folder

__all__ = ["close", "left", "read", "write"]

_LONGEST: Final = 5.0
"""The seconds after which a hook is over, whatever became of it."""

_DAYS: Final = 30
_FIELDS: Final = ("session_id", "cwd", "hook_event_name", "transcript_path", "messages")


def write(host: str, options: list[str], event: Mapping[str, Any]) -> Path:
    """Note that a hook has begun to keep what was said, and return the file of the note.

    Raises:
        OSError: It cannot be written.
    """
    folder = data_folder() / "open"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    session = blake2b(str(event.get("session_id")).encode(errors="replace"), digest_size=8)
    path = folder / f"{session.hexdigest()}-{time.time_ns()}"
    path.touch(mode=0o600)
    known = {name: event[name] for name in _FIELDS if name in event}
    path.write_bytes(orjson.dumps([host, options, known]))
    return path


def read(path: Path) -> tuple[str, list[str], dict[str, Any]]:
    """Return the host, the options and the event of a note.

    Raises:
        OSError: It cannot be read, or another hook has removed it.
        ValueError: It is damaged.
    """
    host, options, event = orjson.loads(path.read_bytes())
    return host, options, event


def close(path: Path) -> None:
    """Remove a note, and those of the same session before it: what they were for is kept too."""
    for each in path.parent.glob(f"{path.name.partition('-')[0]}-*"):
        if each.name <= path.name:
            each.unlink(missing_ok=True)


def left() -> list[Path]:
    """Return the notes of hooks that are over, in any order: one that never ends hides no other.

    A note of more than 30 days is removed.
    """
    now, found = time.time(), list[Path]()
    for path in (data_folder() / "open").glob("*-*"):
        try:
            age = now - path.stat().st_mtime
        except FileNotFoundError:
            continue
        if age > _DAYS * 86_400:
            path.unlink(missing_ok=True)
        elif age > _LONGEST:
            found.append(path)
    return random.sample(found, len(found))
