"""Charts are valid XML, show all their values, and can be read in light and dark."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory._internal.neutral import neutralise
from locus_memory.cli.printing import plots
from locus_memory.cli.printing.plots import COLORS, Axis, Line, LineChart, draw_bars, draw_lines
from locus_memory.errors import InvalidArgumentError

SVG = "{http://www.w3.org/2000/svg}"
# Lone surrogates and control characters among them: a thread may have any name.
NAMES = st.text(st.characters(codec=None), max_size=60)
NUMBERS = st.floats(-1e15, 1e15)
POSITIVE = st.floats(1e-15, 1e15)
COUNTS = st.integers(0, 10**9)


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


@pytest.mark.parametrize(
    ("is_log", "numbers"), [(False, NUMBERS), (True, POSITIVE), (False, st.floats(0, 1))]
)
@given(data=st.data(), title=NAMES, label=NAMES)
def test_any_chart_is_valid_and_shows_all_its_values(data, is_log, numbers, title, label):
    points = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=60)
    lines = data.draw(st.lists(st.builds(Line, NAMES, points), min_size=1, max_size=9))
    axes = {"x": Axis(label=label, is_log=is_log), "y": Axis(label=label, is_log=is_log)}
    drawing = draw_lines(chart(lines, title, **axes))
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


@given(st.lists(NUMBERS, min_size=1))
def test_ticks_are_few_ascend_and_cover_the_values(values):
    place, ticks = Axis(label="x").scale(values)
    assert 2 <= len(ticks) <= 9
    assert list(ticks) == sorted(set(ticks))
    assert [place(ticks[0]), place(ticks[-1])] == pytest.approx([0, 1])
    assert all(-1e-6 <= place(value) <= 1 + 1e-6 for value in values)


@given(st.lists(COUNTS, min_size=1))
def test_no_tick_stands_between_two_counts(counts):
    assert all(tick == int(tick) for tick in Axis(label="x", is_whole=True).scale([*counts, 0])[1])


@given(st.lists(POSITIVE, min_size=1))
def test_a_logarithmic_axis_has_powers_of_ten(values):
    _, ticks = Axis(label="x", is_log=True).scale(values)
    assert 1 <= len(ticks) <= 12
    assert all(math.log10(tick) == pytest.approx(round(math.log10(tick))) for tick in ticks)


def test_ticks_are_round():
    assert Axis(label="x").scale([3, 97])[1] == [0, 20, 40, 60, 80, 100]
    assert Axis(label="x", covers=(0, 1)).scale([0.5])[1] == pytest.approx(
        [0, 0.2, 0.4, 0.6, 0.8, 1]
    )
    assert Axis(label="x", is_log=True).scale([2, 300])[1] == [1, 10, 100, 1000]
    assert Axis(label="x", ticks=(7, 5)).scale([1])[1] == [5, 7]


def test_a_line_goes_up_where_its_values_do():
    lines = [Line("up", [(0, 1), (50, 10), (100, 100)])]
    (line,) = places(draw_lines(chart(lines, y=Axis(label="y", is_log=True))))
    (x0, y0), (x1, y1), (x2, y2) = line
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert y0 > y1


def test_a_long_line_has_about_a_point_a_pixel_and_keeps_its_ends():
    drawing = draw_lines(chart([Line("up", [(n, n) for n in range(100_000)])]))
    (line,) = places(drawing)
    assert len(line) < 2 * plots.WIDTH
    assert line[0][1] - line[-1][1] == pytest.approx(300, abs=1)
    assert not list(ET.fromstring(drawing).iter(f"{SVG}circle"))


def test_the_legend_says_that_a_line_is_sampled():
    short, long = (
        Line(name, [(n, n) for n in range(count)]) for name, count in (("a", 1_599), ("b", 4_000))
    )
    drawn = draw_lines(chart([short, long]))
    assert ">a</text>" in drawn
    assert ">b (one point in 5)</text>" in drawn


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


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e300])
def test_what_cannot_be_drawn(value):
    for lines in ([], [Line("empty", [])], [Line("a", [(0, 0)]), Line("b", [(value, 1)])]):
        with pytest.raises(InvalidArgumentError):
            draw_lines(chart(lines))
    with pytest.raises(InvalidArgumentError, match="bytes"):
        draw_lines(chart([Line("a", [(1, 0)])], y=Axis(label="bytes", is_log=True)))


@pytest.mark.parametrize(
    ("value", "shown", "size"),
    [
        (0, "0", "0 bytes"),
        (999, "999", "999 bytes"),
        (1500, "1,500", "1.5 kB"),
        (2_500_000, "2,500,000", "2.5 MB"),
        (0.25, "0.25", "0.25 bytes"),
        (-3, "-3", "-3 bytes"),
        (1e15, "1e+15", "1 PB"),
    ],
)
def test_numbers_and_sizes(value, shown, size):
    assert plots.write_number(value) == shown
    assert plots.write_bytes(value) == size


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
        assert all(contrast(each, colors["ground"]) >= 3 for each in plots.COLORS)


def test_bars_are_as_long_as_their_values_and_named():
    drawn = draw_bars("By kind", {"one & two": {"ours": 1.0}, "three": {"<b>": 0.0, "ours": 0.25}})
    root = ET.fromstring(drawn)
    bars = root.findall(f"{SVG}rect")[1:]
    assert [float(each.get("width")) for each in bars] == [400, 0, 100]
    assert [each.get("fill") for each in bars] == [COLORS[0], COLORS[1], COLORS[0]]
    texts = [each.text for each in root.findall(f"{SVG}text")]
    assert texts == [
        "By kind", "one & two", "1.000 ours", "three", "0.000 \u2039b\u203a", "0.250 ours",
    ]  # fmt: skip
    told = root.find(f"{SVG}desc").text
    assert told == "one & two, ours: 1.000. three, \u2039b\u203a: 0.000. three, ours: 0.250."
    assert all(0 <= float(each.get("y")) <= float(root.get("height")) for each in bars)
