"""The headline and the chart of `docs/benchmarks.md` say what its table says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def drawing():
    spec = importlib.util.spec_from_file_location(
        "chart", ROOT / "tests" / "benchmarks" / "chart.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(drawing):
    return drawing.PAGE.read_text(encoding="utf-8")


def test_the_chart_is_that_of_the_table(drawing, page):
    assert drawing.CHART.read_text(encoding="utf-8") == drawing.chart(page)
    assert f"({drawing.CHART.relative_to(drawing.DOCS)})" in page


def test_the_chart_has_a_bar_a_saver_as_long_as_its_figure(drawing, page):
    rows = drawing.savers(page)
    assert [row.is_ours for row in rows] == [False, True] * 4
    bars = ET.fromstring(drawing.chart(page)).findall(
        "{http://www.w3.org/2000/svg}rect[@class='bar']"
    )
    widths = [float(each.get("width")) for each in bars]
    assert max(widths) == widths[0]
    for row, width in zip(rows, widths, strict=True):
        assert width == pytest.approx(max(2, widths[0] * row.ratio / rows[0].ratio), abs=0.1)


def test_the_text_promises_no_more_than_the_table_shows(drawing, page):
    rows = drawing.savers(page)
    above, delta = page.split("\n\n")[1], page.split("\n\n")[3]
    promised = [float(each) for each in re.findall(r"([\d.]+) times (?:less|on)", above + delta)]
    shown = [
        drawing.times_less(rows, place, channel)
        for channel in ("", ", DeltaChannel")
        for place in ("SQLite", "PostgreSQL")
    ]
    assert len(promised) == 4
    assert all(0.8 * most < each <= most for each, most in zip(promised, shown, strict=True))
