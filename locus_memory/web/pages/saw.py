"""What the model saw: the plan of a run, for a text that somebody types, and for a thread."""

from __future__ import annotations

from starlette.responses import Response

from locus_memory.web.pages.frame.visit import Group, Visit, get
from locus_memory.web.pages.memories.place import Place
from locus_memory.web.questions.journal import EventEntry
from locus_memory.web.questions.planning import PlanAnswer, PlanAsked, plan_run

__all__ = ["GROUP"]

_EVENT = "memory.planned"
_SHOWN = 10


async def _show(visit: Visit) -> Response:
    place = Place.of(visit)
    is_asked = visit.text("text") is not None or visit.text("thread") is not None
    asked = visit.asked(PlanAsked)
    plan: PlanAnswer | None = await plan_run(place.data, asked) if is_asked else None
    return place.render("saw.html", asked=asked, plan=plan, events=_planned(visit))


def _planned(visit: Visit) -> list[EventEntry]:
    """Return the newest plans of runs in this process, the newest first."""
    found = [each for each in visit.data.journal.page(0, 1_000) if each.name == _EVENT]
    return found[: -_SHOWN - 1 : -1]


GROUP = Group("/saw", "What the model saw", (get("/saw", _show),))
