"""The output and the results of the demo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from rich.text import Text

from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import console
from locus_memory.cli.printing.transcripts import print_text

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend

__all__ = ["Stage"]


class Stage:
    """The console, the results and the checks of the demo.

    Args:
        session: The database and the output format.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.found: dict[str, Any] = {}
        self.checks: list[dict[str, Any]] = []
        self.console: Console = console()
        self.console.quiet = session.as_json

    def title(self, text: str) -> None:
        """Print the heading of a step."""
        place = len(self.found) + 1
        gap = "\n" if place > 1 else ""
        print_text(self.console, Text(f"{gap}{place}. {text}", "bold"))

    def run(self, name: str, work: Callable[[Backend], Awaitable[Any]]) -> Any:
        """Do some work on the database; keep and return its result."""
        return self.found.setdefault(name, self.session.run(work))

    def say(self, text: str) -> None:
        """Print a line."""
        print_text(self.console, Text(text))

    def check(self, text: str, *, ok: bool) -> None:
        """Print and keep the result of a check."""
        self.checks.append({"check": text, "ok": ok})
        mark = Text("ok      ", "green") if ok else Text("FAILED  ", "bold red")
        print_text(self.console, mark.append(text, "default"))
