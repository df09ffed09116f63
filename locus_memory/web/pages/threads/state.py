"""The state of a thread at a checkpoint: its conversation, with calls of tools folded."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from starlette.responses import Response

from locus_memory.checkpoint.differences import messages_of
from locus_memory.web.models import Asked, write_cursor
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.pages.threads.messages import view_messages
from locus_memory.web.questions.threads import (
    Checkpoint,
    CheckpointsAsked,
    StateAsked,
    get_state,
    list_checkpoints,
)

__all__ = ["WINDOW", "show", "window"]

WINDOW: Final = 200
"""The most messages of one page."""

_BESIDE: Final = 30
"""The most checkpoints beside a conversation."""


class _PlaceAsked(Asked):
    """A message to show."""

    place: int | None = Field(default=None, ge=1)


async def show(visit: Visit) -> Response:
    """Return the conversation; `place` names a message that must be on the page."""
    state = await get_state(visit.data, visit.asked(StateAsked))
    wanted = visit.asked(_PlaceAsked).place
    messages, rest = messages_of(state.state)
    first, last = window(len(messages), wanted)
    checkpoints = await _around(visit, state.thread_id, state.checkpoint_id)
    return visit.render(
        "threads/state.html",
        state=state,
        messages=view_messages(messages[first - 1 : last], first),
        rest=rest,
        first=first,
        last=last,
        total=len(messages),
        checkpoints=checkpoints,
        saved=next(
            (e.created_at for e in checkpoints if e.checkpoint_id == state.checkpoint_id), None
        ),
        wanted=wanted,
    )


async def _around(visit: Visit, thread: str, checkpoint: str) -> list[Checkpoint]:
    """Return the newest checkpoints, or those before this one if it is an older one."""
    asked = CheckpointsAsked(thread=thread, limit=_BESIDE)
    newest = (await list_checkpoints(visit.data, asked)).checkpoints
    if any(each.checkpoint_id == checkpoint for each in newest):
        return newest
    older = asked.model_copy(update={"cursor": write_cursor(checkpoint)})
    return (await list_checkpoints(visit.data, older)).checkpoints


def window(total: int, wanted: int | None) -> tuple[int, int]:
    """Return the places of the first and the last message to show, from 1.

    The pages of a conversation begin at fixed places, so that each message is on one of them;
    without a wanted place, the last page is shown.
    """
    place = total if wanted is None else min(wanted, total)
    first = (max(place, 1) - 1) // WINDOW * WINDOW + 1
    return first, min(first + WINDOW - 1, total)
