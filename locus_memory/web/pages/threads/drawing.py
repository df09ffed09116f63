"""Where the lines of a thread, its source and its forks run in their picture; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from locus_memory.web.questions.branches import Branches

__all__ = ["Lane", "Picture", "draw"]

_WIDTH: Final = 640
_LANE: Final = 44
"""The height of a lane."""

_MARGIN: Final = 10
_BEND: Final = 18
"""How far a branch needs to reach its lane."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The line of one thread.

    Attributes:
        thread_id: The thread.
        path: The line, as an SVG path.
        x: Where the line ends.
        y: Its height.
        is_this: Whether it is the thread that the picture is about.
        checkpoints: The number of its checkpoints.
    """

    thread_id: str
    path: str
    x: float
    y: float
    is_this: bool
    checkpoints: int


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture of a thread with its branches; `lanes` from the top to the bottom."""

    width: int
    height: int
    lanes: tuple[Lane, ...]


def draw(branches: Branches) -> Picture:
    """Return the picture of a thread, its source above it, and its forks below."""
    source = branches.source
    lengths = [branches.checkpoints, *(each.checkpoints for each in branches.forks)]
    longest = max([*lengths, source.checkpoints if source else 1])
    scale = (_WIDTH - 2 * _MARGIN) / max(1, longest - 1)

    def x_of(place: int) -> float:
        return _MARGIN + (max(place, 1) - 1) * scale

    def lane(thread: str, row: int, start: int, end: int, *, above: int | None) -> Lane:
        y = (row + 0.7) * _LANE
        path = _line(x_of(start), x_of(end), y, None if above is None else (above + 0.7) * _LANE)
        return Lane(thread, path, x_of(end), y, thread == branches.thread_id, end)

    lanes: list[Lane] = []
    if source is not None:
        lanes.append(lane(source.thread_id, 0, 1, max(1, source.checkpoints), above=None))
    own = len(lanes)
    begin = branches.begins_at if source else 1
    above = None if source is None else 0
    lanes.append(lane(branches.thread_id, own, begin, branches.checkpoints, above=above))
    for each in branches.forks:
        start = min(each.place, each.checkpoints)
        lanes.append(lane(each.thread_id, len(lanes), start, each.checkpoints, above=own))
    return Picture(_WIDTH, len(lanes) * _LANE + _MARGIN, tuple(lanes))


def _line(start: float, end: float, y: float, above: float | None) -> str:
    """Return a line from left to right; with `above`, it bends down from the line there."""
    if above is None:
        return f"M{start:.1f} {y:.1f}H{end:.1f}"
    bend = start + _BEND
    curve = f"M{start:.1f} {above:.1f}C{start:.1f} {y:.1f} {start:.1f} {y:.1f} {bend:.1f} {y:.1f}"
    return f"{curve}H{max(end, bend):.1f}"
