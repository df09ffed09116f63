"""The errors of a person's request: what was asked for is invalid, or cannot be had."""

from __future__ import annotations

__all__ = ["CommandError", "UsageError"]


class CommandError(Exception):
    """The command failed; the message is the line that the user reads.

    Args:
        message: The error line.
        hint: A command that helps, or `None`.
        answered: Whether the command's JSON document is already on stdout.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None, answered: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.answered = answered


class UsageError(CommandError):
    """The arguments of the command are invalid."""

    exit_code = 2
