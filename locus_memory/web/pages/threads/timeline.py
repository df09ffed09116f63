"""A thread as a timeline of its checkpoints, and the picture of its branches."""

from __future__ import annotations

from starlette.responses import Response

from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.pages.threads.drawing import draw
from locus_memory.web.questions.branches import BranchesAsked, list_branches
from locus_memory.web.questions.health import ThreadStatsAsked, get_thread_stats
from locus_memory.web.questions.threads import CheckpointsAsked, list_checkpoints

__all__ = ["show", "show_branches"]


async def show(visit: Visit) -> Response:
    """Return the timeline of a thread, the newest checkpoint first."""
    asked = visit.asked(CheckpointsAsked)
    page = await list_checkpoints(visit.data, asked)
    stats = await get_thread_stats(
        visit.data, ThreadStatsAsked(thread=asked.thread, deep=visit.text("deep") is not None)
    )
    return visit.render("threads/timeline.html", asked=asked, page=page, stats=stats)


async def show_branches(visit: Visit) -> Response:
    """Return the picture of the threads that a thread comes from and leads to."""
    branches = await list_branches(visit.data, visit.asked(BranchesAsked))
    return visit.render("threads/branches.html", branches=branches, picture=draw(branches))
