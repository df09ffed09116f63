"""The page of one memory: its use, its sources and its history; and what changes it."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from locus_memory.inspection.memories import ending_of
from locus_memory.web.errors import RefusalError, StaleError
from locus_memory.web.matching import Match, write_etag
from locus_memory.web.pages.frame.visit import Told
from locus_memory.web.pages.frame.wording import Piece, compare_words
from locus_memory.web.pages.memories.place import MemoriesVisit
from locus_memory.web.questions.editing import (
    EditMemory,
    Retired,
    UndoAsked,
    edit_memory,
    undo_memory,
)
from locus_memory.web.questions.memories import (
    MemoryAsked,
    MemoryDetail,
    MemoryHistoryAsked,
    MemoryVersion,
    current_memory,
    detail_of,
    memory_history,
)

__all__ = ["edit", "show_memory", "tell_retired", "tell_trusted", "undo"]

_PAGE: Final = "/memories/memory"


class _Step(NamedTuple):
    """A version on the timeline.

    Attributes:
        version: The version.
        pieces: What changed from the version that it replaced, word by word; `None`: it replaced
            none.
        ending: How it ended; `None`: it is current.
    """

    version: MemoryVersion
    pieces: list[Piece] | None
    ending: str | None


async def show_memory(place: MemoriesVisit) -> Response:
    """Show a memory; of a retired one, its history."""
    asked = place.asked(MemoryAsked)
    history = await memory_history(place.data, place.asked(MemoryHistoryAsked))
    return place.render(
        "memories/memory.html",
        key=asked.key,
        kind=asked.type.value,
        memory=await _detail(place, asked),
        steps=_steps(history.versions),
    )


async def edit(place: MemoriesVisit) -> Response:
    """Write a new version; if somebody else was faster, both texts are shown, and none is lost."""
    asked = place.asked(EditMemory)
    tag = place.text("tag")
    if tag is None:
        raise RefusalError(400, "the form lacks the version: load the page once more")
    try:
        await edit_memory(place.data, asked, Match.of(tag, None))
    except StaleError as error:
        return _conflict(place, asked, error.current)
    except RefusalError as error:
        if error.status_code != HTTPStatus.NOT_FOUND:
            raise
        return _conflict(place, asked, None)
    return place.go(_PAGE, "Saved.", type=asked.type.value, key=asked.key)


async def undo(place: MemoriesVisit) -> Response:
    """Take back the last change of a memory."""
    asked = place.asked(UndoAsked)
    done = await undo_memory(place.data, asked)
    said = "Taken back." if done.current else "Taken back: nothing is current now."
    kind = (done.current or done.taken_back or asked).type
    if kind is None:
        raise RefusalError(404, "there is no change to take back")
    return place.go(_PAGE, said, type=kind.value, key=asked.key)


def tell_retired(done: Retired, asked: MemoryAsked) -> Told:
    """Lead back to a retired memory: the history keeps it."""
    said = "Retired. Undo brings it back." if done.retired else "It was retired already."
    return _PAGE, said, {"type": asked.type.value, "key": asked.key}


def tell_trusted(done: MemoryDetail, asked: MemoryAsked) -> Told:
    """Lead back to a memory that a person vouches for."""
    del done
    return _PAGE, "Promoted.", {"type": asked.type.value, "key": asked.key}


async def _detail(place: MemoriesVisit, asked: MemoryAsked) -> MemoryDetail | None:
    memory = await current_memory(place.data, place.named.user, asked.type, asked.key)
    return None if memory is None else await detail_of(place.data, place.named.user, memory)


def _steps(versions: Sequence[MemoryVersion]) -> list[_Step]:
    """Return the versions with what each changed in the one that it replaced."""
    by_number = {each.metadata.get("sequence"): each for each in versions}
    steps: list[_Step] = []
    for each in versions:
        before = by_number.get(_number(each.metadata.get("supersedes")))
        pieces = None if before is None else compare_words(before.content, each.content)
        steps.append(_Step(each, pieces, ending_of(each.model_dump())))
    return steps


def _number(link: Any) -> Any:
    """Return the number of the version that a link of the history names."""
    return link.get("sequence") if isinstance(link, dict) else None


def _conflict(place: MemoriesVisit, asked: EditMemory, current: dict[str, Any] | None) -> Response:
    """Return the page with both texts; its form saves over the version that it shows.

    Args:
        place: The place of the memory.
        asked: The edit that lost.
        current: The stored memory; `None`: it was retired meanwhile.
    """
    yours = asked.content or ""
    stored = "" if current is None else str(current["content"])
    return place.render(
        "memories/conflict.html",
        status=412,
        key=asked.key,
        kind=asked.type.value,
        current=current,
        yours=yours,
        differences=compare_words(stored, yours),
        tag=None if current is None else write_etag(current["sequence"] or 0),
    )
