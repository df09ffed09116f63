"""The list of threads, with a search by the beginning of their ids."""

from __future__ import annotations

from starlette.responses import Response

from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.questions.threads import ThreadsAsked, list_threads

__all__ = ["show"]


async def show(visit: Visit) -> Response:
    """Return the list."""
    asked = visit.asked(ThreadsAsked)
    page = await list_threads(visit.data, asked)
    most = max((each.stored_bytes for each in page.threads), default=0)
    return visit.render("threads/list.html", asked=asked, page=page, most=most or 1)
