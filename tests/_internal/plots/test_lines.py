"""Charts are valid XML, show all their values, and can be read in light and dark."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory._internal.neutral import neutralise
from locus_memory._internal.plots import picture
from locus_memory._internal.plots.lines import Axis, Line, LineChart, draw_lines
from locus_memory.errors import InvalidArgumentError

SVG = "{http://www.w3.org/2000/svg}"
# Lone surrogates and control characters among them: a thread may have any name.
NAMES = st.text(st.characters(codec=None), max_size=60)
NUMBERS = st.floats(-1e290, 1e290)
LINES = st.builds(Line, NAMES, st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=60))


def chart(lines, title="Growth", **axes):
    given_axes = {"x": Axis(label="checkpoint"), "y": Axis(label="bytes"), **axes}
    return LineChart(title=title, lines=lines, **given_axes)


def places(drawing):
    """Return the points of each line of a picture, in pixels."""
    found = []
    for line in ET.fromstring(drawing).iter(f"{SVG}polyline"):
        pairs = [pair.split(",") for pair in line.get("points").split()]
        found.append([(float(x), float(y)) for x, y in pairs])
    return found


@pytest.mark.slow
@given(st.lists(LINES, min_size=1, max_size=9), NAMES, NAMES)
def test_any_chart_is_valid_and_shows_all_its_values(lines, title, label):
    drawing = draw_lines(chart(lines, title, y=Axis(label=label)))
    drawing.encode()
    root = ET.fromstring(drawing)
    width, height = (float(root.get(name)) for name in ("width", "height"))
    drawn = places(drawing)
    assert len(drawn) == len(lines)
    assert all(0 <= x <= width and 0 <= y <= height for line in drawn for x, y in line)
    texts = [each.text or "" for each in root.iter(f"{SVG}text")]
    assert neutralise(title)[:20] in texts[0]
    for line in lines:
        assert any(neutralise(line.label)[:20] in each for each in texts)


def test_a_reader_without_eyes_is_told_the_figures():
    root = ET.fromstring(draw_lines(chart([Line("stored", [(1, 10), (2, 30)])])))
    title, description = root[0], root[1]
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text == "Growth"
    assert description.text == "bytes by checkpoint. stored: from 10 at 1 to 30 at 2."


def test_text_is_escaped():
    drawing = draw_lines(chart([Line("a & <script>alert(1)</script>", [(0, 0)])], "<b>&amp;"))
    assert not list(ET.fromstring(drawing).iter(f"{SVG}script"))
    assert "<script" not in drawing


def test_a_line_goes_up_where_its_values_do():
    (line,) = places(draw_lines(chart([Line("up", [(0, 0), (50, 1), (100, 2)])])))
    (x0, y0), (x1, y1), (x2, y2) = line
    assert x0 < x1 < x2
    assert y0 > y1 > y2
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)


@pytest.mark.slow
def test_a_long_line_has_a_few_points_a_pixel_and_keeps_its_ends():
    values = [(float(place), float(place % 100)) for place in range(100_000)]
    drawing = draw_lines(chart([Line("saw", values)]))
    (line,) = places(drawing)
    assert len(line) < 4 * picture.WIDTH
    assert max(y for _, y in line) - min(y for _, y in line) == pytest.approx(300 * 0.99, abs=1)
    assert not list(ET.fromstring(drawing).iter(f"{SVG}circle"))


def test_a_logarithmic_axis():
    (line,) = places(
        draw_lines(chart([Line("x", [(1, 1), (2, 10), (3, 100)])], y=Axis(label="y", is_log=True)))
    )
    assert line[0][1] - line[1][1] == pytest.approx(line[1][1] - line[2][1], abs=0.2)


@pytest.mark.parametrize(
    "lines", [[], [Line("empty", [])], [Line("a", [(0, 0)]), Line("nan", [(float("nan"), 1)])]]
)
def test_what_cannot_be_drawn(lines):
    with pytest.raises(InvalidArgumentError):
        draw_lines(chart(lines))


def luminance(color):
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels
    ]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_have_the_contrast_that_readers_need():
    """By WCAG 2.2: 4.5 to 1 for text, and 3 to 1 for lines."""
    drawing = draw_lines(chart([Line("a", [(0, 0)])]))
    dark = dict(re.findall(r"\.(\w+) \{ (?:fill|stroke): (#\w+) \}", drawing))
    light = dict(re.findall(r'class="(\w+)"[^>]*? (?:fill|stroke)="(#\w+)"', drawing))
    assert dark.keys() == light.keys() == {"ground", "ink", "muted", "grid"}
    for colors in (light, dark):
        assert all(contrast(colors[name], colors["ground"]) >= 4.5 for name in ("ink", "muted"))
        assert all(contrast(each, colors["ground"]) >= 3 for each in picture.COLORS)
