"""The overview: how much there is in the database, how it grows, and how it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.responses import Response

from locus_memory.web.pages.frame.visit import Group, Visit, get
from locus_memory.web.questions.health import (
    HealthAsked,
    StatsAsked,
    get_health,
    get_stats,
    list_events,
)
from locus_memory.web.questions.journal import EventEntry, EventsAsked
from locus_memory.web.questions.sizes import (
    ContentsAsked,
    Point,
    SizesAsked,
    count_contents,
    measure,
)

__all__ = ["GROUP", "curve"]

_WIDTH, _HEIGHT = 640, 180
_MOST_POINTS: Final = 320
_EVENTS: Final = 20
_WINDOW: Final = timedelta(hours=1)


async def _show(visit: Visit) -> Response:
    return visit.render(
        "overview/overview.html",
        stats=await get_stats(visit.data, StatsAsked()),
        contents=await count_contents(visit.data, ContentsAsked()),
        health=await get_health(visit.data, visit.asked(HealthAsked)),
        events=await _events(visit),
    )


async def _show_sizes(visit: Visit) -> Response:
    sizes = await measure(visit.data, visit.asked(SizesAsked))
    highest = sizes.json_bytes or 1
    return visit.render(
        "overview/sizes.html",
        sizes=sizes,
        stored_curve=curve([each.stored_bytes for each in thinned(sizes.growth)], highest),
        json_curve=curve([each.json_bytes for each in thinned(sizes.growth)], highest),
        width=_WIDTH,
        height=_HEIGHT,
    )


async def _show_events(visit: Visit) -> Response:
    return visit.render("overview/events.html", events=await _events(visit))


async def _events(visit: Visit) -> list[EventEntry]:
    """Return the newest events of the last hour, the newest first."""
    since = datetime.now(UTC) - _WINDOW
    page = await list_events(visit.data, EventsAsked(limit=_EVENTS))
    return [each for each in reversed(page.events) if each.at >= since]


def thinned(growth: Sequence[Point]) -> Sequence[Point]:
    """Return at most 320 points, the first and the last among them."""
    if len(growth) <= _MOST_POINTS:
        return growth
    step = (len(growth) - 1) / (_MOST_POINTS - 1)
    return [growth[round(place * step)] for place in range(_MOST_POINTS)]


def curve(values: Sequence[int], highest: int) -> str:
    """Return the points of a line over the whole width, for an SVG `polyline`."""
    last = max(1, len(values) - 1)
    points = [
        f"{place * _WIDTH / last:.1f},{_HEIGHT - value * _HEIGHT / highest:.1f}"
        for place, value in enumerate(values)
    ]
    return " ".join(points)


GROUP = Group(
    "/",
    "Overview",
    (
        get("/", _show),
        get("/overview/sizes", _show_sizes),
        get("/overview/events", _show_events),
    ),
)
