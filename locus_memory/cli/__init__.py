"""The `locus-memory` command.

Each command uses the public names of the library, answers people with tables and programs with
JSON, and ends with an exit code of one table. Errors of the library become one line on stderr.

Read `app.py` first, then `commands/`; `options/` reads values, `printing/` shows them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave the process with its exit code.

    Args:
        arguments: What follows the command's name; `sys.argv`'s by default.
    """
    try:
        code = _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        # While modules are imported, or a moment before the end.
        code = 130
    sys.exit(code)


def _run(arguments: Sequence[str]) -> int | str:
    """Return the exit code, or the line to end with; an interrupt may hit each import."""
    from locus_memory._internal.providers.drivers import require  # noqa: PLC0415 - an interrupt is no traceback
    from locus_memory.errors import MissingDriverError  # noqa: PLC0415

    try:
        require("rich", "cli", needed_by="locus-memory")
        app = require("locus_memory.cli.app", "cli", needed_by="locus-memory")
    except MissingDriverError as error:
        return str(error)
    code: int = app.run(arguments)
    return code
