"""The output and the checks of the demo, the commands that it runs, and its processes."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from typing import Any

import orjson
import typer
from rich.text import Text

from locus_memory.cli.app import run
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import console
from locus_memory.cli.printing.transcripts import print_text
from locus_memory.inspection.errors import CommandError

__all__ = ["Stage", "line_of", "started"]


class Stage:
    """The console and the checks of the demo.

    Args:
        session: The database and the output format.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.checks: list[dict[str, Any]] = []
        self._steps = 0
        self._console = console()
        self._console.quiet = session.as_json

    def title(self, text: str) -> None:
        """Print the heading of a step."""
        self._steps += 1
        gap = "\n" if self._steps > 1 else ""
        print_text(self._console, Text(f"{gap}{self._steps}. {text}", "bold"))

    def say(self, text: str) -> None:
        """Print a line."""
        print_text(self._console, Text(text))

    def check(self, text: str, *, ok: bool) -> None:
        """Print and keep the result of a check."""
        self.checks.append({"check": text, "ok": ok})
        mark = Text("ok      ", "green") if ok else Text("FAILED  ", "bold red")
        print_text(self._console, mark.append(text, "default"))

    def show(self, *arguments: str) -> Any:
        """Print a command of ours that reads, and its output; return the JSON that it prints.

        Raises:
            Exit: It failed, and has told why.
        """
        self.say(f"$ locus-memory {shlex.join(arguments)}")
        if not self.session.as_json:
            run(["--url", self.session.url, *arguments])
        return self.ask(*arguments)

    def ask(self, *arguments: str) -> Any:
        """Return the JSON that a command of ours prints.

        Raises:
            Exit: As for `show`.
        """
        with redirect_stdout(io.StringIO()) as told:
            code = run(["--url", self.session.url, "--json", *arguments])
        if code:
            raise typer.Exit(code)
        return orjson.loads(told.getvalue())


def started(url: str, part: str) -> subprocess.Popen[str]:
    """Start a process that plays a part, see `parts.py`; it ends when its stdin is closed.

    An interrupt of the demo does not reach it.
    """
    return subprocess.Popen(  # noqa: S603 - a module of this package
        [sys.executable, "-m", "locus_memory.cli.demo.parts", url, part],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def line_of(child: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints.

    Raises:
        CommandError: It ended.
    """
    line = child.stdout.readline() if child.stdout else ""
    if not line:
        raise CommandError(f"a process of the demo ended with exit code {child.wait()}")
    return line.rstrip("\n")
