"""The options `--plot` and `--report-to`, and the files that they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from locus_memory.inspection.errors import CommandError

if TYPE_CHECKING:
    from locus_memory.cli.printing.plots import LineChart

__all__ = ["PlotOption", "ReportOption", "write_file", "write_plot"]


def _writable(*endings: str) -> Callable[[Path | None], Path | None]:
    """Return what refuses a bad path before the work that the file would show."""

    def checked(path: Path | None) -> Path | None:
        if path is None:
            return None
        if path.suffix.lower() not in endings:
            raise typer.BadParameter(f"name a file that ends with {' or '.join(endings)}")
        if path.is_dir() or not path.parent.is_dir():
            raise typer.BadParameter(f"cannot write {path}: name a file in a folder that exists")
        return path

    return checked


PlotOption = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE.svg",
        help="Also draw the result as SVG.",
        callback=_writable(".svg"),
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report-to",
        metavar="FILE",
        help="Also write the report as Markdown, with its plots beside it, or as HTML.",
        callback=_writable(".md", ".html"),
    ),
]


def write_plot(path: Path, chart: LineChart) -> None:
    """Draw a chart, and write it to a file, in place of an earlier one.

    Raises:
        CommandError: The file cannot be written.
    """
    from locus_memory.cli.printing.plots import draw_lines  # noqa: PLC0415 - help must be quick

    write_file(path, draw_lines(chart))


def write_file(path: Path, content: str) -> None:
    """Write a file in place of an earlier one.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error
