"""Confirmation before a command deletes data."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from locus_memory.cli.printing.output import marked
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.text import visible_name

__all__ = ["Yes", "confirm", "refuse_unasked"]

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def refuse_unasked(otherwise: str) -> None:
    """Check that the command can ask for confirmation.

    Args:
        otherwise: The remedy, such as `pass --yes to delete`.

    Raises:
        UsageError: stdin is not a terminal.
    """
    if not _is_interactive():
        raise UsageError(f"stdin is not a terminal, so confirmation is impossible: {otherwise}")


def confirm(question: str, *, otherwise: str = "nothing was deleted") -> None:
    """Ask for confirmation, and end the command unless the answer is yes.

    Args:
        question: The question.
        otherwise: The end of the command if the answer is no.

    Raises:
        CommandError: The answer is no.
    """
    if not typer.confirm(marked(visible_name(question)), err=True):
        raise CommandError(otherwise)


def _is_interactive() -> bool:
    return sys.stdin.isatty()
