"""The state of a thread at a checkpoint: its conversation, with calls of tools folded."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from starlette.responses import Response

from locus_memory.checkpoint.differences import messages_of
from locus_memory.web.models import Asked
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.pages.threads.messages import view_messages
from locus_memory.web.questions.threads import StateAsked, get_state

__all__ = ["WINDOW", "show", "window"]

WINDOW: Final = 200
"""The most messages of one page."""


class _PlaceAsked(Asked):
    """A message to show."""

    place: int | None = Field(default=None, ge=1)


async def show(visit: Visit) -> Response:
    """Return the conversation; `place` names a message that must be on the page."""
    state = await get_state(visit.data, visit.asked(StateAsked))
    wanted = visit.asked(_PlaceAsked).place
    messages, rest = messages_of(state.state)
    first, last = window(len(messages), wanted)
    return visit.render(
        "threads/state.html",
        state=state,
        messages=view_messages(messages[first - 1 : last], first),
        rest=rest,
        first=first,
        last=last,
        total=len(messages),
        wanted=wanted,
    )


def window(total: int, wanted: int | None) -> tuple[int, int]:
    """Return the places of the first and the last message to show, from 1.

    The pages of a conversation begin at fixed places, so that each message is on one of them;
    without a wanted place, the last page is shown.
    """
    place = total if wanted is None else min(wanted, total)
    first = (max(place, 1) - 1) // WINDOW * WINDOW + 1
    return first, min(first + WINDOW - 1, total)
