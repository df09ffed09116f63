"""The report of runs as tables, and these as Markdown and as a page of HTML; pure.

All texts come from the journals, so a name may hold anything: each is made one line and escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from markdown_it import MarkdownIt

from locus_memory._internal.neutral import neutralise
from locus_memory.evaluation.metrics import Interval
from locus_memory.evaluation.quality.figures import Quality, Series

__all__ = ["Table", "quality_tables", "write_html", "write_markdown"]

_MARKS: Final = re.compile(r"([\\`*_\[\]|~#&])")
_UNKNOWN: Final = "—"
_FORMS: Final = {
    "f1": "F1|.3f",
    "exact_match": "exact match|.3f",
    "evidence": "evidence|.3f",
    "block_tokens": "block|,.0f",
    "tokens": "tokens|,.0f",
    "calls": "calls|.2f",
    "seconds": "seconds|.2f",
    "cost": "dollars in all|.4f",
    "cost_per_right": "dollars a right answer|.4f",
    "filling_tokens": "filling: tokens|,.0f",
    "filling_seconds": "filling: seconds|,.0f",
    "filling_cost": "filling: dollars|.4f",
    "judging_cost": "judging: dollars|.4f",
}
"""The title and the format of each figure."""

_WORTH: Final = ("f1", "exact_match", "evidence", "block_tokens")
_TOOK: Final = (
    "tokens", "calls", "seconds", "cost", "cost_per_right",
    "filling_tokens", "filling_seconds", "filling_cost", "judging_cost",
)  # fmt: skip
_HEAD: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Answers</title>
<style>
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem }
table { display: block; overflow-x: auto; border-collapse: collapse }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #8884; font-variant-numeric: tabular-nums }
svg { max-width: 100%; height: auto; margin: 1rem 0 }
</style>"""


class Table(NamedTuple):
    """A table of texts.

    Attributes:
        title: Its title.
        columns: The titles of the columns; one that starts with `>` is aligned to the right.
        rows: The cells of each row.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


_SERIES: Final = ("memory", ">budget", "judge")


def quality_tables(quality: Quality) -> list[Table]:
    """Return the tables of a report, without those that would be empty."""
    makers = (_accuracy, _costs, _categories, _differences, _agreements, _runs)
    return [table for make in makers if (table := make(quality)).rows]


def _accuracy(quality: Quality) -> Table:
    counts = (">questions", ">failed", ">judged", ">accuracy")
    rows = [
        [
            *_who(quality, each.series),
            *(f"{count:,}" for count in (each.questions, each.failed, each.judged)),
            _interval(each.accuracy),
            *_values(each.values, _WORTH),
        ]
        for each in quality.figures
    ]
    return Table("Accuracy", [*_SERIES, *counts, *_titles(_WORTH)], rows)


def _costs(quality: Quality) -> Table:
    rows = [[*_who(quality, each.series), *_values(each.values, _TOOK)] for each in quality.figures]
    return Table("What it took", [*_SERIES, *_titles(_TOOK)], rows)


def _categories(quality: Quality) -> Table:
    rows = [
        [
            str(each.category),
            *_who(quality, each.series),
            f"{each.questions:,}",
            _interval(each.accuracy),
            *_values(each.values, _WORTH),
        ]
        for each in quality.categories
    ]
    columns = ["category", *_SERIES, ">questions", ">accuracy", *_titles(_WORTH)]
    return Table("By category", columns, rows)


def _differences(quality: Quality) -> Table:
    rows: list[list[str]] = []
    for each in quality.differences:
        first, second = _who(quality, each.first), _who(quality, each.second)
        names = [", ".join(first[:2]), ", ".join(second[:2]), second[2]]
        rows.append([*names, f"{each.questions:,}", _interval(each.apart, "+")])
    columns = ["first", "less", "judge", ">questions", ">difference"]
    return Table("Paired differences", columns, rows)


def _agreements(quality: Quality) -> Table:
    rows = [
        [judges, f"{share:.3f}", _UNKNOWN if kappa is None else f"{kappa:.3f}"]
        for judges, (share, kappa) in quality.agreements.items()
    ]
    return Table("Agreement of judges", ["judges", ">agreement", ">Cohen's kappa"], rows)


def _runs(quality: Quality) -> Table:
    rows = [
        [name, run.file, run.digest[:12], run.answer, str(run.sample or "all"), str(run.seed)]
        for name, run in quality.runs.items()
    ]
    return Table("Runs", ["run", "file", "SHA-256", "answers", ">sample", ">seed"], rows)


def _who(quality: Quality, series: Series) -> list[str]:
    """Return the cells of a series: its memory, its budget and its judge."""
    run = f"{series.run}: " if len(quality.runs) > 1 else ""
    budget = f"{series.budget:,}" if series.budget else "all"
    return [f"{run}{series.memory}", budget, series.judge or _UNKNOWN]


def write_markdown(tables: Sequence[Table], plots: Sequence[str]) -> str:
    """Return a report as Markdown.

    Args:
        tables: Its tables.
        plots: The addresses of its pictures, as they stand in a link.
    """
    lines = ["# Answers", *(f"\n![Plot]({address})" for address in plots)]
    for table in tables:
        bars = ["---:" if each.startswith(">") else ":---" for each in table.columns]
        lines += ["", f"## {table.title}", ""]
        for row in ([each.lstrip(">") for each in table.columns], bars, *table.rows):
            cells = row if row is bars else [_MARKS.sub(r"\\\1", neutralise(each)) for each in row]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def write_html(tables: Sequence[Table], plots: Sequence[str]) -> str:
    """Return a report as a page of HTML that needs no other file.

    Args:
        tables: Its tables.
        plots: Its pictures, as SVG.
    """
    heading, rest = MarkdownIt("js-default").render(write_markdown(tables, ())).split("\n", 1)
    return "\n".join([_HEAD, heading, *plots, rest])


def _titles(names: Sequence[str]) -> list[str]:
    return [f">{_FORMS[name].partition('|')[0]}" for name in names]


def _values(values: Mapping[str, float | None], names: Sequence[str]) -> list[str]:
    found = [(values[name], _FORMS[name].partition("|")[2]) for name in names]
    return [_UNKNOWN if value is None else format(value, form) for value, form in found]


def _interval(found: Interval | None, sign: str = "") -> str:
    return (
        _UNKNOWN if found is None else "{:{s}.3f} ({:{s}.3f} to {:{s}.3f})".format(*found, s=sign)
    )
