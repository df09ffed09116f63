"""What the model saw in runs, as each run recorded it; and what it would see of a typed text."""

from __future__ import annotations

from starlette.responses import Response

from locus_memory.web.pages.frame.visit import Group, get
from locus_memory.web.pages.memories.place import Place
from locus_memory.web.questions.planning import PlanAsked, SawAsked, list_runs, plan_run

__all__ = ["GROUP", "TRIAL"]


async def _show(place: Place) -> Response:
    asked = place.asked(SawAsked)
    found = await list_runs(place.data, asked)
    at = place.text("at")
    chosen = next((run for run in found.runs if at in (None, run.at)), None)
    return place.render("saw.html", asked=asked, user=found.user, runs=found.runs, chosen=chosen)


async def _try(place: Place) -> Response:
    asked = None if place.text("text") is None else place.asked(PlanAsked)
    plan = None if asked is None else await plan_run(place.data, asked)
    return place.render("try.html", asked=asked, plan=plan)


GROUP = Group("/saw", "What the model saw", (get("/saw", _show, Place),))
TRIAL = Group("/try", "Try a message", (get("/try", _try, Place),))
