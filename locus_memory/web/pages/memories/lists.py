"""Lists: the users and scopes that have memories, and the memories of one of them."""

from __future__ import annotations

from asyncio import gather
from typing import Final

from starlette.responses import Response

from locus_memory.inspection.names import namespaces_below
from locus_memory.memory.models import MemoryType
from locus_memory.store.item import Namespace
from locus_memory.web.errors import RefusalError
from locus_memory.web.models import LIMIT, Asked, Limit, cursor_labels, cut
from locus_memory.web.pages.memories.place import MemoriesVisit
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.editing import RememberAsked, remember
from locus_memory.web.questions.layers import TranscriptAsked, list_transcript
from locus_memory.web.questions.memories import (
    MemoriesAsked,
    MemorySearchAsked,
    list_memories,
    list_users,
    search_everybody,
    search_memories,
    usage_of,
)

__all__ = ["remember_text", "show_memories", "show_scopes", "show_transcript"]

_MOST_SCOPES: Final = 200
_HITS: Final = 20
_CURRENT: Final = "current"
_USERS: Final = "users"


class _ScopesAsked(Asked):
    """Which users to list."""

    find: str = ""
    """Only users with this text in their names, and memories of anybody with these words."""
    skip: int = 0
    limit: Limit = 25


async def show_scopes(place: MemoriesVisit) -> Response:
    """Show the users that have memories, and the other scopes."""
    asked = place.asked(_ScopesAsked)
    users = (await list_users(place.data, Asked())).users
    wanted = asked.find.casefold()
    found = [user for user in users if wanted in user.casefold()]
    end = max(0, asked.skip) + asked.limit
    own = await usage_of(place.data, None) if not asked.find and not asked.skip else None
    shown = found[max(0, asked.skip) : end]
    return place.render(
        "memories/scopes.html",
        asked=asked,
        usages=await gather(*(usage_of(place.data, each) for each in shown)),
        hits=await search_everybody(place.data, asked.find, _HITS) if asked.find else [],
        next=end if end < len(found) else None,
        count=len(users),
        own=own if own and own["count"] else None,
        scopes=[] if place.named.namespace else await _scopes(place.data),
    )


async def _scopes(data: Data) -> list[Namespace]:
    """Return the namespaces of memories that are neither the server's nor a user's in it."""
    own = data.settings.namespace
    found = await data.store.list_namespaces(limit=_MOST_SCOPES, suffix=(_CURRENT,))
    scopes = dict.fromkeys(_without_user(each[:-1]) for each in found if len(each) > 1)
    return [scope for scope in scopes if scope and scope != own]


def _without_user(scope: Namespace) -> Namespace:
    return scope[:-2] if len(scope) > 2 and scope[-2] == _USERS else scope  # noqa: PLR2004 - a prefix, `users` and a name


async def show_memories(place: MemoriesVisit) -> Response:
    """Show the memories of a place, or those that a search finds."""
    if place.text("query") is not None:
        asked = place.asked(MemorySearchAsked)
        hits = await search_memories(place.data, asked)
        return place.render("memories/hits.html", asked=asked, hits=hits, types=list(MemoryType))
    listed = place.asked(MemoriesAsked)
    page = await list_memories(place.data, listed)
    return place.render("memories/list.html", asked=listed, page=page, types=list(MemoryType))


async def remember_text(place: MemoriesVisit) -> Response:
    """Save a sentence as a memory."""
    if not (place.text("content") or "").strip():
        raise RefusalError(400, "the content is empty: write a sentence")
    done = await remember(place.data, place.asked(RememberAsked))
    said = "Saved." if done.changed else "It was known already."
    return place.go("/memories/memory", said, type=done.type.value, key=done.key)


class _ThreadsAsked(Asked):
    """Which threads with recorded turns to list."""

    cursor: str | None = None


async def show_transcript(place: MemoriesVisit) -> Response:
    """Show the recorded turns of a thread; without one, the threads that have some."""
    if place.text("thread") is None:
        parent = place.data.scope(place.named.user).transcripts
        after = cursor_labels(place.asked(_ThreadsAsked).cursor)
        found: list[Namespace] = []
        async for each in namespaces_below(place.data.store, parent, len(parent) + 1, after):
            found += [each] if len(each) > len(parent) else []
            if len(found) > LIMIT:
                break
        page, following = cut(found, LIMIT, lambda each: each)
        threads = [each[-1] for each in page]
        return place.render("memories/transcripts.html", threads=threads, next=following)
    asked = place.asked(TranscriptAsked)
    turns = await list_transcript(place.data, asked)
    return place.render("memories/transcript.html", asked=asked, page=turns)
