"""The progress of a long command, on a terminal."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from locus_memory.cli.printing.output import console, sees_progress

__all__ = ["shown_progress"]


@contextmanager
def shown_progress(*, quiet: bool = False) -> Generator[Progress]:
    """Yield the bars of a command, which disappear when it ends."""
    output = console(stderr=True)
    # Before Rich 15, bars that are disabled end with an empty line.
    output.quiet = quiet or not sees_progress(output)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=output,
        transient=True,
        disable=output.quiet,
    ) as progress:
        yield progress
