"""The progress of a long command, on a terminal."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from locus_memory.cli.printing.output import console, sees_progress

__all__ = ["shown_progress"]


@contextmanager
def shown_progress(*, quiet: bool) -> Generator[Progress]:
    """Yield the bars of a command, which disappear when it ends."""
    output = console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    shown = sees_progress(output) and not quiet
    with Progress(*columns, console=output, transient=True, disable=not shown) as progress:
        yield progress
