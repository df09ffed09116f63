"""The list of threads, a thread as a timeline of its checkpoints, and the picture of branches."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from locus_memory.web.models import ThreadAsked
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.pages.threads.drawing import draw
from locus_memory.web.questions.branches import list_branches
from locus_memory.web.questions.happened import sessions_of
from locus_memory.web.questions.health import ThreadStatsAsked, get_thread_stats
from locus_memory.web.questions.threads import (
    CheckpointsAsked,
    ThreadsAsked,
    list_checkpoints,
    name_threads,
)

__all__ = ["show", "show_branches", "show_threads"]

_ROWS: Final = 25
"""The threads of a page: the newest state of each is read."""


async def show_threads(visit: Visit) -> Response:
    """Return the list of threads, each with its user, its title and its last message."""
    fixed = {} if visit.text("limit") else {"limit": _ROWS}
    asked = visit.asked(ThreadsAsked, **fixed)
    names, following = await name_threads(visit.data, asked)
    sessions = await sessions_of(visit.data, names)
    return visit.render("threads/list.html", asked=asked, sessions=sessions, next=following)


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
    branches = await list_branches(visit.data, visit.asked(ThreadAsked))
    return visit.render("threads/branches.html", branches=branches, picture=draw(branches))
