"""The plots of a report of runs: accuracy over tokens, and accuracy by category."""

from __future__ import annotations

from collections import defaultdict

from locus_memory.cli.printing.plots import Axis, Line, LineChart, draw_bars, draw_lines
from locus_memory.evaluation.quality.figures import Figures, Quality

__all__ = ["quality_plots"]


def quality_plots(quality: Quality) -> list[str]:
    """Return the plots as SVG; answers that none judged have their F1 in place of accuracy."""
    lines: defaultdict[str, list[Figures]] = defaultdict(list)
    for each in quality.figures:
        if _worth(each) is not None:
            lines[_who(quality, each)].append(each)
    if not lines:
        return []
    largest = {max(each, key=_tokens).series: who for who, each in lines.items()}
    groups: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for each in quality.categories:
        if each.series in largest and (worth := _worth(each)) is not None:
            groups[str(each.category)][largest[each.series]] = worth
    over_tokens = LineChart(
        title="Accuracy over tokens",
        subtitle="F1 in place of accuracy where no judge is named",
        x=Axis(label="tokens of the block a question", is_log=True),
        y=Axis(label="share of right answers", covers=(0, 1)),
        lines=[
            Line(who, [(_tokens(each), _worth(each) or 0) for each in sorted(found, key=_tokens)])
            for who, found in lines.items()
        ],
    )
    title = "Accuracy by category, with the largest blocks"
    return [draw_lines(over_tokens), draw_bars(title, groups)]


def _who(quality: Quality, each: Figures) -> str:
    run = each.series.run if len(quality.runs) > 1 else None
    judged = each.series.judge and f"judged by {each.series.judge}"
    return ", ".join(filter(None, [run, each.series.memory, judged]))


def _tokens(each: Figures) -> float:
    return max(1.0, each.values["block_tokens"] or 0)


def _worth(each: Figures) -> float | None:
    return each.accuracy.mean if each.accuracy else each.values["f1"]
