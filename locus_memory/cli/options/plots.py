"""The option `--plot`, and the file that it names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from locus_memory.inspection.errors import CommandError

if TYPE_CHECKING:
    from locus_memory.cli.printing.plots import LineChart

__all__ = ["PlotOption", "write_plot"]


def _writable(path: Path | None) -> Path | None:
    """Return the path; a bad one is refused before the work that it would show."""
    if path is None:
        return None
    if path.suffix.lower() != ".svg":
        raise typer.BadParameter("the plot is SVG: name a file that ends with .svg")
    if path.is_dir() or not path.parent.is_dir():
        raise typer.BadParameter(f"cannot write {path}: name a file in a folder that exists")
    return path


PlotOption = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="FILE.svg", help="Also draw the result as SVG.", callback=_writable
    ),
]


def write_plot(path: Path, chart: LineChart) -> None:
    """Draw a chart, and write it to a file, in place of an earlier one.

    Raises:
        CommandError: The file cannot be written.
    """
    from locus_memory.cli.printing.plots import draw_lines  # noqa: PLC0415 - help must be quick

    drawing = draw_lines(chart)
    try:
        path.write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error
