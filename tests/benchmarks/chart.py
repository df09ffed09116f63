"""Draw the chart of `docs/benchmarks.md` from the figures of its table of LangGraph savers.

Run this file after the table has changed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from locus_memory.cli.printing.plots import COLORS, WIDTH, heading, picture, text

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "benchmarks.md"
CHART = DOCS / "assets" / "bytes-on-disk.svg"

TITLE = "Bytes in the database for each byte of the final state"
SUBTITLE = "200 turns of a LangGraph graph, 600 checkpoints; less is better"
OURS, THEIRS = COLORS[:2]
LEFT, ROW, BOTTOM = 370, 34, 16
LONGEST = WIDTH - LEFT - 80

ROWS = re.compile(
    r"^\| (LangGraph Async\w+Saver|LocusSaver)(, DeltaChannel)? \| (\w+) \| ([\d.]+) \|",
    re.MULTILINE,
)


class Saver(NamedTuple):
    """A row of the table: what saves, what for, where, and how many bytes for one of JSON."""

    name: str
    channel: str
    place: str
    ratio: float

    @property
    def is_ours(self) -> bool:
        return self.name == "LocusSaver"


def savers(page: str) -> list[Saver]:
    """Return the rows of each database that has both: theirs, then ours."""
    rows = [
        Saver(name, channel, place, float(ratio))
        for name, channel, place, ratio in ROWS.findall(page)
    ]
    measured = {(row.place, row.channel) for row in rows if not row.is_ours}
    return [row for row in rows if (row.place, row.channel) in measured]


def times_less(rows: list[Saver], place: str, channel: str = "") -> float:
    """Return how many times the room of ours theirs takes."""
    theirs, ours = (row.ratio for row in rows if (row.place, row.channel) == (place, channel))
    return theirs / ours


def label(row: Saver) -> str:
    return f"{row.place}{row.channel}: {row.name.removeprefix('LangGraph ')}"


def bar(row: Saver, y: float, longest: float) -> list[str]:
    """Return the name, the bar and the figure of one row."""
    width = max(2.0, LONGEST * row.ratio / longest)
    color, weight = (OURS, "bold") if row.is_ours else (THEIRS, "normal")
    style = f'font-weight="{weight}"'
    place = f'x="{LEFT}" y="{y:g}" width="{width:.1f}" height="22"'
    return [
        text(LEFT - 10, y + 16, label(row), f'{style} text-anchor="end"'),
        f'<rect class="bar" {place} rx="2" fill="{color}"/>',
        text(LEFT + width + 8, y + 16, f"{row.ratio:g}", style),
    ]


def chart(page: str) -> str:
    """Return the picture: a bar a saver, all on one scale that begins at 0."""
    rows = savers(page)
    longest = max(row.ratio for row in rows)
    body, top = heading(TITLE, SUBTITLE)
    for place, row in enumerate(rows):
        body += bar(row, top + 10 + place * ROW, longest)
    told = "; ".join(f"{label(row)}: {row.ratio:g}" for row in rows)
    return picture(TITLE, f"{SUBTITLE}. {told}.", top + 10 + len(rows) * ROW + BOTTOM, body)


if __name__ == "__main__":
    CHART.parent.mkdir(exist_ok=True)
    CHART.write_text(chart(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
