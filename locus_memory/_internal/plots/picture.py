"""The frame of an SVG picture: its ground, colours, texts and description; pure.

The picture does not know on which page it stands, so it brings its own ground, and follows the
reader's choice of light or dark. Where a page forbids styles, it stays light.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape
from zlib import crc32

from locus_memory._internal.neutral import neutralise

__all__ = [
    "COLORS",
    "MARGIN",
    "WIDTH",
    "fit_text",
    "grid_line",
    "heading",
    "picture",
    "text",
    "text_width",
]

WIDTH: Final = 800
MARGIN: Final = 24

COLORS: Final = ("#1a9c86", "#d9602b", "#2b7fd9", "#a05bc8", "#c8435b", "#8a8f2a", "#5b6ec8")
"""The colours of what is drawn: each differs from both grounds by three to one or more."""

_GROUND, _INK, _MUTED, _GRID = "#ffffff", "#1f2328", "#59636e", "#d1d9e0"
_DARK: Final = (
    "@media (prefers-color-scheme: dark) {"
    " .ground { fill: #12161c } .ink { fill: #e6edf3 } .muted { fill: #a5afba }"
    " .grid { stroke: #3d444d } }"
)
_HEADING, _TEXT = 17, 13
_CHARACTER: Final = 0.56
"""The width of a character of a usual sans-serif font, in parts of its size."""


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
    room = width - 2 * MARGIN
    size = f'font-size="{_HEADING}" font-weight="bold"'
    lines = [text(MARGIN, 34, fit_text(title, room, _HEADING), size)]
    if not subtitle:
        return lines, 50.0
    return [*lines, text(MARGIN, 56, fit_text(subtitle, room), muted=True)], 72.0


def text(x: float, y: float, content: str, attributes: str = "", *, muted: bool = False) -> str:
    """Return a text; it is escaped, and on one line.

    Args:
        x: Its place from the left, of its beginning if the attributes do not say otherwise.
        y: Its place from the top, of its base line.
        content: The text.
        attributes: More attributes, of the caller.
        muted: Whether it is drawn in a weaker colour.
    """
    kind, color = ("muted", _MUTED) if muted else ("ink", _INK)
    more = f" {attributes}" if attributes else ""
    place = f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text class="{kind}" {place} fill="{color}"{more}>{escape(neutralise(content))}</text>'


def grid_line(path: str) -> str:
    """Return a line of the grid; the path is the caller's."""
    return f'<path class="grid" d="{path}" stroke="{_GRID}" fill="none"/>'


def text_width(content: str, size: float = _TEXT) -> float:
    """Return about how wide a text is, in pixels."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in content)
    return size * (_CHARACTER * (len(content) - wide) + wide)


def fit_text(content: str, room: float, size: float = _TEXT) -> str:
    """Return a text of one line, cut to a width in pixels."""
    line = neutralise(content)
    if text_width(line, size) <= room:
        return line
    while line and text_width(f"{line}…", size) > room:
        line = line[:-1]
    return f"{line.rstrip()}…"
