"""How a command ends: its exit codes and the one line that says why."""

from __future__ import annotations

import os
import sys

from locus_memory.cli.output import visible
from locus_memory.errors import InvalidArgumentError, LocusMemoryError

__all__ = ["CommandError", "UsageError", "report", "silence"]

INTERRUPTED = 130


class CommandError(Exception):
    """The command cannot do what it was asked; the text is what the user reads."""

    exit_code = 1


class UsageError(CommandError):
    """The command was called in a way it cannot understand."""

    exit_code = 2


def report(error: BaseException) -> int:
    """Write one line on stderr and return the exit code."""
    foreseen = isinstance(error, LocusMemoryError | OSError) or hasattr(error, "exit_code")
    kind = "error" if foreseen else f"internal error: {type(error).__name__}"
    sys.stderr.write(f"{kind}: {_line(error)}\n")
    if isinstance(error, InvalidArgumentError):
        return UsageError.exit_code
    code: int = getattr(error, "exit_code", CommandError.exit_code)
    return code


def silence() -> None:
    """Let the interpreter's last flush go nowhere: nobody reads stdout any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _line(error: BaseException) -> str:
    # A message of typer's may be wrapped over several lines.
    message = getattr(error, "format_message", error.__str__)()
    if isinstance(error, OSError) and error.strerror and error.filename:
        message = f"{error.filename}: {error.strerror}"
    return visible(" ".join(message.split())) or type(error).__name__
