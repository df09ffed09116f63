"""Draw the growth curve of `docs/benchmarks.md` from the figures of its table.

Run this file after the table has changed. Both scales are logarithmic: a line that is flat does not
grow with the namespace.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.sax.saxutils import escape

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "benchmarks.md"
CHART = DOCS / "assets" / "growth.svg"

TITLE = "SQLite: milliseconds of processor time, by the items of one namespace"
TEXT, GRID = "#7e848e", "#7e848e44"
COLORS = ("#1a9c86", "#2b7fd9", "#d9772b", "#a05bc8", "#c8435b", "#8a8f2a", "#5b6ec8")
FIGURES = (
    "vector search, ms",
    "filtered vector search, ms",
    "text search of common words, ms",
    "hybrid query, ms",
    "newest, ms",
    "scan, ms",
    "get, ms",
)
LEFT, TOP, WIDTH, HEIGHT = 60, 50, 420, 300
LOWEST, HIGHEST = -2.0, 3.0


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


def x_of(size: float) -> float:
    return LEFT + WIDTH * (math.log10(size) - 3) / 3


def y_of(milliseconds: float) -> float:
    place = (math.log10(milliseconds) - LOWEST) / (HIGHEST - LOWEST)
    return TOP + HEIGHT * (1 - min(1.0, max(0.0, place)))


def grid(sizes: list[int]) -> list[str]:
    """Return the lines of both scales, with their figures."""
    lines = []
    for power in range(int(LOWEST), int(HIGHEST) + 1):
        y = y_of(10.0**power)
        lines.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="{GRID}"/>')
        lines.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
        )
    for size in sizes:
        x = x_of(size)
        lines.append(f'<path d="M{x:.1f} {TOP}v{HEIGHT}" stroke="{GRID}"/>')
        y = TOP + HEIGHT + 20
        lines.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{size:,}</text>')
    return lines


def chart(page: str) -> str:
    """Return the picture: a line for each figure, with its name at its end."""
    sizes, found = figures(page)
    ends = sorted(found, key=lambda name: found[name][-1], reverse=True)
    box = f'viewBox="0 0 760 {TOP + HEIGHT + 36}"'
    font = f'font-family="system-ui, sans-serif" font-size="13" fill="{TEXT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" {font}>',
        f"<title>{TITLE}</title>",
        f'<text y="22" font-size="16" font-weight="bold">{TITLE}</text>',
        *grid(sizes),
    ]
    below = 0.0
    for color, name in zip(COLORS, ends, strict=True):
        places = zip(map(x_of, sizes), map(y_of, found[name]), strict=True)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        lines.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        below = max(y_of(found[name][-1]) + 4, below + 16)
        label = escape(name.removesuffix(", ms"))
        lines.append(f'<text x="{LEFT + WIDTH + 8}" y="{below:.1f}" fill="{color}">{label}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    CHART.write_text(chart(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
