"""The erasure of memories: first a preview of what goes, then the deed."""

from __future__ import annotations

from starlette.responses import Response

from locus_memory.inspection.text import counted
from locus_memory.web.errors import RefusalError
from locus_memory.web.pages.memories.place import MemoriesVisit
from locus_memory.web.questions.editing import ForgetAsked, forget_data

__all__ = ["erase", "preview"]


async def preview(place: MemoriesVisit) -> Response:
    """Show what would be erased, with the contents; nothing is."""
    asked = _asked(place, dry_run=True)
    plan = await forget_data(place.data, asked)
    return place.render("memories/forget.html", asked=asked, plan=plan)


async def erase(place: MemoriesVisit) -> Response:
    """Erase memories permanently."""
    asked = _asked(place, dry_run=False)
    done = await forget_data(place.data, asked)
    memories = counted(len(done.memories), "memory", "memories")
    items = counted(len(done.items), "other item")
    return place.go("/memories/list", f"Erased: {memories} and {items}.")


def _asked(place: MemoriesVisit, *, dry_run: bool) -> ForgetAsked:
    """Return what to erase; all data of a user is erased elsewhere.

    Raises:
        RefusalError: It is neither one memory nor memories with some words.
    """
    asked = place.asked(ForgetAsked, dry_run=dry_run)
    if asked.key is None and asked.query is None:
        raise RefusalError(400, "name a memory, or words that all memories to erase have")
    return asked
