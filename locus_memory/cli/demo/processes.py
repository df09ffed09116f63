"""The processes the demo starts: followed line by line over pipes, and never left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO, cast

from locus_memory.cli.printing.outcome import CommandError

__all__ = ["Child", "started"]


class Child:
    """A process that prints lines, and waits for one where it is to be told to go on.

    Args:
        process: Started with pipes.
        name: How an error calls it.
    """

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self.pid = process.pid
        self._process = process
        self._name = name
        # It was started with both.
        self._stdin = cast("IO[str]", process.stdin)
        self._stdout = cast("IO[str]", process.stdout)

    def lines(self) -> Iterator[str]:
        """Yield the lines it prints, until it ends."""
        while line := self._stdout.readline():
            yield line.rstrip("\n")

    def line(self) -> str:
        """Return the next line it prints.

        Raises:
            CommandError: It ended.
        """
        for line in self.lines():
            return line
        raise CommandError(f"{self._name} ended by itself")

    def go_on(self) -> None:
        """Let it go on."""
        self._stdin.write("\n")
        self._stdin.flush()

    def kill(self) -> int:
        """Kill it; returns its exit code."""
        self._process.kill()
        return self._process.wait()

    def finish(self) -> None:
        """Wait for its end.

        Raises:
            CommandError: It failed.
        """
        code = self._process.wait()
        if code:
            raise CommandError(f"{self._name} failed with exit code {code}")


@contextmanager
def started(module: str, *arguments: str, name: str) -> Generator[Child]:
    """Run a module of ours in a process of its own, which is gone when the context ends.

    Args:
        module: What to run.
        arguments: What it gets.
        name: How an error calls the process.
    """
    with subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # An interrupt of the demo is not the child's business.
        start_new_session=True,
    ) as process:
        try:
            yield Child(process, name)
        finally:
            process.kill()
