"""The command `reembed`: recomputes the vectors of stored items with another model."""

from __future__ import annotations

from dataclasses import asdict, astuple
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from locus_memory.cli.options.models import EmbedderOption, open_embedder
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.progress import shown_progress
from locus_memory.cli.printing.tables import print_report
from locus_memory.inspection.names import (
    Labels,
    format_namespace,
    namespaces_below,
    parse_namespace,
)
from locus_memory.inspection.text import snippet, visible_name

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from locus_memory.backends.base import Backend
    from locus_memory.retrieval.reembed import ReembedReport

__all__ = ["reembed"]

_EMBEDDER = "local"
_NAME = 40


def reembed(
    session: Session,
    namespace: Annotated[
        str | None,
        typer.Argument(
            metavar="NAMESPACE",
            help="Labels joined by '/', or a JSON list; all namespaces by default.",
            show_default=False,
        ),
    ] = None,
    *,
    embedder: EmbedderOption = _EMBEDDER,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Also the namespaces below.")
    ] = False,
    include_unmarked: Annotated[
        bool,
        typer.Option(
            "--include-unmarked", help="Also items without a vector or with one of unknown origin."
        ),
    ] = False,
) -> None:
    """Recompute the vectors of stored items with another model.

    You can stop it at any time: the next call continues where it stopped.
    """
    work = partial(
        _reembed,
        labels=None if namespace is None else parse_namespace(namespace),
        embedder=_EMBEDDER if embedder is None else embedder,
        recursive=recursive,
        include_unmarked=include_unmarked,
        quiet=session.as_json,
    )
    report = session.run(work)
    session.answer(asdict(report), partial(_render, report=report))


async def _reembed(
    backend: Backend,
    *,
    labels: Labels | None,
    embedder: str,
    recursive: bool,
    include_unmarked: bool,
    quiet: bool,
) -> ReembedReport:
    from locus_memory.retrieval.reembed import ReembedReport  # noqa: PLC0415 - help must be quick
    from locus_memory.retrieval.reembed import reembed as run  # noqa: PLC0415 - the same

    model = open_embedder(embedder)
    roots = [labels] if labels else [each async for each in namespaces_below(backend.store, (), 1)]
    reports = [ReembedReport()]
    with shown_progress(quiet=quiet) as progress:
        for root in roots:
            task = progress.add_task(snippet(visible_name(format_namespace(root)), _NAME))
            report = await run(
                backend.store,
                root,
                model,
                recursive=recursive or labels is None,
                include_unmarked=include_unmarked,
                on_progress=partial(_show, progress, task),
            )
            reports.append(report)
    return ReembedReport(*(sum(counts) for counts in zip(*map(astuple, reports), strict=True)))


def _show(progress: Progress, task: TaskID, report: ReembedReport) -> None:
    progress.update(task, total=report.total, completed=report.seen)


def _render(console: Console, *, report: ReembedReport) -> None:
    names = ["embedded", "current", "skipped", "left", "total"]
    row = [getattr(report, name) for name in names]
    print_report(console, [f">{name}" for name in names], row)
