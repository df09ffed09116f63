"""The command that gives stored items the vectors of another model."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from locus_memory.cli.names import parse_namespace
from locus_memory.cli.options import AsJson, Url
from locus_memory.cli.output import console, number, table
from locus_memory.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.retrieval.reembed import ReembedReport

__all__ = ["reembed"]


def reembed(
    context: typer.Context,
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="Labels joined by /.")],
    *,
    embedder: Annotated[
        str,
        typer.Option(
            "--embedder", metavar="NAME", help="Such as local or openai:text-embedding-3-small."
        ),
    ] = "local",
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="The namespaces below as well.")
    ] = False,
    include_unmarked: Annotated[
        bool,
        typer.Option(
            "--include-unmarked", help="Items as well whose vectors are of unknown origin, or none."
        ),
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make the vectors of stored items anew with another model.

    Stop it whenever you like: called again, it goes on where it was.
    """
    from locus_memory.retrieval.embedders.registry import (  # noqa: PLC0415 - help must be quick
        get_embedder,
    )

    session = Session.of(context, url, as_json=as_json)
    work = partial(
        _reembed,
        namespace=parse_namespace(namespace),
        embedder=get_embedder(embedder),
        recursive=recursive,
        include_unmarked=include_unmarked,
        quiet=session.as_json,
    )
    report = session.run(work)
    session.answer(asdict(report), partial(_render, report=report))


async def _reembed(
    backend: Backend,
    *,
    namespace: tuple[str, ...],
    embedder: Embedder,
    recursive: bool,
    include_unmarked: bool,
    quiet: bool,
) -> ReembedReport:
    from locus_memory.retrieval.reembed import reembed as run  # noqa: PLC0415 - as above

    output = console(stderr=True)
    shown = output.is_terminal and not quiet
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=output, transient=True, disable=not shown) as progress:
        task = progress.add_task(embedder.name, total=None)

        def show(report: ReembedReport) -> None:
            progress.update(task, total=report.total, completed=report.seen)

        return await run(
            backend.store,
            namespace,
            embedder,
            recursive=recursive,
            include_unmarked=include_unmarked,
            on_progress=show,
        )


def _render(console: Console, report: ReembedReport) -> None:
    names = ["embedded", "current", "skipped", "left", "total"]
    row = [number(getattr(report, name)) for name in names]
    console.print(table([f">{name}" for name in names], [row]))
