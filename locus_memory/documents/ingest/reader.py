"""Reading of documents in a process of their own, which ends where a document has no end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from base64 import b64encode
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from threading import TIMEOUT_MAX, Lock, Timer
from time import monotonic
from typing import Any, BinaryIO, Final, cast

import orjson

from locus_memory.documents.ingest.formats import Text, format_of, read_text
from locus_memory.documents.ingest.reader_process import OUT_OF_MEMORY
from locus_memory.errors import InvalidArgumentError, MissingDriverError
from locus_memory.store.item import check_limit

__all__ = ["DocumentLimits", "DocumentReader"]

_CODE: Final = (
    "import sys; sys.path[:] = sys.argv[1:];"
    "from locus_memory.documents.ingest.reader_process import main; main()"
)
_PLAIN: Final = ("text", "markdown", "code")
_WIDEST: Final = 6
"""The bytes of JSON for one character, at most."""

_BESIDE: Final = 10_000
_ENDLESS: Final = 2**50
"""A limit that nothing reaches, and that every system call accepts."""

_ENDED: Final[dict[int, dict[str, Any]]] = {
    OUT_OF_MEMORY: {"limit": "memory"},
    -getattr(signal, "SIGXCPU", 256): {"limit": "cpu_seconds"},
}
_EXCEEDED: Final = {
    "seconds": "it takes more than {:,} s to read",
    "cpu_seconds": "it takes more than {:,} s of the processor to read",
    "memory": "it needs more than {:,} bytes of memory",
    "characters": "it has more than {:,} characters",
    "chunks": "it has more than {:,} chunks",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLimits:
    """What one document may take. A document that takes more is skipped, and the others go on.

    Plain text, Markdown and code are read in this process, and only `chunks` is for them as well.
    Windows has no limits of the processor and of memory.

    Attributes:
        seconds: The time to read it.
        cpu_seconds: The time of the processor to read it.
        memory: Bytes, besides those of the process that reads it.
        characters: The length of its text.
        chunks: The number of its chunks.

    Raises:
        InvalidArgumentError: One is no integer of at least 0.
    """

    seconds: int = 60
    cpu_seconds: int = 60
    memory: int = 2**30
    characters: int = 20_000_000
    chunks: int = 20_000

    def __post_init__(self) -> None:
        for each in fields(self):
            check_limit(getattr(self, each.name), each.name)

    def exceeded(self, name: str) -> InvalidArgumentError:
        """Return the error of a document that takes more than a limit."""
        said = _EXCEEDED[name].format(getattr(self, name))
        return InvalidArgumentError(f"{said} (DocumentLimits.{name})")


class DocumentReader:
    """Reads documents, one at a time, in one process that stays until it is closed or is ended.

    Threads may share it. `close` ends what is being read in another thread.

    Args:
        limits: What a document may take; `None` for the defaults.
    """

    def __init__(self, limits: DocumentLimits | None = None) -> None:
        self.limits = limits or DocumentLimits()
        self._lock = Lock()
        self._is_closed = False
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End the process; calling it again is harmless."""
        # In this order: the thread that starts one looks afterwards.
        self._is_closed = True
        if (process := self._process) is not None:
            process.kill()
        with self._lock:
            self._end()

    def read(self, source: str, content: bytes) -> Text:
        """Return the text of a file.

        Raises:
            InvalidArgumentError: It is binary, damaged or encrypted, or takes more than a limit.
            MissingDriverError: Its format needs an extra.
            OSError: No process can be started.
        """
        if format_of(source) in _PLAIN:
            return read_text(source, content)
        with self._lock:
            answer = self._answer(source, content)
        if "limit" in answer:
            raise self.limits.exceeded(answer["limit"])
        if "error" in answer:
            kind = MissingDriverError if answer.get("is_missing") else InvalidArgumentError
            raise kind(answer["error"])
        return Text(answer["text"], answer["kind"], answer["note"])

    def _answer(self, source: str, content: bytes) -> dict[str, Any]:
        """Ask the process, and end it where it does not answer."""
        process = self._process or self._start()
        requests, answers = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
        packed = b64encode(content).decode("ascii")
        limits = {name: min(most, _ENDLESS) for name, most in asdict(self.limits).items()}
        # Bytes of a name that are no characters are escaped.
        shown = source.encode("utf-8", "backslashreplace").decode("utf-8")
        request = {"source": shown, "content": packed, "limits": limits}
        most = _WIDEST * limits["characters"] + _BESIDE
        answer: dict[str, Any] = {}
        timer = Timer(min(self.limits.seconds, TIMEOUT_MAX), process.kill)
        timer.daemon = True
        started = monotonic()
        timer.start()
        try:
            with suppress(OSError, ValueError):
                requests.write(orjson.dumps(request) + b"\n")
                requests.flush()
                answer = orjson.loads(answers.readline(most))
        finally:
            timer.cancel()
        if answer and "limit" not in answer:
            return answer
        status = self._end()
        if not answer and monotonic() - started >= self.limits.seconds:
            return {"limit": "seconds"}
        return answer or _ENDED.get(status, {"error": f"its reader ended with status {status}"})

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process: without the program's main module, which would run again.

        Raises:
            OSError: It cannot be started.
        """
        from multiprocessing.spawn import get_executable  # noqa: PLC0415 - seldom needed

        python = get_executable()
        if not python or (getattr(sys, "frozen", False) and os.fsdecode(python) == sys.executable):
            raise OSError(0, "it needs Python to read it: multiprocessing.set_executable names one")
        self._process = process = subprocess.Popen(  # noqa: S603 - this Python
            [python, "-c", _CODE, *(each or str(Path.cwd()) for each in sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if self._is_closed:
            process.kill()
        # No document is to blame for the time that a busy machine takes to start it.
        cast("BinaryIO", process.stdout).readline()
        return process

    def _end(self) -> int:
        """End the process, and return its status; 0: there is none."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with suppress(OSError), process:
            process.kill()
        return process.returncode
