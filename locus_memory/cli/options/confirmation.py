"""Asking before something is deleted."""

from __future__ import annotations

import sys

import typer

from locus_memory.cli.printing.outcome import CommandError, UsageError
from locus_memory.cli.printing.output import visible_name

__all__ = ["confirm", "refuse_unasked"]


def refuse_unasked(otherwise: str) -> None:
    """Make sure that there is somebody to ask.

    Args:
        otherwise: What to do instead, such as `pass --yes to delete`.

    Raises:
        UsageError: There is nobody.
    """
    if not _is_interactive():
        raise UsageError(f"there is nobody to ask: {otherwise}")


def confirm(question: str) -> None:
    """Ask, and end the command unless the answer is yes.

    Raises:
        CommandError: The answer is no.
    """
    if not typer.confirm(visible_name(question), err=True):
        raise CommandError("nothing was deleted")


def _is_interactive() -> bool:
    return sys.stdin.isatty()
