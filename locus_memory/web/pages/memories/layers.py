"""What is remembered beside the facts: what a person fixed, notes and the transcript."""

from __future__ import annotations

from starlette.responses import Response

from locus_memory.web.models import Asked, UserAsked
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.pages.memories.place import Place
from locus_memory.web.questions.items import NamespacesAsked, list_namespaces
from locus_memory.web.questions.layers import (
    AddOverride,
    EpisodesAsked,
    RemoveOverride,
    TranscriptAsked,
    add_override,
    get_identity,
    list_episodes,
    list_transcript,
    remove_override,
)

__all__ = [
    "add_sentence",
    "remove_sentence",
    "show_episodes",
    "show_identity",
    "show_transcript",
]


class _ThreadsAsked(Asked):
    """Which threads with recorded turns to list."""

    cursor: str | None = None


async def show_identity(visit: Visit) -> Response:
    """Show who a user is, with the sentences that a person fixed."""
    place = Place.of(visit)
    identity = await get_identity(place.data, visit.asked(UserAsked))
    return place.render("memories/identity.html", identity=identity)


async def add_sentence(visit: Visit) -> Response:
    """Fix a sentence."""
    place = Place.of(visit)
    await add_override(place.data, visit.asked(AddOverride))
    return place.go("/memories/identity", "Saved. It is in every context from now on.")


async def remove_sentence(visit: Visit) -> Response:
    """Remove a fixed sentence."""
    place = Place.of(visit)
    await remove_override(place.data, visit.asked(RemoveOverride))
    return place.go("/memories/identity", "Removed.")


async def show_episodes(visit: Visit) -> Response:
    """Show the digests of the newest sessions."""
    place, asked = Place.of(visit), visit.asked(EpisodesAsked)
    found = await list_episodes(place.data, asked)
    return place.render("memories/episodes.html", asked=asked, episodes=found.episodes)


async def show_transcript(visit: Visit) -> Response:
    """Show the recorded turns of a thread; without one, the threads that have some."""
    place = Place.of(visit)
    if visit.text("thread") is None:
        parent = place.data.scope(place.user).transcripts
        cursor = visit.asked(_ThreadsAsked).cursor
        wanted = NamespacesAsked(prefix=parent, cursor=cursor)
        page = await list_namespaces(place.data, wanted)
        threads = [each[len(parent)] for each in page.namespaces if len(each) > len(parent)]
        return place.render("memories/transcripts.html", threads=threads, next=page.next)
    asked = visit.asked(TranscriptAsked)
    turns = await list_transcript(place.data, asked)
    return place.render("memories/transcript.html", asked=asked, page=turns)
