"""Charts of lines over two scaled axes, and of bars, as SVG documents; pure.

The picture does not know on which page it stands, so it brings its own ground, and follows the
reader's choice of light or dark. Where a page forbids styles, it stays light.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from xml.sax.saxutils import escape
from zlib import crc32

from locus_memory._internal.neutral import neutralise
from locus_memory.errors import InvalidArgumentError

__all__ = [
    "COLORS",
    "WIDTH",
    "Axis",
    "Line",
    "LineChart",
    "draw_bars",
    "draw_lines",
    "heading",
    "picture",
    "text",
    "write_bytes",
    "write_number",
]

WIDTH: Final = 800
COLORS: Final = ("#1a9c86", "#d9602b", "#2b7fd9", "#a05bc8", "#c8435b", "#8a8f2a", "#5b6ec8")
"""The colours of what is drawn: each differs from both grounds by three to one or more."""

_GROUND, _INK, _MUTED, _GRID = "#ffffff", "#1f2328", "#59636e", "#d1d9e0"
_DARK: Final = (
    "@media (prefers-color-scheme: dark) {"
    " .ground { fill: #12161c } .ink { fill: #e6edf3 } .muted { fill: #a5afba }"
    " .grid { stroke: #3d444d } }"
)
_HEADING, _TEXT, _CHARACTER = 17, 13, 0.56
"""The sizes of texts, and the width of a character in parts of its size."""

_MARGIN, _LEFT, _HEIGHT, _ROW = 24, 140, 300, 22
_DASHES: Final = ("", "9 4", "3 3", "12 4 3 4")
_FEW: Final = 25
"""Up to so many points have a dot each."""

_LARGEST: Final = 1e15
_CLOSE: Final = 1e-9
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS: Final = 5
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")

Point = tuple[float, float]


def write_number(value: float) -> str:
    """Return a number with separators of thousands, in up to twelve digits."""
    is_plain = value == int(value) and abs(value) < 10**12
    return f"{int(value):,}" if is_plain else f"{value:.12g}"


def write_bytes(value: float) -> str:
    """Return a number of bytes in a readable unit of powers of a thousand."""
    power = min(len(f"{abs(value):.0f}") - 1, 3 * len(_UNITS) - 3) // 3
    return f"{value / 1000**power:.3g} {_UNITS[power]}"


class _Scale(NamedTuple):
    """The place of each value on an axis, from 0 to 1, and the values that are marked."""

    place: Callable[[float], float]
    ticks: Sequence[float]


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

    def scale(self, values: Sequence[float]) -> _Scale:
        """Return the scale that covers some values.

        Raises:
            InvalidArgumentError: A value is no number up to 1e15; or, on a logarithmic axis, it
                is below 1e-15.
        """
        covered = [*values, *self.covers, *self.ticks]
        least = 1 / _LARGEST if self.is_log else -_LARGEST
        if not all(least <= value <= _LARGEST for value in covered):
            raise InvalidArgumentError(f"{self.label}: needs numbers from {least:g} to 1e15")
        low, high = min(covered), max(covered)
        if self.is_log:
            return self._logarithmic(low, high)
        if high - low <= max(abs(low), abs(high), _CLOSE) * _CLOSE:
            low, high = low - (abs(low) / 2 or 1.0), high + (abs(low) / 2 or 1.0)
        if self.ticks:
            return _Scale(lambda value: (value - low) / (high - low), sorted(set(self.ticks)))
        step = 10.0 ** math.floor(math.log10((high - low) / _TICKS))
        step *= next((each for each in _STEPS if each * step * _TICKS >= high - low), 10)
        step = math.ceil(step) if self.is_whole else step
        first, last = math.floor(low / step), math.ceil(high / step)
        marks = [number * step for number in range(first, last + 1)]
        return _Scale(lambda value: (value / step - first) / (last - first), marks)

    def _logarithmic(self, low: float, high: float) -> _Scale:
        """Return a scale with a tick at each power of ten, or at every second one."""
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        last = max(last, first + 1)
        stride = math.ceil((last - first) / (2 * _TICKS))
        powers = [10.0**power for power in range(first, last + 1, stride)]
        ticks = sorted(set(self.ticks)) or powers
        return _Scale(lambda value: (math.log10(value) - first) / (last - first), ticks)


@dataclass(frozen=True, slots=True)
class Line:
    """A line.

    Attributes:
        label: Its name in the legend.
        points: Pairs of x and y, at least one, in the order in which they are joined. Of 1,600 and
            more, about one a pixel is drawn, and the legend says so.
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
    top += 58 + _ROW * len(chart.lines)
    width = WIDTH - _MARGIN - _LEFT

    def at(across: float, up: float) -> Point:
        return _LEFT + width * across, top + _HEIGHT * (1 - up)

    body.append(text(_MARGIN, top - 16, chart.y.label, muted=True))
    for tick in y.ticks:
        height = at(0, y.place(tick))[1]
        body.append(_grid_line(f"M{_LEFT} {height:.1f}h{width}"))
        mark = fit_text(chart.y.write(tick), _LEFT - _MARGIN)
        body.append(text(_LEFT - 8, height + 4, mark, 'text-anchor="end"', muted=True))
    places = [at(x.place(tick), 0) for tick in x.ticks]
    body += _marks(places, [fit_text(chart.x.write(tick), WIDTH / 5) for tick in x.ticks])
    middle, bottom = at(0.5, 0)
    body.append(text(middle, bottom + 46, chart.x.label, 'text-anchor="middle"', muted=True))
    for place, line in enumerate(chart.lines):
        row = top - 46 - _ROW * (len(chart.lines) - place)
        body.append(f'<path d="M{_MARGIN} {row - 4:.1f}h26" {_stroke(place)}/>')
        sampled = len(line.points) // WIDTH
        told = f"{line.label} (one point in {sampled})" if sampled > 1 else line.label
        body.append(text(_MARGIN + 34, row, told))
        body += _drawn([at(x.place(a), y.place(b)) for a, b in line.points], place)
    return picture(chart.title, _in_words(chart), top + _HEIGHT + 62, body)


def draw_bars(title: str, groups: Mapping[str, Mapping[str, float]]) -> str:
    """Return a chart of bars as an SVG document.

    Args:
        title: The title.
        groups: The bars of each group, by their names: values from 0 to 1. A name has the same
            colour in each group.
    """
    body, top = heading(title)
    names = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    told = []
    for group, bars in groups.items():
        top += 2 * _ROW
        body.append(text(_MARGIN, top, group, muted=True))
        for name, value in bars.items():
            top += _ROW
            color, width = COLORS[names.index(name) % len(COLORS)], WIDTH / 2 * value
            box = f'x="{_MARGIN}" y="{top - 11:.1f}" width="{width:.1f}" height="13"'
            body.append(f'<rect {box} fill="{color}"/>')
            left = _MARGIN + width + 8
            body.append(text(left, top, fit_text(f"{value:.3f} {name}", WIDTH - left - _MARGIN)))
            told.append(f"{group}, {name}: {value:.3f}.")
    return picture(title, " ".join(told), top + _MARGIN, body)


def _marks(places: Sequence[Point], marks: Sequence[str]) -> Iterator[str]:
    """Yield the horizontal ticks; one whose text would touch that of another has a line alone."""
    end = 0.0
    for (x, y), mark in zip(places, marks, strict=True):
        yield _grid_line(f"M{x:.1f} {y:.1f}v6")
        half = text_width(mark) / 2
        middle = min(x, WIDTH - half)
        if middle - half > end:
            yield text(middle, y + 22, mark, 'text-anchor="middle"', muted=True)
            end = middle + half + 6


def _drawn(points: Sequence[Point], place: int) -> Iterator[str]:
    """Yield a line, and its dots if they are few."""
    shown = [*points[: -1 : max(1, len(points) // WIDTH)], points[-1]]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in shown)
    yield f'<polyline points="{joined}" {_stroke(place)} stroke-linejoin="round"/>'
    for x, y in points if len(points) <= _FEW else ():
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{COLORS[place % len(COLORS)]}"/>'


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


def picture(
    title: str, description: str, height: float, body: Sequence[str], *, width: float = WIDTH
) -> str:
    """Return the SVG document of a picture.

    Args:
        title: Its name for screen readers.
        description: Its content in words, for those who do not see it.
        height: Its height in pixels.
        body: Its elements.
        width: Its width in pixels.
    """
    told, described = escape(neutralise(title)), escape(neutralise(description))
    # Several pictures may stand in one page: the ids of each are its own.
    name = f"plot-{crc32(f'{told}{described}'.encode()):08x}"
    box = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    read = f'role="img" aria-labelledby="{name}-title {name}-desc"'
    font = f'font-family="system-ui, sans-serif" font-size="{_TEXT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {read} {font}>',
        f'<title id="{name}-title">{told}</title>',
        f'<desc id="{name}-desc">{described}</desc>',
        f"<style>{_DARK}</style>",
        f'<rect class="ground" width="100%" height="100%" rx="6" fill="{_GROUND}"/>',
        *body,
        "</svg>",
        "",
    ]
    return "\n".join(lines)


def heading(title: str, subtitle: str = "", *, width: float = WIDTH) -> tuple[list[str], float]:
    """Return the elements of a title and a subtitle, and the height that they take."""
    size = f'font-size="{_HEADING}" font-weight="bold"'
    told = fit_text(title, (width - 2 * _MARGIN) * _TEXT / _HEADING)
    below = [text(_MARGIN, 56, subtitle, muted=True)] if subtitle else []
    return [text(_MARGIN, 34, told, size), *below], 72.0 if subtitle else 50.0


def text(x: float, y: float, content: str, attributes: str = "", *, muted: bool = False) -> str:
    """Return a text; it is escaped, on one line, and cut to the width of a picture.

    Args:
        x: Its place from the left, of its beginning if the attributes do not say otherwise.
        y: Its place from the top, of its base line.
        content: The text.
        attributes: More attributes, of the caller.
        muted: Whether it is drawn in a weaker colour.
    """
    kind, color = ("muted", _MUTED) if muted else ("ink", _INK)
    style = f'class="{kind}" x="{x:.1f}" y="{y:.1f}" fill="{color}" {attributes}'.rstrip()
    return f"<text {style}>{escape(fit_text(content, WIDTH - 2 * _MARGIN))}</text>"


def _grid_line(path: str) -> str:
    return f'<path class="grid" d="{path}" stroke="{_GRID}" fill="none"/>'


def text_width(content: str) -> float:
    """Return about how wide a text is, in pixels."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in content)
    return _TEXT * (_CHARACTER * (len(content) - wide) + wide)


def fit_text(content: str, room: float) -> str:
    """Return a text of one line, cut to a width in pixels."""
    line = neutralise(content)
    if text_width(line) <= room:
        return line
    while line and text_width(f"{line}…") > room:
        line = line[:-1]
    return f"{line.rstrip()}…"
