"""The end of a command: its exit codes and its error line."""

from __future__ import annotations

import os
import sys
from typing import Any

import orjson

from locus_memory.cli.printing.output import console, shown, write_out
from locus_memory.errors import (
    BackendUnavailableError,
    CheckpointNotFoundError,
    InvalidArgumentError,
    LocusMemoryError,
)
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.text import visible

__all__ = ["INTERRUPTED", "Interrupted", "report", "silence"]

INTERRUPTED = 130


class Interrupted(CommandError):  # noqa: N818 - nothing is wrong
    """The user interrupted the command."""

    exit_code = INTERRUPTED


_HELP = "locus-memory COMMAND --help"
_EXTRA = "Got unexpected extra argument"
_HINTS = {
    InvalidArgumentError: _HELP,
    CheckpointNotFoundError: "locus-memory threads",
    BackendUnavailableError: "locus-memory doctor",
}


def report(error: BaseException, *, as_json: bool = False) -> int:
    """Write one line on stderr, and with JSON a document on stdout; returns the exit code."""
    foreseen = isinstance(error, LocusMemoryError | OSError) or hasattr(error, "exit_code")
    kind = "error" if foreseen else f"internal error: {type(error).__name__}"
    if as_json and not getattr(error, "answered", False):
        write_out(orjson.dumps({"error": _document(error)}).decode() + "\n")
        sys.stdout.flush()
    sys.stderr.write(shown(f"{kind}: {_line(error)}\n", console(stderr=True)))
    if isinstance(error, InvalidArgumentError):
        return UsageError.exit_code
    code: int = getattr(error, "exit_code", CommandError.exit_code)
    return code


def _document(error: BaseException) -> dict[str, Any]:
    """Return an error as JSON."""
    hints = (hint for kind, hint in _HINTS.items() if isinstance(error, kind))
    # Typer's usage errors share nothing but the exit code with `UsageError`.
    is_usage = getattr(error, "exit_code", None) == UsageError.exit_code
    hint = getattr(error, "hint", None) or (_HELP if is_usage else next(hints, None))
    return {"type": type(error).__name__, "message": _line(error), "hint": hint}


def silence() -> None:
    """Redirect stdout to the null device, since its reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _line(error: BaseException) -> str:
    # A message of Typer may span several lines.
    message = getattr(error, "format_message", error.__str__)()
    if message.startswith(_EXTRA):
        message += "; a text with spaces needs quotes, a user --user"
    if isinstance(error, OSError) and error.strerror and error.filename:
        message = f"{error.filename}: {error.strerror}"
    return visible(" ".join(message.split())) or type(error).__name__
