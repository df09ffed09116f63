"""What the answers of runs are worth, and what they took; from the journals of the runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.journal import Answered, Failed, Ingested, Judged, Run, read_journal
from locus_memory.evaluation.matching import exact_match, f1
from locus_memory.evaluation.metrics import Agreement, Interval, agreement, grouped_interval

__all__ = [
    "ABSTENTION",
    "MEANS",
    "SUMS",
    "Difference",
    "Figures",
    "Quality",
    "Series",
    "read_quality",
]

ABSTENTION: Final = "abstention"
"""The category of all questions whose right answer is that it is not known."""

MEANS: Final = ("f1", "exact_match", "evidence", "block_tokens", "tokens", "calls", "seconds")
"""The figures of which the mean over the questions is reported.

F1 and exact match compare the words with the expected answers, and leave out questions without one
and those of abstention. `evidence` is the share of the evidence in the block, `tokens` are those of
the prompt and of the answer.
"""

SUMS: Final = ("tokens", "seconds", "cost")
"""The figures of which the sum is reported for filling a memory; a cost is in dollars."""


class Series(NamedTuple):
    """The answers that belong together.

    Attributes:
        run: The name of the run.
        memory: The name of the memory.
        budget: The tokens that a block may have; 0: no limit.
        judge: The model that judged; `None`: none did.
    """

    run: str
    memory: str
    budget: int
    judge: str | None


@dataclass(frozen=True, slots=True)
class Figures:
    """What some answers are worth.

    Attributes:
        series: Whose answers they are.
        category: The kind of question; `None`: all. Those of `ABSTENTION` are in their own, too.
        questions: The number of questions.
        failed: The number of steps that failed and would have given more answers; 0 for a kind.
        judged: The number of answers that are judged.
        accuracy: The share of right ones among these, with its interval; `None`: there is none.
        values: The `MEANS`; the `SUMS` of filling the memory, such as `filling_cost`; the dollars
            of the judge, `judging_cost`, and those of all else, `cost`; and these for each right
            answer, `cost_per_right`. `None`: no question has such a figure, a price is not known,
            or no answer is right. A kind of question has no share of what filled the memory.
    """

    series: Series
    category: str | None
    questions: int
    failed: int
    judged: int
    accuracy: Interval | None
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one series is above another, in accuracy, or in F1 where none is judged.

    Attributes:
        first: The one.
        second: The other.
        questions: The number of questions that both have.
        apart: The mean of the differences, with its interval.
    """

    first: Series
    second: Series
    questions: int
    apart: Interval


@dataclass(frozen=True, slots=True)
class Quality:
    """The report of runs.

    Attributes:
        runs: The settings of each run, by its name.
        figures: Of each series.
        categories: Of each kind of question of each series.
        differences: Of each two memories of a run, and of each two runs of a memory, with the same
            judge, and the same budget unless one has no limit.
        agreements: Of each two judges of a run.
    """

    runs: Mapping[str, Run]
    figures: Sequence[Figures]
    categories: Sequence[Figures]
    differences: Sequence[Difference]
    agreements: Mapping[str, Agreement]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""

        def plain(value: Any) -> Any:
            return value.model_dump() if isinstance(value, Run) else value._asdict()

        document: dict[str, Any] = orjson.loads(orjson.dumps(self, default=plain))
        return document


_Place: TypeAlias = tuple[str, int, str, str]
"""A memory, a budget, a conversation and a question."""

_Row: TypeAlias = dict[str, Any]
"""The figures of an answer, without its texts."""

_NOT_JUDGED: Final = {"right": None, "score": None, "judging_cost": 0.0}


def read_quality(paths: Sequence[str | Path]) -> Quality:
    """Return the report of the journals of runs; each is read once.

    A line that stands twice counts once, and the order of the lines does not matter.

    Raises:
        OSError: A file cannot be read.
        InvalidArgumentError: A line is no record of a run, or there is no answer.
    """
    stems = [Path(each).stem for each in paths]
    names = [
        stem if stems.count(stem) == 1 else f"{stem} ({number})"
        for number, stem in enumerate(stems, 1)
    ]
    runs = {name: _Gathered(path) for name, path in zip(names, paths, strict=True)}
    rows = {series: found for name, run in runs.items() for series, found in run.series(name)}
    if not rows:
        raise InvalidArgumentError("there is no answer yet")
    return Quality(
        {name: run.settings for name, run in runs.items()},
        [
            _figures(series, None, found, *runs[series.run].around(series))
            for series, found in rows.items()
        ],
        [
            _figures(series, kind, {key: row for key, row in found.items() if kind in row["kinds"]})
            for series, found in rows.items()
            for kind in sorted({kind for row in found.values() for kind in row["kinds"]})
        ],
        [*_differences(rows)],
        {f"{name}: {judges}": each for name, run in runs.items() for judges, each in run.agreed()},
    )


class _Gathered:
    """A journal without its texts; each line has a key, so that it counts once."""

    def __init__(self, path: str | Path) -> None:
        records = read_journal(path)
        first = next(records, None)
        if not isinstance(first, Run):
            raise InvalidArgumentError(f"{path}: the file is empty")
        self.settings = first
        self.filled: dict[tuple[str, str], _Row] = {}
        self.answers: dict[_Place, _Row] = {}
        self.judged: defaultdict[str, dict[_Place, _Row]] = defaultdict(dict)
        self.failed: set[tuple[str, int | None, str, str | None]] = set()
        for record in records:
            match record:
                case Ingested():
                    self.filled[record.memory, record.conversation] = _used(record)
                case Answered():
                    self.answers[_place(record)] = _row(record)
                case Judged():
                    right = float(record.right)
                    row = {"right": right, "score": right, "judging_cost": record.cost}
                    self.judged[record.judge][_place(record)] = row
                case Failed(step="ingest" | "answer"):
                    place = (record.memory, record.budget, record.conversation, record.question)
                    self.failed.add(place)
                case _:
                    pass

    def around(self, series: Series) -> tuple[list[_Row], int]:
        """Return what filling a memory took, and the number of steps that failed for good."""
        filling = [row for (memory, _), row in self.filled.items() if memory == series.memory]
        done = {*self.answers, *((memory, None, place, None) for memory, place in self.filled)}
        failed = [
            each
            for each in self.failed - done
            if each[0] == series.memory and each[1] in (None, series.budget)
        ]
        return filling, len(failed)

    def series(self, name: str) -> list[tuple[Series, dict[_Place, _Row]]]:
        """Return the answers of each series, in the order of the settings."""
        found: defaultdict[Series, dict[_Place, _Row]] = defaultdict(dict)
        for place, row in self.answers.items():
            for judge, judged in (self.judged or {None: {place: {}}}).items():
                verdict = judged.get(place, _NOT_JUDGED)
                found[Series(name, *place[:2], judge)][place] = row | verdict
        order = [*self.settings.memories, *(place[0] for place in self.answers)]
        return sorted(
            found.items(),
            key=lambda each: (order.index(each[0].memory), str(each[0].judge), each[0].budget),
        )

    def agreed(self) -> Iterator[tuple[str, Agreement]]:
        """Yield how far each two judges agree."""
        for (first, one), (second, other) in combinations(sorted(self.judged.items()), 2):
            both = [(one[key]["right"], other[key]["right"]) for key in one.keys() & other.keys()]
            if both:
                yield f"{first} and {second}", agreement(both)


def _place(record: Answered | Judged) -> _Place:
    return record.memory, record.budget, record.conversation, record.question


def _row(record: Answered) -> _Row:
    expected = () if record.abstain else record.expected
    nearness = f1(record.answer, expected) if expected else None
    return {
        **_used(record),
        "kinds": {record.category, ABSTENTION} if record.abstain else {record.category},
        "f1": nearness,
        "exact_match": exact_match(record.answer, expected) if expected else None,
        "evidence": record.evidence,
        "block_tokens": record.block_tokens,
        # Two sets may have other questions with the same ids.
        "asked": hash(record.asked),
        **_NOT_JUDGED,
        "score": nearness,
    }


def _used(record: Ingested | Answered) -> _Row:
    tokens = record.prompt_tokens + record.completion_tokens
    return {"calls": record.calls, "tokens": tokens, "seconds": record.seconds, "cost": record.cost}


def _figures(
    series: Series,
    category: str | None,
    rows: Mapping[_Place, _Row],
    filling: Sequence[_Row] = (),
    failed: int = 0,
) -> Figures:
    right = {place: row["right"] for place, row in rows.items() if row["right"] is not None}
    values = {name: _mean(rows.values(), name) for name in MEANS}
    values |= {f"filling_{name}": _sum(filling, name) for name in SUMS}
    values["judging_cost"] = _sum(rows.values(), "judging_cost")
    values["cost"] = cost = _sum([*filling, *rows.values()], "cost")
    rights = sum(right.values())
    values["cost_per_right"] = cost / rights if cost is not None and rights else None
    accuracy = _interval(right) if right else None
    return Figures(series, category, len(rows), failed, len(right), accuracy, values)


def _differences(rows: Mapping[Series, Mapping[_Place, _Row]]) -> Iterator[Difference]:
    scores = {
        series: {
            (*place[2:], row["asked"]): row["score"]
            for place, row in found.items()
            if row["score"] is not None
        }
        for series, found in rows.items()
    }
    for (first, one), (second, other) in combinations(scores.items(), 2):
        budgets = {first.budget, second.budget}
        are_alike = first.run == second.run or first.memory == second.memory
        are_alike &= first.judge == second.judge and (len(budgets) == 1 or 0 in budgets)
        if are_alike and (both := one.keys() & other.keys()):
            apart = {(*first[1:3], *key[:2]): one[key] - other[key] for key in both}
            yield Difference(first, second, len(apart), _interval(apart))


def _interval(values: Mapping[_Place, float]) -> Interval:
    """Return the interval of values, where those of a conversation hang together."""
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for place, value in values.items():
        groups[place[2]].append(value)
    return grouped_interval([groups[name] for name in sorted(groups)])


def _mean(rows: Iterable[_Row], name: str) -> float | None:
    known = [row[name] for row in rows if row[name] is not None]
    return math.fsum(known) / len(known) if known else None


def _sum(rows: Collection[_Row], name: str) -> float | None:
    """Return the sum of a figure; one that is not known makes it unknown."""
    known = [row[name] for row in rows if row[name] is not None]
    return math.fsum(known) if len(known) == len(rows) else None
