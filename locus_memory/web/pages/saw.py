"""What the model saw in runs, as each run recorded it; and what it would see of a typed text."""

from __future__ import annotations

from pydantic import Field
from starlette.responses import Response

from locus_memory.web.models import LIMIT, Asked
from locus_memory.web.pages.frame.visit import Group, get
from locus_memory.web.pages.memories.place import MemoriesVisit
from locus_memory.web.pages.threads.messages import view_messages
from locus_memory.web.questions.planning import (
    PlanAsked,
    SawAsked,
    list_runs,
    plan_run,
    run_at,
    trace_run,
)

__all__ = ["GROUP", "TRIAL"]


class _MessageAsked(Asked):
    """The message of a run."""

    place: int | None = Field(default=None, ge=1)


async def _show(place: MemoriesVisit) -> Response:
    asked = place.asked(SawAsked)
    found = await list_runs(place.data, asked)
    at, wanted = place.text("at"), place.asked(_MessageAsked).place
    runs, sources = found.runs, place.data.sources
    if asked.thread is not None and (at or wanted):
        runs = (await list_runs(place.data, asked.model_copy(update={"limit": LIMIT}))).runs
    if asked.thread is not None and wanted:
        chosen = await run_at(sources, asked.thread, wanted, runs)
    else:
        chosen = next((run for run in runs if at in (None, run.at)), None)
    trace = (
        None if chosen is None else await trace_run(place.data, sources, found.user, chosen, runs)
    )
    return place.render(
        "saw.html",
        asked=asked,
        user=found.user,
        runs=found.runs,
        chosen=chosen,
        wanted=wanted,
        trace=trace,
        followed=view_messages(list(trace.messages), trace.place or 1) if trace else [],
    )


async def _try(place: MemoriesVisit) -> Response:
    asked = None if place.text("text") is None else place.asked(PlanAsked)
    plan = None if asked is None else await plan_run(place.data, asked)
    return place.render("try.html", asked=asked, plan=plan)


GROUP = Group("/saw", "What the model saw", (get("/saw", _show, MemoriesVisit),))
TRIAL = Group("/try", "Try a message", (get("/try", _try, MemoriesVisit),))
