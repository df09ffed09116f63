"""The `locus-memory` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from locus_memory.drivers import require
from locus_memory.errors import MissingDriverError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave the process with its exit code.

    Args:
        arguments: What follows the command's name; `sys.argv`'s by default.
    """
    try:
        require("rich", "cli", needed_by="locus-memory")
        app = require("locus_memory.cli.app", "cli", needed_by="locus-memory")
    except MissingDriverError as error:
        sys.exit(str(error))
    code: int = app.run(sys.argv[1:] if arguments is None else list(arguments))
    sys.exit(code)
