"""Draw the chart of `docs/benchmarks.md` from the figures of its table of LangGraph savers.

Run this file after the table has changed. The colours are readable on white and on black, because
the picture does not know on which page it stands.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "benchmarks.md"
CHART = DOCS / "assets" / "bytes-on-disk.svg"

TITLE = "Bytes in the database for each byte of the final state"
SUBTITLE = "200 turns of a LangGraph graph, 600 checkpoints; less is better"
TEXT, THEIRS, OURS = "#7e848e", "#d9772b", "#1a9c86"
WIDTH, LEFT, ROW, TOP, BOTTOM = 800, 365, 34, 66, 26
LONGEST = WIDTH - LEFT - 70

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


def bar(row: Saver, place: int, longest: float) -> list[str]:
    """Return the name, the bar and the figure of one row."""
    y = TOP + place * ROW
    width = max(2.0, LONGEST * row.ratio / longest)
    color, weight = (OURS, "bold") if row.is_ours else (THEIRS, "normal")
    text = f'<text font-weight="{weight}" y="{y + 16}"'
    return [
        f'{text} x="{LEFT - 10}" text-anchor="end">{escape(label(row))}</text>',
        f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="22" rx="2" fill="{color}"/>',
        f'{text} x="{LEFT + width + 8:.1f}">{row.ratio:g}</text>',
    ]


def chart(page: str) -> str:
    """Return the picture: a bar a saver, all on one scale that begins at 0."""
    rows = savers(page)
    longest = max(row.ratio for row in rows)
    box = f'viewBox="0 0 {WIDTH} {TOP + len(rows) * ROW + BOTTOM}"'
    font = f'font-family="system-ui, sans-serif" font-size="14" fill="{TEXT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" {font}>',
        f"<title>{TITLE}</title>",
        f'<text y="20" font-size="17" font-weight="bold">{TITLE}</text>',
        f'<text y="42">{SUBTITLE}</text>',
    ]
    for place, row in enumerate(rows):
        lines += bar(row, place, longest)
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    CHART.parent.mkdir(exist_ok=True)
    CHART.write_text(chart(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
