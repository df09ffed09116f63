"""The report of runs of questions, printed and written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from locus_memory.cli.options.plots import write_file
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import remark
from locus_memory.cli.printing.tables import print_table
from locus_memory.cli.quality.charts import quality_plots
from locus_memory.evaluation.quality.documents import (
    Table,
    quality_tables,
    write_html,
    write_markdown,
)
from locus_memory.evaluation.quality.figures import read_quality

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["report_runs"]


def report_runs(session: Session, paths: Sequence[Path], to: Path | None) -> None:
    """Print the report of runs; write it to a file, too, if one is named.

    Raises:
        CommandError: The file cannot be written.
    """
    quality = read_quality(paths)
    tables = quality_tables(quality)
    document = quality.to_dict()
    if to is not None:
        plots = quality_plots(quality)
        if to.suffix.lower() == ".md":
            named = [to.with_name(f"{to.stem}-{number}.svg") for number in range(1, len(plots) + 1)]
            for path, plot in zip(named, plots, strict=True):
                write_file(path, plot)
            write_file(to, write_markdown(tables, [quote(path.name) for path in named]))
        else:
            write_file(to, write_html(tables, plots))
        document["report"] = str(to)
    session.answer(document, partial(_render, tables=tables, to=to))


def _render(console: Console, tables: Sequence[Table], to: Path | None) -> None:
    if to is not None:
        remark(console, f"report: {to}")
    for table in tables:
        console.print()
        remark(console, table.title)
        print_table(console, table.columns, table.rows)
