"""The command `stats`: the stored size of threads, and a plot of how one grew."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.plots import PlotOption, write_plot
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import remark
from locus_memory.cli.printing.progress import tracked
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.names import find_thread
from locus_memory.inspection.sizes import (
    Step,
    Watch,
    describe_size,
    measure_growth,
    measure_threads,
    size_on_disk,
)
from locus_memory.inspection.text import number

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.cli.printing.plots import LineChart

__all__ = ["growth_chart", "stats"]

_COUNTS = ("total_checkpoints", "full_checkpoints", "delta_checkpoints", "stored_bytes")


def stats(
    session: Session,
    thread: Annotated[
        str | None,
        typer.Argument(metavar="THREAD", help="Id of one thread; all threads by default."),
    ] = None,
    *,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Load every state and compare with its full JSON."),
    ] = False,
    plot: PlotOption = None,
) -> None:
    """Show the stored size of threads; with --deep, also that of their full JSON.

    With --plot, the growth of THREAD is drawn: its stored bytes against its full JSON.
    """
    watch = partial(tracked, quiet=session.as_json)
    if plot is None:
        work = partial(measure_threads, thread=thread, deep=deep, watch=watch)
        rows = session.run(work)
    elif thread is None:
        raise UsageError("--plot draws one thread: name a THREAD")
    else:
        row, growth = session.run(partial(_grown, thread=thread, watch=watch))
        rows, deep = [row], True
        write_plot(plot, growth_chart(row["thread_id"], growth))
    if thread is not None and not rows:
        raise CommandError(f"no thread {thread!r}")
    document: dict[str, Any] = {"threads": rows, "disk_bytes": size_on_disk(session.path)}
    if plot is not None:
        document["plot"] = str(plot)
    session.answer(document, partial(_render, document=document, deep=deep))


async def _grown(
    backend: Backend, *, thread: str, watch: Watch
) -> tuple[dict[str, Any], list[Step]]:
    """Return the size of a thread, and what each of its checkpoints added.

    Raises:
        CommandError: There is no such thread.
    """
    name = await find_thread(backend.checkpointer, thread)
    if not await backend.checkpointer.exists(name):
        raise CommandError(f"no thread {thread!r}")
    growth = [each async for each in measure_growth(backend.checkpointer, name, watch)]
    return await describe_size(backend.checkpointer, name, growth), growth


def growth_chart(thread: str, growth: list[Step]) -> LineChart:
    """Return the chart of a thread: all bytes up to each of its checkpoints.

    Args:
        thread: The name of the thread.
        growth: What each checkpoint added, the oldest first; at least one.
    """
    from locus_memory.cli.printing.plots import (  # noqa: PLC0415 - help must be quick
        Axis,
        Line,
        LineChart,
        write_bytes,
    )

    full = list(accumulate(each.json_bytes for each in growth))
    stored = list(accumulate(each.stored_bytes for each in growth))
    share = f", {stored[-1] / full[-1]:.2%} of the JSON" if full[-1] else ""
    return LineChart(
        title=f"Growth of {thread}",
        subtitle=f"{number(len(growth))} checkpoints, each with the whole state of its moment",
        x=Axis(label="checkpoints", is_whole=True, covers=(0,)),
        y=Axis(label="bytes of all checkpoints so far", write=write_bytes, covers=(0,)),
        lines=[
            Line(f"stored: {write_bytes(stored[-1])}{share}", list(enumerate(stored, 1))),
            Line(f"as full JSON: {write_bytes(full[-1])}", list(enumerate(full, 1))),
        ],
    )


def _render(console: Console, document: dict[str, Any], *, deep: bool) -> None:
    columns = ["thread", ">checkpoints", ">full", ">delta", ">stored"]
    rows: list[list[Cell]] = [
        [row["thread_id"], *(row[name] for name in _COUNTS)] for row in document["threads"]
    ]
    if deep:
        columns += [">as JSON", ">ratio"]
        for cells, row in zip(rows, document["threads"], strict=True):
            cells += [row["json_bytes"], f"{row['ratio']:.2%}"]
    print_table(console, columns, rows, empty="no threads")
    if document["disk_bytes"] is not None:
        remark(console, f"on disk: {number(document['disk_bytes'])} bytes, including the store")
    if "plot" in document:
        remark(console, f"plot: {document['plot']}")
