"""The progress of a long command, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text
from typing_extensions import override

from locus_memory.cli.printing.output import console, marked, sees_progress
from locus_memory.inspection.text import visible_name

__all__ = ["one_bar", "shown_progress", "tracked"]

_Entry = TypeVar("_Entry")


class _Name(TextColumn):
    """The name of a task, such as that of a thread, with marks and controls escaped."""

    @override
    def render(self, task: Task) -> Text:
        return Text(marked(visible_name(super().render(task).plain)))


@contextmanager
def shown_progress(*, quiet: bool = False) -> Generator[Progress]:
    """Yield the bars of a command, which disappear when it ends."""
    output = console(stderr=True)
    # Before Rich 15, bars that are disabled end with an empty line.
    output.quiet = quiet or not sees_progress(output)
    with Progress(
        _Name("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=output,
        transient=True,
        disable=output.quiet,
    ) as progress:
        yield progress


@contextmanager
def one_bar(name: str, *, quiet: bool = False) -> Generator[Callable[..., None]]:
    """Yield what shows how far one task is, by the arguments of `Progress.update`."""
    with shown_progress(quiet=quiet) as progress:
        yield partial(progress.update, progress.add_task(name, total=None))


def tracked(entries: Sequence[_Entry], name: str, *, quiet: bool = False) -> Iterator[_Entry]:
    """Yield the entries of something that is read, with a bar of its name."""
    with shown_progress(quiet=quiet) as progress:
        yield from progress.track(entries, description=f"reading {name}")
