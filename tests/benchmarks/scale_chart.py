"""Draw the growth curve of `docs/benchmarks.md` from the figures of its table.

Run this file after the table has changed. Both scales are logarithmic: a line that is flat does not
grow with the namespace.
"""

from __future__ import annotations

import re
from pathlib import Path

from locus_memory.cli.printing.plots import Axis, Line, LineChart, draw_lines

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "benchmarks.md"
CHART = DOCS / "assets" / "growth.svg"

FIGURES = (
    "vector search, ms",
    "filtered vector search, ms",
    "text search of common words, ms",
    "hybrid query, ms",
    "newest, ms",
    "scan, ms",
    "get, ms",
)


def figures(page: str) -> tuple[list[int], dict[str, list[float]]]:
    """Return the sizes of the table, and the figures of each row that is drawn."""
    _, _, rest = page.partition("| sqlite, one namespace |")
    rows = rest.partition("\n\n")[0].splitlines()
    sizes = [int(cell.replace(",", "")) for cell in re.findall(r"[\d,]+", rows[0])]
    found = dict[str, list[float]]()
    for row in rows[2:]:
        name, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        if name in FIGURES:
            found[name] = [float(cell) for cell in cells]
    return sizes, found


def chart(page: str) -> str:
    """Return the picture: a line for each figure, the highest one first."""
    sizes, found = figures(page)
    ends = sorted(found, key=lambda name: found[name][-1], reverse=True)
    return draw_lines(
        LineChart(
            title="SQLite: time of a query, by the items of its namespace",
            x=Axis(label="items of the namespace", is_log=True, ticks=tuple(sizes)),
            y=Axis(label="milliseconds of processor time", is_log=True),
            lines=[
                Line(name.removesuffix(", ms"), list(zip(sizes, found[name], strict=True)))
                for name in ends
            ],
        )
    )


if __name__ == "__main__":
    CHART.write_text(chart(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
