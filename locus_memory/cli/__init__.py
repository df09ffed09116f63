"""The `locus-memory` command.

Each command uses only public names of the library. It prints tables for people and JSON for
programs. One table defines the exit codes. An error of the library becomes one line on stderr.

Read `app.py` first, then `commands/`. `options/` parses values, `printing/` prints results.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit the process with its exit code.

    Args:
        arguments: The arguments after the command's name; those of `sys.argv` by default.
    """
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        # The interrupt came during an import or just before the exit.
        code = 130
    sys.exit(code)


def _run(arguments: Sequence[str]) -> int | str:
    """Return the exit code or an error line; an interrupt may come during any import."""
    if arguments[:1] == ["hook"]:
        # A coding agent waits for it at each message, so it imports neither Typer nor Rich.
        from locus_memory.plug.command import run  # noqa: PLC0415

        arguments = run(arguments[1:])
    from locus_memory._internal.providers.drivers import require  # noqa: PLC0415 - an interrupt prints no traceback
    from locus_memory.errors import MissingDriverError  # noqa: PLC0415

    try:
        require("rich", "cli", needed_by="locus-memory")
        app = require("locus_memory.cli.app", "cli", needed_by="locus-memory")
    except MissingDriverError as error:
        return str(error)
    code: int = app.run(arguments)
    return code
