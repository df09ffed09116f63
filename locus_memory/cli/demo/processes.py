"""The child processes of the demo: read line by line over pipes, and always ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO, cast

from locus_memory.inspection.errors import CommandError

__all__ = ["Child", "started"]


class Child:
    """A process that prints lines, and waits for a line before it continues.

    Args:
        process: The process, started with pipes.
        name: Its name in errors.
    """

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self.pid = process.pid
        self._process = process
        self._name = name
        # The process was started with both pipes.
        self._stdin = cast("IO[str]", process.stdin)
        self._stdout = cast("IO[str]", process.stdout)

    def lines(self) -> Iterator[str]:
        """Yield the lines it prints, until it ends."""
        while line := self._stdout.readline():
            yield line.rstrip("\n")

    def line(self) -> str:
        """Return the next line it prints.

        Raises:
            CommandError: The process ended.
        """
        for line in self.lines():
            return line
        raise CommandError(f"{self._name} ended by itself")

    def go_on(self) -> None:
        """Let the process continue."""
        self._stdin.write("\n")
        self._stdin.flush()

    def kill(self) -> int:
        """Kill it; returns its exit code."""
        self._process.kill()
        return self._process.wait()

    def finish(self) -> None:
        """Wait until the process ends.

        Raises:
            CommandError: The process failed.
        """
        code = self._process.wait()
        if code:
            raise CommandError(f"{self._name} failed with exit code {code}")


@contextmanager
def started(module: str, *arguments: str, name: str) -> Generator[Child]:
    """Run a module of this package in a child process, which ends with the context.

    Args:
        module: The module to run.
        arguments: Its arguments.
        name: The name of the process in errors.
    """
    with subprocess.Popen(  # noqa: S603 - a module of this package
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # An interrupt of the demo must not reach the child.
        start_new_session=True,
    ) as process:
        try:
            yield Child(process, name)
        finally:
            process.kill()
