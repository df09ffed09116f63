"""A chart of lines over two scaled axes; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from locus_memory._internal.plots.picture import (
    COLORS,
    MARGIN,
    WIDTH,
    fit_text,
    grid_line,
    heading,
    picture,
    text,
    text_width,
)
from locus_memory._internal.plots.scales import Scale, linear_scale, log_scale, write_number
from locus_memory.errors import InvalidArgumentError

__all__ = ["Axis", "Line", "LineChart", "draw_lines"]

Point = tuple[float, float]

_HEIGHT: Final = 300
_ROW: Final = 22
_BELOW: Final = 62
_SWATCH: Final = 26
_DASHES: Final = ("", "9 4", "3 3", "12 4 3 4")
_FEW: Final = 25
"""Up to so many points have a dot each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis.

    Attributes:
        label: The quantity and its unit.
        write: Writes the value of a tick.
        is_log: Whether equal distances are equal ratios.
        is_whole: Whether its values are counts.
        ticks: The values to mark; by default round numbers.
        covers: Values that it covers besides those of the lines, such as 0.
    """

    label: str
    write: Callable[[float], str] = write_number
    is_log: bool = False
    is_whole: bool = False
    ticks: tuple[float, ...] = ()
    covers: tuple[float, ...] = ()

    def scale(self, values: Sequence[float]) -> Scale:
        """Return the scale for the values of all lines."""
        covered = [*values, *self.covers]
        if self.is_log:
            return log_scale(covered, self.ticks)
        return linear_scale(covered, self.ticks, is_whole=self.is_whole)


@dataclass(frozen=True, slots=True)
class Line:
    """A line.

    Attributes:
        label: Its name in the legend.
        points: Pairs of x and y, at least one, in the order in which they are joined.
    """

    label: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """A chart of lines.

    Attributes:
        title: The title.
        subtitle: A second line; empty: none.
        x: The horizontal axis.
        y: The vertical axis.
        lines: The lines, at least one, in the order of the legend.
    """

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    subtitle: str = ""


@dataclass(frozen=True, slots=True)
class _Area:
    """The place of the lines in the picture, in pixels, with the scales of both axes."""

    left: float
    top: float
    width: float
    x: Scale
    y: Scale

    def at(self, point: Point) -> Point:
        across, up = self.x.place(point[0]), self.y.place(point[1])
        return self.left + self.width * across, self.top + _HEIGHT * (1 - up)


def draw_lines(chart: LineChart) -> str:
    """Return a chart as an SVG document.

    Raises:
        InvalidArgumentError: There is no line, a line has no point, or a value is not a number that
            its axis can show.
    """
    if not chart.lines or not all(line.points for line in chart.lines):
        raise InvalidArgumentError("a chart has lines, and each line has points")
    x = chart.x.scale([point[0] for line in chart.lines for point in line.points])
    y = chart.y.scale([point[1] for line in chart.lines for point in line.points])
    body, top = heading(chart.title, chart.subtitle)
    legend, top = _legend(chart.lines, top)
    marks = [fit_text(chart.y.write(tick), WIDTH / 5) for tick in y.ticks]
    left = MARGIN + max(map(text_width, marks)) + 10
    area = _Area(left, top + 46, WIDTH - MARGIN - 14 - left, x, y)
    body += [*legend, *_vertical(chart.y, area, marks), *_horizontal(chart.x, area)]
    for place, line in enumerate(chart.lines):
        body += _line(line, place, area)
    return picture(chart.title, _in_words(chart), area.top + _HEIGHT + _BELOW, body)


def _legend(lines: Sequence[Line], top: float) -> tuple[list[str], float]:
    """Return the legend, in as many rows as it needs, and where it ends."""
    drawn: list[str] = []
    x, y = float(MARGIN), top + 12
    for place, line in enumerate(lines):
        label = fit_text(line.label, WIDTH - 2 * MARGIN - _SWATCH - 8)
        width = _SWATCH + 8 + text_width(label) + 22
        if x > MARGIN and x + width > WIDTH - MARGIN:
            x, y = float(MARGIN), y + _ROW
        drawn.append(f'<path d="M{x:.1f} {y - 4:.1f}h{_SWATCH}" {_stroke(place)}/>')
        drawn.append(text(x + _SWATCH + 8, y, label))
        x += width
    return drawn, y


def _vertical(axis: Axis, area: _Area, marks: Sequence[str]) -> Iterator[str]:
    """Yield the ticks of the vertical axis, and its label above them."""
    yield text(MARGIN, area.top - 16, fit_text(axis.label, WIDTH - 2 * MARGIN), muted=True)
    for tick, mark in zip(area.y.ticks, marks, strict=True):
        y = area.at((area.x.low, tick))[1]
        yield grid_line(f"M{area.left:.1f} {y:.1f}h{area.width:.1f}")
        yield text(area.left - 8, y + 4, mark, 'text-anchor="end"', muted=True)


def _horizontal(axis: Axis, area: _Area) -> Iterator[str]:
    """Yield the ticks of the horizontal axis, and its label below them.

    A tick whose text would touch that of the one before has a line alone.
    """
    end = 0.0
    bottom = area.top + _HEIGHT
    for tick in area.x.ticks:
        x = area.at((tick, area.y.low))[0]
        yield grid_line(f"M{x:.1f} {bottom:.1f}v6")
        mark = fit_text(axis.write(tick), WIDTH / 5)
        half = text_width(mark) / 2
        middle = min(x, WIDTH - half)
        if middle - half > end:
            yield text(middle, bottom + 22, mark, 'text-anchor="middle"', muted=True)
            end = middle + half + 6
    middle = area.left + area.width / 2
    label = fit_text(axis.label, area.width)
    yield text(middle, bottom + 46, label, 'text-anchor="middle"', muted=True)


def _line(line: Line, place: int, area: _Area) -> Iterator[str]:
    """Yield the line, and its dots if they are few."""
    points = [area.at(point) for point in line.points]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in _thinned(points))
    yield f'<polyline points="{joined}" {_stroke(place)} stroke-linejoin="round"/>'
    if len(points) <= _FEW:
        color = COLORS[place % len(COLORS)]
        yield from (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in points
        )


def _thinned(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points, without those between the lowest and the highest of a pixel's width."""
    column: list[Point] = []
    for point in points:
        if column and int(point[0]) != int(column[0][0]):
            yield from _outline(column)
            column = []
        column.append(point)
    yield from _outline(column)


def _outline(column: list[Point]) -> list[Point]:
    """Return the first, the lowest, the highest and the last point, in their order."""
    heights = [y for _, y in column]
    kept = {0, heights.index(min(heights)), heights.index(max(heights)), len(column) - 1}
    return [column[place] for place in sorted(kept)]


def _stroke(place: int) -> str:
    """Return the style of a line: lines differ in colour and in their dashes."""
    dashes = _DASHES[place % len(_DASHES)]
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'fill="none" stroke="{COLORS[place % len(COLORS)]}" stroke-width="2.2"{dashed}'


def _in_words(chart: LineChart) -> str:
    """Return the description of a chart: its axes, and both ends of each line."""
    told = [f"{chart.y.label} by {chart.x.label}."]
    for line in chart.lines:
        (x0, y0), (x1, y1) = line.points[0], line.points[-1]
        began, ended = f"{chart.y.write(y0)} at {chart.x.write(x0)}", chart.y.write(y1)
        told.append(f"{line.label}: from {began} to {ended} at {chart.x.write(x1)}.")
    return " ".join(told)
