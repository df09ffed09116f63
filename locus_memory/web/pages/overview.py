"""The overview: what happened in the database, and how it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.responses import Response

from locus_memory.web.pages.frame.visit import Group, Visit, get
from locus_memory.web.questions.happened import count_contents, look_back
from locus_memory.web.questions.health import HealthAsked, get_health, list_events
from locus_memory.web.questions.journal import EventEntry, EventsAsked

__all__ = ["GROUP"]

_EVENTS: Final = 20
_WINDOW: Final = timedelta(hours=1)


async def _show(visit: Visit) -> Response:
    sessions, changes, runs = await look_back(visit.data)
    costs = [run.tokens for _, run in runs]
    events = await _events(visit)
    return visit.render(
        "overview/overview.html",
        contents=await count_contents(visit.data),
        sessions=sessions,
        changes=changes,
        runs=runs,
        cost=sum(costs) // len(costs) if costs else None,
        failures=sum(each.error is not None for each in events),
        health=await get_health(visit.data, visit.asked(HealthAsked)),
        events=events,
    )


async def _show_events(visit: Visit) -> Response:
    return visit.render("overview/events.html", events=await _events(visit))


async def _events(visit: Visit) -> list[EventEntry]:
    """Return the newest events of the last hour, the newest first."""
    since = datetime.now(UTC) - _WINDOW
    page = await list_events(visit.data, EventsAsked(limit=_EVENTS))
    return [each for each in reversed(page.events) if each.at >= since]


GROUP = Group(
    "/",
    "Overview",
    (
        get("/", _show),
        get("/overview/events", _show_events),
    ),
)
