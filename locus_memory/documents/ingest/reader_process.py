"""The process that reads documents: requests come in by standard input, and answers go out.

It runs in a process of its own and is never imported by the program, but for its two frames.
"""

from __future__ import annotations

import os
import signal
import sys
from math import ceil
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, BinaryIO, Final

import orjson

from locus_memory.documents.ingest.formats import read_text
from locus_memory.errors import LocusMemoryError, MissingDriverError

__all__ = ["OUT_OF_MEMORY", "main", "read_frame", "write_frame"]

OUT_OF_MEMORY: Final = 77
"""The status that the process ends with where its memory is full and nothing else stops it."""

_SIZES: Final = Path("/proc/self/statm")
_LENGTH: Final = 8
_WATCHED: Final = 0.05


def write_frame(file: BinaryIO, content: bytes) -> None:
    """Write bytes after their length."""
    file.write(len(content).to_bytes(_LENGTH, "big"))
    file.write(content)
    file.flush()


def read_frame(file: BinaryIO, most: int) -> bytes | None:
    """Return the bytes of the next frame; `None`: it has ended, or promises more than `most`."""
    length = int.from_bytes(head := file.read(_LENGTH), "big")
    if len(head) < _LENGTH or length > most:
        return None
    content = file.read(length)
    return content if len(content) == length else None


def main() -> None:
    """Answer requests until standard input ends; each is a frame of JSON, and one of the file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        # What a library prints is no answer.
        os.dup2(2, 1)
        while (request := read_frame(requests, sys.maxsize)) is not None:
            content = read_frame(requests, sys.maxsize)
            write_frame(answers, _answer(orjson.loads(request), content or b""))


def _answer(request: dict[str, Any], content: bytes) -> bytes:
    """Return the text of a file, or why there is none, as JSON."""
    try:
        _limit(request["memory"], request["cpu_seconds"])
        found = read_text(request["source"], content)
        if len(found.text) > request["characters"]:
            return orjson.dumps({"limit": "characters"})
        return orjson.dumps(found)
    except MemoryError:
        return b'{"limit":"memory"}'
    except LocusMemoryError as error:
        is_missing = isinstance(error, MissingDriverError)
        return orjson.dumps({"error": str(error), "is_missing": is_missing})
    except Exception as error:  # noqa: BLE001 - a file makes a parser raise anything
        return orjson.dumps({"error": f"it cannot be read: {type(error).__name__}"})


def _limit(memory: int, cpu_seconds: int) -> None:
    """Let the next document take so many bytes and seconds more than there are; not on Windows."""
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        return

    def at_most(kind: int, number: int) -> None:
        hard = resource.getrlimit(kind)[1]
        soft = number if hard == resource.RLIM_INFINITY else min(number, hard)
        resource.setrlimit(kind, (soft, hard))

    used = resource.getrusage(resource.RUSAGE_SELF)
    at_most(resource.RLIMIT_CORE, 0)
    at_most(resource.RLIMIT_CPU, ceil(used.ru_utime + used.ru_stime) + cpu_seconds)
    if _SIZES.exists():
        pages = int(_SIZES.read_text("ascii").split()[0])
        at_most(resource.RLIMIT_AS, pages * resource.getpagesize() + memory)
    else:
        # Other systems bound no address space.
        unit = 1 if sys.platform == "darwin" else 1024
        most = used.ru_maxrss * unit + memory
        Thread(target=_watch, args=(resource, unit, most), daemon=True).start()


def _watch(resource: Any, unit: int, most: int) -> None:
    while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit <= most:
        sleep(_WATCHED)
    os._exit(OUT_OF_MEMORY)
