"""The child processes of the demo: read line by line over pipes, and always ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import orjson
from typing_extensions import override

from locus_memory.inspection.errors import CommandError

__all__ = ["Child", "command_output"]


class Child(subprocess.Popen[str]):
    """A process that prints lines, and waits for a line before it continues.

    It is killed at the end of its context.

    Args:
        name: Its name in errors.
        module: The module of this package to run.
        arguments: Its arguments.
    """

    def __init__(self, name: str, module: str, *arguments: str) -> None:
        self._name = name
        super().__init__(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # An interrupt of the demo must not reach the child.
            start_new_session=True,
        )

    def lines(self) -> Iterator[str]:
        """Yield the lines it prints, until it ends."""
        return (line.rstrip("\n") for line in self.stdout or ())

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
        print(file=self.stdin, flush=True)

    def finish(self) -> None:
        """Wait until the process ends.

        Raises:
            CommandError: The process failed.
        """
        if code := self.wait():
            raise CommandError(f"{self._name} failed with exit code {code}")

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        super().__exit__(kind, value, traceback)


def command_output(name: str, *arguments: str, given: bytes | None = None) -> Any:
    """Return the JSON that a command of ours prints, from a new process.

    Args:
        name: The name of the call in errors.
        arguments: The arguments of `locus-memory`.
        given: What it reads from stdin; `None`: as this process.

    Raises:
        CommandError: The command failed.
    """
    done = subprocess.run(  # noqa: S603 - a module of this package
        [sys.executable, "-m", "locus_memory.cli", "--json", *arguments],
        input=given,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise CommandError(f"{name} failed with exit code {done.returncode}")
    return orjson.loads(done.stdout)
