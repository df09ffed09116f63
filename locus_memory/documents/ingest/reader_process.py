"""The process that reads documents: requests come in by standard input, and answers go out.

The program imports nothing of it but the status that it may end with.
"""

from __future__ import annotations

import os
import signal
import sys
from base64 import b64decode
from math import ceil
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, Final

import orjson

from locus_memory.documents.ingest.formats import read_text
from locus_memory.errors import LocusMemoryError, MissingDriverError

__all__ = ["OUT_OF_MEMORY", "main"]

OUT_OF_MEMORY: Final = 77
"""The status that the process ends with where its memory is full and nothing else stops it."""

_SIZES: Final = Path("/proc/self/statm")
_WATCHED: Final = 0.05


def main() -> None:
    """Answer requests until standard input ends: each is a line of JSON, and so is its answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as answers:
        # What a library prints is no answer.
        os.dup2(2, 1)
        answers.write(b"\n")
        answers.flush()
        for line in sys.stdin.buffer:
            answers.write(_answer(**orjson.loads(line)) + b"\n")
            answers.flush()


def _answer(source: str, content: str, limits: dict[str, int]) -> bytes:
    """Return the text of a file, whose bytes are in Base64, or why there is none, as JSON."""
    given = b64decode(content)
    try:
        _limit(limits["memory"], limits["cpu_seconds"])
        found = read_text(source, given)
        is_long = len(found.text) > limits["characters"]
        return orjson.dumps({"limit": "characters"} if is_long else found)
    except MemoryError:
        return b'{"limit":"memory"}'
    except LocusMemoryError as error:
        is_missing = isinstance(error, MissingDriverError)
        return orjson.dumps({"error": str(error), "is_missing": is_missing})


def _limit(memory: int, cpu_seconds: int) -> None:
    """Let the next document take so many bytes and seconds more than there are; not on Windows."""
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        return

    def at_most(kind: int, number: int) -> None:
        hard = resource.getrlimit(kind)[1]
        most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
        resource.setrlimit(kind, (min(number, most), hard))

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
