"""A run as a trace: its message, what followed it, and what was extracted from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from locus_memory.inspection.sources import Sources
from locus_memory.memory.layers.runs import SeenRun
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory
from locus_memory.web.questions.data import Data

__all__ = ["LOOKED_AT", "Trace", "run_at", "trace_run"]

LOOKED_AT: Final = 500
"""How many of a user's newest memories are looked at for those of a run."""

_USER: Final = ("user", "human")


class Trace(NamedTuple):
    """What a thread has of a run.

    Attributes:
        place: The place of its message, from 1; `None`: it is no longer there.
        messages: The message and those up to the next one of the user.
        memories: The current memories that came from these messages.
    """

    place: int | None
    messages: Sequence[dict[str, Any]]
    memories: Sequence[Memory]


def _places(messages: Sequence[dict[str, Any]], text: str | None) -> list[int]:
    """Return the places of the user's messages; with a text, of those that have it."""
    return [
        place
        for place, each in enumerate(messages, 1)
        if str(each.get("role") or each.get("type")) in _USER
        and text in (None, each.get("content"))
    ]


async def run_at(data: Data, thread: str, place: int, runs: Sequence[SeenRun]) -> SeenRun | None:
    """Return the run of the message at a place, or of the user's message before it.

    Args:
        data: The data.
        thread: The thread.
        place: The place of a message, from 1.
        runs: The runs of the thread, the newest first.
    """
    messages = await data.sources.messages(thread)
    before = [each for each in _places(messages, None) if each <= place]
    if not before:
        return None
    text = messages[before[-1] - 1].get("content")
    later = [each for each in _places(messages, str(text)) if each > before[-1]]
    same = [run for run in runs if run.message == text]
    return same[len(later)] if len(same) > len(later) else None


async def trace_run(data: Data, user: str | None, run: SeenRun, runs: Sequence[SeenRun]) -> Trace:
    """Return what a thread has of a run; `runs` have at least all later ones of its thread."""
    sources = Sources(data.backend)
    messages = await sources.messages(run.thread)
    own = _places(messages, None)
    same = _places(messages, run.message) if run.message else []
    # The runs of equal messages are told apart by their order.
    alike = [each for each in runs if (each.thread, each.message) == (run.thread, run.message)]
    later = sum(each.at > run.at for each in alike)
    if later >= len(same):
        return Trace(None, (), ())
    place = same[-1 - later]
    end = next((each for each in own if each > place), len(messages) + 1)
    items = await data.store.search(data.scope(user).current, None, LOOKED_AT)
    told = [memory for item in items if (memory := read_memory(item)) is not None]
    found = [
        memory
        for memory in told
        if memory.metadata.get("thread_id") == run.thread
        and any(place <= (each["place"] or 0) < end for each in await sources.of(memory))
    ]
    return Trace(place, messages[place - 1 : end - 1], found)
